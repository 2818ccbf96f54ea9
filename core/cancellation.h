#ifndef WEIR_CORE_CANCELLATION_H_
#define WEIR_CORE_CANCELLATION_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace weir {

// Tells those who wait that a step is over: time-out, error elsewhere, session closed. Thread-safe.
class Cancellation {
 public:
  // Runs `fn` when cancelled; false (and fn is not run) if that has happened already. `*token`
  // unregisters it.
  bool OnCancel(std::function<void()> fn, int64_t* token);
  // Returns when `fn` will not run any more (it may be running on this very thread).
  void Unregister(int64_t token);
  void Cancel(absl::Status why);
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  absl::Status status() const;

 private:
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;
  absl::Status why_;
  int64_t next_token_ = 0;
  std::vector<std::pair<int64_t, std::function<void()>>> callbacks_;
  bool running_ = false;  // callbacks run, on this thread:
  std::thread::id canceller_;
  std::condition_variable ran_;
};

// What leaves the loops of a cancelled step: thrown by ThrowIfCancelled, caught by the executor.
// A kernel holds nothing that a destructor does not release, so it need not know.
struct StepCancelled {
  absl::Status why;
};

// While it lives, the calling thread works for a step that `cancellation` ends; null: its work is
// not to be left before it is done. Loops of a ThreadPool hand it on to the threads that help.
class ScopedCancellation {
 public:
  explicit ScopedCancellation(const Cancellation* cancellation)
      : outer_(std::exchange(current_, cancellation)) {}
  ~ScopedCancellation() { current_ = outer_; }
  ScopedCancellation(const ScopedCancellation&) = delete;
  ScopedCancellation& operator=(const ScopedCancellation&) = delete;

  static const Cancellation* Current() { return current_; }

 private:
  friend void ThrowIfCancelled();
  [[noreturn]] static void Throw();

  static thread_local constinit const Cancellation* current_;
  const Cancellation* const outer_;
};

// Leaves the kernel if its step is over, by an exception. Long loops of a ThreadPool do this
// between their pieces; a kernel's serial loop calls it at least every few milliseconds. It costs a
// nanosecond.
inline void ThrowIfCancelled() {
  const Cancellation* const current = ScopedCancellation::current_;
  if (current != nullptr && current->cancelled()) ScopedCancellation::Throw();
}

// The same for the i-th of many short iterations: looks at every 1024th.
inline void ThrowIfCancelledAt(int64_t i) {
  if (i % 1024 == 0) ThrowIfCancelled();
}

}  // namespace weir

#endif  // WEIR_CORE_CANCELLATION_H_
