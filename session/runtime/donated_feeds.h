#ifndef WEIR_SESSION_RUNTIME_DONATED_FEEDS_H_
#define WEIR_SESSION_RUNTIME_DONATED_FEEDS_H_

#include <utility>

#include "absl/types/span.h"
#include "weir/core/tensor/tensor.h"

namespace weir {

// While this object lives, a step that the calling thread runs with these feeds takes them: it
// moves the tensors into its values, so that a kernel may write its result over one that nobody
// else holds. A step with a time limit, which runs on another thread, leaves them as they are.
class DonatedFeeds {
 public:
  // `feeds` outlive this object. Scopes nest: the destructor restores the outer one.
  explicit DonatedFeeds(absl::Span<Tensor> feeds) : outer_(std::exchange(current_, feeds.data())) {}
  ~DonatedFeeds() { current_ = outer_; }
  DonatedFeeds(const DonatedFeeds&) = delete;
  DonatedFeeds& operator=(const DonatedFeeds&) = delete;

  // Returns the tensors to take from, if these feeds are donated, and null if not.
  static Tensor* Of(absl::Span<const Tensor> feeds) {
    return feeds.data() == current_ ? current_ : nullptr;
  }

 private:
  inline static thread_local constinit Tensor* current_ = nullptr;
  Tensor* const outer_;
};

}  // namespace weir

#endif  // WEIR_SESSION_RUNTIME_DONATED_FEEDS_H_
