#ifndef WEIR_SESSION_TIME_LIMITED_STEP_H_
#define WEIR_SESSION_TIME_LIMITED_STEP_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "weir/session/executor.h"

// Steps that may take only so long. A kernel cannot be stopped from outside (a call of LAPACK looks
// at nothing), so such a step runs on a thread of the session's, with feeds and results of its own,
// and its caller may leave it behind.
namespace weir {

// What the caller and the thread of a step share. It outlives both.
class TimeLimitedStep {
 public:
  TimeLimitedStep(absl::Span<const Tensor> feeds, const RunOptions& options);

  // ---- For the thread.
  absl::Span<const Tensor> feeds() const { return feeds_; }
  Tensors* fetches() { return &fetches_; }
  const RunOptions& options() const { return options_; }
  // The step runs in this executor; null: no longer.
  void Begin(Executor* executor, int64_t step_id);
  void End(absl::Status status);

  // ---- For the caller: the status and results of the step. Returns DEADLINE_EXCEEDED half a
  // second after the time limit if the step has not ended by then. `options` are the caller's.
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

// Threads that are made when they are needed, and kept.
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
  size_t busy_ = 0;  // pieces of work, those that wait included
  bool stops_ = false;
};

}  // namespace weir

#endif  // WEIR_SESSION_TIME_LIMITED_STEP_H_
