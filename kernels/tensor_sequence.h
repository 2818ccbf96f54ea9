#ifndef WEIR_KERNELS_TENSOR_SEQUENCE_H_
#define WEIR_KERNELS_TENSOR_SEQUENCE_H_

#include <array>
#include <functional>
#include <memory>

#include "weir/core/tensor.h"

namespace weir {

// A sequence of tensors that never changes: an element is replaced, or the sequence resized, by
// making another one, which shares all that is the same (and takes over what nobody else has).
// Positions may be empty, and cost nothing. Copies are cheap; may be read from many threads.
class TensorSequence {
 public:
  int64_t size() const { return size_; }
  // Null where there is none.
  const Tensor* at(int64_t i) const;
  // The same with this tensor at position i, which is below size().
  TensorSequence With(int64_t i, Tensor value) const&;
  TensorSequence With(int64_t i, Tensor value) &&;
  // The first `size` positions; empty ones are added where there are fewer.
  TensorSequence Resized(int64_t size) const;
  // Calls `fn` for the tensors there are, in order, until it fails.
  using Fn = std::function<absl::Status(int64_t i, const Tensor& value)>;
  absl::Status ForEach(const Fn& fn) const;

 private:
  static constexpr int kBits = 4, kFan = 1 << kBits;
  // A Branch, or, below the lowest branches, a Tensor; null where all is empty.
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

#endif  // WEIR_KERNELS_TENSOR_SEQUENCE_H_
