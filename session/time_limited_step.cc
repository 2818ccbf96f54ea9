#include "weir/session/time_limited_step.h"

#include <utility>

namespace weir {

namespace {

// Kernel loops check for cancellation every 50 ms; a step that takes much longer is abandoned.
constexpr std::chrono::milliseconds kGracePeriod{500};

}  // namespace

TimeLimitedStep::TimeLimitedStep(absl::Span<const Tensor> feeds, const RunOptions& options)
    : feeds_(feeds.begin(), feeds.end()),
      options_(options),
      deadline_(std::chrono::steady_clock::now() + options.timeout) {
  if (options.trace != nullptr) options_.trace = &trace_;
  options_.cancellation = &cancellation_;
}

void TimeLimitedStep::Begin(Executor* executor, int64_t step_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  executor_ = executor;
  step_id_ = step_id;
}

void TimeLimitedStep::End(absl::Status status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  status_ = std::move(status);
  is_over_ = true;
  ended_.notify_all();
}

// Requires the lock, so that the executor is not destroyed.
absl::Status TimeLimitedStep::TimedOut() {
  if (executor_ != nullptr) return executor_->TimedOut(step_id_);
  return absl::DeadlineExceededError(absl::StrCat("The step took longer than its time limit of ",
                                                  options_.timeout.count(),
                                                  " ms while it was being prepared"));
}

absl::Status TimeLimitedStep::Wait(Tensors* fetches, const RunOptions& options) {
  const LinkedCancellation linked(options.cancellation, cancellation_);
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_over = [this] { return is_over_; };
  if (!ended_.wait_until(lock, deadline_, is_over)) {
    absl::Status late = TimedOut();
    lock.unlock();
    cancellation_.Cancel(
        late);  // for kernels that check it; without the lock, since it may end the step
    lock.lock();
    if (!ended_.wait_for(lock, kGracePeriod, is_over) || status_.ok()) return late;
  }
  if (options.trace != nullptr) *options.trace = std::move(trace_);
  if (status_.ok() && fetches != nullptr) *fetches = std::move(fetches_);
  return std::move(status_);
}

StepThreads::~StepThreads() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stops_ = true;
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void StepThreads::Run(std::function<void()> work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  work_.push_back(std::move(work));
  if (++busy_ > threads_.size()) threads_.emplace_back([this] { Loop(); });
  has_work_.notify_one();
}

void StepThreads::WaitUntilIdle() {
  std::unique_lock<std::mutex> lock(mutex_);
  is_idle_.wait(lock, [this] { return busy_ == 0; });
}

void StepThreads::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    has_work_.wait(lock, [this] { return stops_ || !work_.empty(); });
    if (work_.empty()) return;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    if (--busy_ == 0) is_idle_.notify_all();
  }
}

}  // namespace weir
