#ifndef WEIR_KERNELS_BROADCAST_H_
#define WEIR_KERNELS_BROADCAST_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "weir/core/shape.h"

namespace weir {

// How several tensors are laid over one result shape, by NumPy's rule, with neighboring dimensions
// merged where all arguments treat them alike. Made for one run; arguments are told apart by
// position.
class Broadcast {
 public:
  // All shapes must broadcast to `result`.
  Broadcast(const Shape& result, absl::Span<const Shape* const> arguments);

  enum class Kind {
    kDense,     // has the result's elements in the result's order
    kConstant,  // one element
    kStrided,
  };
  Kind kind(int argument) const { return kinds_[argument]; }

  // Elements [begin, begin + n) of the argument as laid over the result, written one after the
  // other to `out`. `size` is the bytes of an element, `data` the argument's memory.
  void Gather(int argument, const void* data, size_t size, int64_t begin, int64_t n,
              void* out) const;
  // The same without copying where the argument is dense: a pointer into `data`, or `buffer`
  // filled. A constant argument's buffer is filled with n elements each time.
  const void* Tile(int argument, const void* data, size_t size, int64_t begin, int64_t n,
                   void* buffer) const;

  // Number of merged dimensions; the extents and strides (in elements, 0 where repeated) of each.
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  int64_t stride(int argument, int i) const { return strides_[argument][i]; }

 private:
  absl::InlinedVector<int64_t, 6> dims_;
  absl::InlinedVector<absl::InlinedVector<int64_t, 6>, 3> strides_;
  absl::InlinedVector<Kind, 3> kinds_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_BROADCAST_H_
