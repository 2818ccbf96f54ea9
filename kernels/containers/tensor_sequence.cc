#include "weir/kernels/containers/tensor_sequence.h"

#include <atomic>
#include <utility>

namespace weir {

// A tree of branches with 16 children each; the base-16 digits of a position are the path to its
// tensor. This is the persistent vector of Bagwell's "Ideal Hash Trees" (2001), as in Clojure.
//
// Replacing an element copies the branches on its path, one per level, and shares all others with
// the old sequence. So a list that is a loop-carried value, and that a gradient may still hold from
// every iteration, costs a few hundred bytes per iteration, where copying the whole list would take
// time and memory quadratic in the number of iterations. A mutable list that is updated in place if
// it has no other owner, as TensorFlow's, is as fast only if it has none. Branches without other
// owners are updated in place, so filling a list makes no copies.
//
// A branch without tensors is null, so a sequence of a billion empty positions is just a number:
// sizes come from graphs, and may be anything.

const Tensor* TensorSequence::at(int64_t i) const {
  if (i < 0 || i >= size_) return nullptr;
  const void* p = root_.get();
  for (int level = levels_ - 1; level >= 0 && p != nullptr; --level)
    p = static_cast<const Branch*>(p)->children[Child(i, level)].get();
  return static_cast<const Tensor*>(p);
}

TensorSequence::Ref TensorSequence::Put(Ref ref, int level, int64_t i, Ref leaf) {
  if (level < 0) return leaf;
  std::shared_ptr<Branch> branch;
  if (ref == nullptr) {
    branch = std::make_shared<Branch>();
  } else if (ref.use_count() > 1) {
    branch = std::make_shared<Branch>(*static_cast<const Branch*>(ref.get()));
  } else {
    std::atomic_thread_fence(std::memory_order_acquire);  // after the previous owners have read it
    branch = std::const_pointer_cast<Branch>(std::static_pointer_cast<const Branch>(ref));
  }
  Ref& child = branch->children[Child(i, level)];
  child = Put(std::move(child), level - 1, i, std::move(leaf));
  return branch;
}

TensorSequence TensorSequence::With(int64_t i, Tensor value) && {
  root_ = Put(std::move(root_), levels_ - 1, i, std::make_shared<const Tensor>(std::move(value)));
  return std::move(*this);
}

TensorSequence TensorSequence::With(int64_t i, Tensor value) const& {
  return TensorSequence(*this).With(i, std::move(value));
}

// Returns the part of the branch below `size`, counted from the start of this branch.
TensorSequence::Ref TensorSequence::Truncated(const Ref& ref, int level, int64_t size) {
  if (ref == nullptr || size <= 0) return nullptr;
  if (level < 0) return ref;
  auto copy = std::make_shared<Branch>(*static_cast<const Branch*>(ref.get()));
  const int64_t span = int64_t{1} << (kBits * level);
  for (int k = 0; k < kFan; ++k) {
    const int64_t left = size - k * span;
    if (left < span) copy->children[k] = Truncated(copy->children[k], level - 1, left);
  }
  return copy;
}

TensorSequence TensorSequence::Resized(int64_t size) const {
  TensorSequence out = *this;
  out.size_ = size;
  if (size < size_) out.root_ = Truncated(root_, levels_ - 1, size);
  while (size > int64_t{1} << (kBits * out.levels_)) {
    if (out.root_ != nullptr) {
      auto higher = std::make_shared<Branch>();
      higher->children[0] = std::move(out.root_);
      out.root_ = std::move(higher);
    }
    ++out.levels_;
  }
  return out;
}

absl::Status TensorSequence::Walk(const Ref& ref, int level, int64_t first, const Fn& fn) {
  if (ref == nullptr) return absl::OkStatus();
  if (level < 0) return fn(first, *static_cast<const Tensor*>(ref.get()));
  const auto& children = static_cast<const Branch*>(ref.get())->children;
  for (int k = 0; k < kFan; ++k) {
    WEIR_RETURN_IF_ERROR(Walk(children[k], level - 1, first + (int64_t{k} << (kBits * level)), fn));
  }
  return absl::OkStatus();
}

absl::Status TensorSequence::ForEach(const Fn& fn) const { return Walk(root_, levels_ - 1, 0, fn); }

}  // namespace weir
