#ifndef WEIR_KERNELS_CONTAINERS_TENSOR_SEQUENCE_H_
#define WEIR_KERNELS_CONTAINERS_TENSOR_SEQUENCE_H_

#include <array>
#include <functional>
#include <memory>

#include "weir/core/tensor/tensor.h"

namespace weir {

// An immutable sequence of tensors. Replacing an element or resizing makes a new sequence, which
// shares the unchanged parts (and reuses in place the parts without other owners). Positions may be
// empty, and use no memory. Copies are cheap; thread-safe for reading.
class TensorSequence {
 public:
  int64_t size() const { return size_; }
  // Returns null for an empty position.
  const Tensor* at(int64_t i) const;
  // Returns the sequence with this tensor at position i, which is below size().
  TensorSequence With(int64_t i, Tensor value) const&;
  TensorSequence With(int64_t i, Tensor value) &&;
  // Returns the first `size` positions, padded with empty positions.
  TensorSequence Resized(int64_t size) const;
  using Fn = std::function<absl::Status(int64_t i, const Tensor& value)>;
  // Calls `fn` for the tensors in order, until it fails.
  absl::Status ForEach(const Fn& fn) const;

 private:
  static constexpr int kBits = 4, kFan = 1 << kBits;
  // A Branch, or, below the lowest branches, a Tensor; null if all positions are empty.
  using Ref = std::shared_ptr<const void>;
  struct Branch {
    std::array<Ref, kFan> children;
  };
  static int Child(int64_t i, int level) {
    return static_cast<int>(i >> (kBits * level)) & (kFan - 1);
  }
  static Ref Put(Ref ref, int level, int64_t i, Ref leaf);
  static Ref Truncated(const Ref& ref, int level, int64_t size);
  static absl::Status Walk(const Ref& ref, int level, int64_t first, const Fn& fn);

  int64_t size_ = 0;
  int levels_ = 1;  // of branches
  Ref root_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_CONTAINERS_TENSOR_SEQUENCE_H_
