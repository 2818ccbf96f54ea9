#ifndef WEIR_KERNELS_LIB_BROADCAST_H_
#define WEIR_KERNELS_LIB_BROADCAST_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "weir/core/tensor/shape.h"

namespace weir {

// The layout of several tensors broadcast to one result shape by NumPy's rule. Adjacent dimensions
// are merged where all arguments allow it. Created for one run; arguments are identified by
// position.
class Broadcast {
 public:
  // All shapes must be broadcastable to `result`.
  Broadcast(const Shape& result, absl::Span<const Shape* const> arguments);

  enum class Kind {
    kDense,     // same elements in the same order as the result
    kConstant,  // a single element
    kStrided,
  };
  Kind kind(int argument) const { return kinds_[argument]; }

  // Copies elements [begin, begin + n) of the broadcast argument to contiguous memory at `out`.
  // `size` is the element size in bytes, `data` the argument's memory.
  void Gather(int argument, const void* data, size_t size, int64_t begin, int64_t n,
              void* out) const;
  // Returns the same elements, without a copy if the argument is dense: a pointer into `data`, or
  // `buffer` after filling it. For a constant argument, fills n elements of the buffer on every
  // call.
  const void* Tile(int argument, const void* data, size_t size, int64_t begin, int64_t n,
                   void* buffer) const;

  // The number of merged dimensions, and each one's extent and stride (in elements; 0 where the
  // argument is broadcast).
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  int64_t stride(int argument, int i) const { return strides_[argument][i]; }

 private:
  absl::InlinedVector<int64_t, 6> dims_;
  absl::InlinedVector<absl::InlinedVector<int64_t, 6>, 3> strides_;
  absl::InlinedVector<Kind, 3> kinds_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_BROADCAST_H_
