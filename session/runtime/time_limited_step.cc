#include "weir/session/runtime/time_limited_step.h"

#include <cstdio>
#include <utility>

#include "weir/core/tensor/memory_quota.h"

namespace weir {

namespace {

// Kernel loops check for cancellation every 50 ms; a step that takes much longer is abandoned.
constexpr std::chrono::milliseconds kGracePeriod{500};
// A session that is destroyed waits for abandoned steps, and says so after this time.
constexpr std::chrono::seconds kPatience{2};

}  // namespace

TimeLimitedStep::TimeLimitedStep(absl::Span<const Tensor> feeds, const RunOptions& options)
    : feeds_(feeds.begin(), feeds.end()),
      options_(options),
      deadline_(std::chrono::steady_clock::now() + options.timeout) {
  if (options.trace != nullptr) options_.trace = &trace_;
  options_.cancellation = &cancellation_;
}

void TimeLimitedStep::Begin(Executor* executor, int64_t step_id) {
  const MutexLock lock(mutex_);
  executor_ = executor;
  step_id_ = step_id;
}

void TimeLimitedStep::End(absl::Status status) {
  const MutexLock lock(mutex_);
  status_ = std::move(status);
  is_over_ = true;
  ended_.NotifyAll();
}

// Requires the lock, so that the executor is not destroyed.
absl::Status TimeLimitedStep::TimedOut() {
  if (executor_ != nullptr) return executor_->TimedOut(step_id_);
  return absl::DeadlineExceededError(absl::StrCat("The step took longer than its time limit of ",
                                                  options_.timeout.count(),
                                                  " ms while it was being prepared"));
}

absl::Status TimeLimitedStep::Late() {
  const MutexLock lock(mutex_);
  return TimedOut();
}

bool TimeLimitedStep::WaitForEnd(std::chrono::steady_clock::time_point until) {
  while (!is_over_) {
    if (!ended_.WaitUntil(mutex_, until)) return is_over_;
  }
  return true;
}

absl::Status TimeLimitedStep::Wait(Tensors* fetches, const RunOptions& options) {
  const LinkedCancellation linked(options.cancellation, cancellation_);
  absl::Status late;
  {
    const MutexLock lock(mutex_);
    if (WaitForEnd(deadline_)) return TakeResult(fetches, options);
    late = TimedOut();
  }
  cancellation_.Cancel(late);  // for kernels that check it; not locked, since it may end the step
  const MutexLock lock(mutex_);
  if (!WaitForEnd(std::chrono::steady_clock::now() + kGracePeriod)) return late;
  // OK if the last node ended in time and only this thread was late: what the step has taken, say
  // from an iterator, must not be lost.
  return TakeResult(fetches, options);
}

absl::Status TimeLimitedStep::TakeResult(Tensors* fetches, const RunOptions& options) {
  if (options.trace != nullptr) *options.trace = std::move(trace_);
  if (status_.ok() && fetches != nullptr) *fetches = std::move(fetches_);
  return std::move(status_);
}

StepThreads::~StepThreads() {
  {
    const MutexLock lock(mutex_);
    stops_ = true;
  }
  has_work_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void StepThreads::Run(std::shared_ptr<TimeLimitedStep> step, std::function<void()> work) {
  const MutexLock lock(mutex_);
  // Throws if there can be no more threads; nothing has changed then.
  if (busy_ == threads_.size()) threads_.emplace_back([this] { Loop(); });
  queued_.push_back(
      {std::move(step), [work = std::move(work), memory = MemoryQuota::ShareCurrent()] {
         const ScopedMemoryQuota for_its_caller(memory.get());
         work();
       }});
  ++busy_;
  has_work_.NotifyOne();
}

void StepThreads::WaitUntilIdle() {
  const MutexLock lock(mutex_);
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  while (busy_ > 0 && is_idle_.WaitUntil(mutex_, patience)) continue;
  if (busy_ > 0) PrintTasks();
  while (busy_ > 0) is_idle_.Wait(mutex_);
}

void StepThreads::PrintTasks() {
  for (const auto& step : running_) {
    std::fprintf(stderr,
                 "weir: a session that is destroyed waits for a kernel that was cancelled and has "
                 "not ended (an asynchronous kernel ends when it calls `done`): %s\n",
                 step->Late().ToString().c_str());
  }
}

void StepThreads::Loop() {
  const MutexLock lock(mutex_);
  for (;;) {
    while (!stops_ && queued_.empty()) has_work_.Wait(mutex_);
    if (queued_.empty()) return;
    Task task = std::move(queued_.front());
    queued_.pop_front();
    running_.insert(task.step);
    mutex_.unlock();
    task.work();
    task.work = nullptr;
    mutex_.lock();
    running_.erase(task.step);
    if (--busy_ == 0) is_idle_.NotifyAll();
  }
}

}  // namespace weir
