#ifndef WEIR_SESSION_RUNTIME_TIME_LIMITED_STEP_H_
#define WEIR_SESSION_RUNTIME_TIME_LIMITED_STEP_H_

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/session/runtime/executor.h"

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
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }
  // Sets the executor that runs the step; null when it has finished.
  void Begin(Executor* executor, int64_t step_id);
  void End(absl::Status status);

  // ---- For the caller.
  //
  // Waits for the step and returns its status and results. Returns DEADLINE_EXCEEDED half a second
  // after the time limit if the step has not ended by then. `options` are the caller's.
  absl::Status Wait(Tensors* fetches, const RunOptions& options);
  // Returns the DEADLINE_EXCEEDED of a step that runs, which names the node.
  absl::Status Late();

 private:
  // Returns false if the step has not ended by then.
  bool WaitForEnd(std::chrono::steady_clock::time_point until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves the results of the step, which has ended, to the caller; returns its status.
  absl::Status TakeResult(Tensors* fetches, const RunOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TimedOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Tensors feeds_;
  Tensors fetches_;
  std::vector<NodeTrace> trace_;
  Cancellation cancellation_;
  RunOptions options_;
  const std::chrono::steady_clock::time_point deadline_;
  Mutex mutex_;
  CondVar ended_;
  Executor* executor_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t step_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// The threads of such steps, which are created on demand and reused.
class StepThreads {
 public:
  StepThreads() = default;
  StepThreads(const StepThreads&) = delete;
  StepThreads& operator=(const StepThreads&) = delete;
  // Waits until idle.
  ~StepThreads();

  // Calls `work`, which runs the step and ends it.
  void Run(std::shared_ptr<TimeLimitedStep> step, std::function<void()> work);
  // Nothing that a running kernel refers to can be freed, so this waits as long as one runs; it
  // prints what it waits for after two seconds.
  void WaitUntilIdle();

 private:
  struct Task {
    std::shared_ptr<TimeLimitedStep> step;
    std::function<void()> work;
  };
  void Loop();
  void PrintTasks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar has_work_, is_idle_;
  std::deque<Task> queued_ ABSL_GUARDED_BY(mutex_);
  std::set<std::shared_ptr<TimeLimitedStep>> running_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t busy_ ABSL_GUARDED_BY(mutex_) = 0;  // tasks, running or queued
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace weir

#endif  // WEIR_SESSION_RUNTIME_TIME_LIMITED_STEP_H_
