#ifndef WEIR_CORE_TENSOR_CANCELLATION_H_
#define WEIR_CORE_TENSOR_CANCELLATION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/mutex.h"

// Cancellation of steps: the signal, and how long loops observe it.
namespace WEIR_API weir {

// A one-shot cancellation signal for a step: time-out, error elsewhere, session closed.
// Thread-safe.
class Cancellation {
 public:
  // Registers `fn` to run on cancellation. Returns false, without running `fn`, if already
  // cancelled. `*token` unregisters it.
  bool OnCancel(std::function<void()> fn, int64_t* token);
  // Returns when `fn` can no longer run, unless it is running on the calling thread.
  void Unregister(int64_t token);
  // Cancels the step: the first call sets the status, runs the callbacks on the calling thread, and
  // returns when they have run. Later calls do nothing.
  void Cancel(absl::Status why);
  // Whether Cancel was called. Cheap: loops call it.
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // The status passed to Cancel; OK before.
  absl::Status status() const;

 private:
  std::atomic<bool> cancelled_{false};
  mutable Mutex mutex_;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  int64_t next_token_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::pair<int64_t, std::function<void()>>> callbacks_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;  // callbacks are running, on thread:
  std::thread::id canceller_ ABSL_GUARDED_BY(mutex_);
  CondVar ran_;
};

// While this object lives, cancelling `outer` (if it is not null) cancels `inner`.
class LinkedCancellation {
 public:
  // Both outlive this object.
  LinkedCancellation(Cancellation* outer, Cancellation& inner) : outer_(outer) {
    if (outer == nullptr) return;
    linked_ = outer->OnCancel([outer, &inner] { inner.Cancel(outer->status()); }, &token_);
    if (!linked_) inner.Cancel(outer->status());
  }
  ~LinkedCancellation() {
    if (linked_) outer_->Unregister(token_);
  }

 private:
  Cancellation* const outer_;
  int64_t token_ = 0;
  bool linked_ = false;
};

// The exception that unwinds the loops of a cancelled step. ThrowIfCancelled throws it, the
// executor catches it. Kernels release everything in destructors, so they need not handle it.
struct StepCancelled {
  absl::Status why;  // the status passed to Cancel
};

// Sets, for its lifetime, the cancellation that the calling thread's work observes; null: the work
// cannot be cancelled. Loops of a ThreadPool propagate it to the threads that join them.
class ScopedCancellation {
 public:
  // `cancellation` outlives this object. Scopes nest: the destructor restores the outer one.
  explicit ScopedCancellation(const Cancellation* cancellation)
      : outer_(std::exchange(current_, cancellation)) {}
  ~ScopedCancellation() { current_ = outer_; }
  ScopedCancellation(const ScopedCancellation&) = delete;
  ScopedCancellation& operator=(const ScopedCancellation&) = delete;

  // What the calling thread observes; null if nothing.
  static const Cancellation* Current() { return current_; }

 private:
  friend void ThrowIfCancelled();
  [[noreturn]] static void Throw();

  static thread_local constinit const Cancellation* current_;
  const Cancellation* const outer_;
};

// Throws StepCancelled if the step of this thread is cancelled. Long loops of a ThreadPool check
// between chunks; a serial loop in a kernel calls this function at least every few milliseconds. It
// costs a nanosecond.
inline void ThrowIfCancelled() {
  const Cancellation* const current = ScopedCancellation::current_;
  if (current != nullptr && current->cancelled()) ScopedCancellation::Throw();
}

// Same, for iteration i of many short ones: checks every 1024th iteration.
inline void ThrowIfCancelledAt(int64_t i) {
  if (i % 1024 == 0) ThrowIfCancelled();
}

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_CANCELLATION_H_
