#ifndef WEIR_SESSION_TIME_LIMITED_STEP_H_
#define WEIR_SESSION_TIME_LIMITED_STEP_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "weir/session/executor.h"

// Steps with a time limit. A kernel cannot be interrupted from outside (a LAPACK call checks
// nothing), so such a step runs on a thread of the session, with its own feeds and results, and its
// caller may abandon it.
namespace weir {

// The longest limit: clocks overflow beyond it.
inline constexpr std::chrono::hours kForever{24 * 365 * 100};

// The state shared by the caller and the thread of a step. It outlives both.
class TimeLimitedStep {
 public:
  TimeLimitedStep(absl::Span<const Tensor> feeds, const RunOptions& options);

  // ---- For the thread.
  absl::Span<const Tensor> feeds() const { return feeds_; }
  Tensors* fetches() { return &fetches_; }
  const RunOptions& options() const { return options_; }
  // Sets the executor that runs the step; null when it has finished.
  void Begin(Executor* executor, int64_t step_id);
  void End(absl::Status status);

  // ---- For the caller.
  //
  // Waits for the step and returns its status and results. Returns DEADLINE_EXCEEDED half a second
  // after the time limit if the step has not ended by then. `options` are the caller's.
  absl::Status Wait(Tensors* fetches, const RunOptions& options);

 private:
  absl::Status TimedOut();

  const Tensors feeds_;
  Tensors fetches_;
  std::vector<NodeTrace> trace_;
  Cancellation cancellation_;
  RunOptions options_;
  const std::chrono::steady_clock::time_point deadline_;
  std::mutex mutex_;
  std::condition_variable ended_;
  Executor* executor_ = nullptr;
  int64_t step_id_ = 0;
  bool is_over_ = false;
  absl::Status status_;
};

// A pool of threads that are created on demand and reused.
class StepThreads {
 public:
  StepThreads() = default;
  StepThreads(const StepThreads&) = delete;
  StepThreads& operator=(const StepThreads&) = delete;
  // Waits until idle.
  ~StepThreads();

  void Run(std::function<void()> work);
  void WaitUntilIdle();

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable has_work_, is_idle_;
  std::deque<std::function<void()>> work_;
  std::vector<std::thread> threads_;
  size_t busy_ = 0;  // tasks, running or queued
  bool stops_ = false;
};

}  // namespace weir

#endif  // WEIR_SESSION_TIME_LIMITED_STEP_H_
