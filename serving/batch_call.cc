#include "weir/serving/batch_call.h"

#include <utility>

#include "weir/core/tensor/status.h"

namespace weir::serving {

namespace {

using Clock = std::chrono::steady_clock;

std::optional<Clock::time_point> DeadlineOf(const RunOptions& options) {
  // Anything over a century means no limit, as in a step.
  constexpr std::chrono::milliseconds kNoLimit = std::chrono::hours(24 * 36525);
  if (options.timeout.count() <= 0 || options.timeout > kNoLimit) return std::nullopt;
  return Clock::now() + options.timeout;
}

}  // namespace

BatchCall::BatchCall(const NamedTensors& inputs, const std::vector<std::string>& outputs,
                     int num_parts, const RunOptions& options)
    : inputs_(inputs),
      outputs_(outputs),
      cancellation_(options.cancellation),
      deadline_(DeadlineOf(options)),
      results_(static_cast<size_t>(num_parts)),
      unfinished_(num_parts) {}

bool BatchCall::Pin() {
  const MutexLock lock(mutex_);
  if (!error_.ok()) return false;
  ++pins_;
  return true;
}

void BatchCall::Unpin(std::shared_ptr<SharedStep> step) {
  const MutexLock lock(mutex_);
  if (step != nullptr) steps_.push_back(std::move(step));
  if (--pins_ == 0) changed_.NotifyAll();
}

absl::StatusOr<RunOptions> BatchCall::StepOptions() const {
  RunOptions options;
  options.cancellation = cancellation_;
  if (!deadline_.has_value()) return options;
  options.timeout = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
  if (options.timeout.count() <= 0)
    return absl::DeadlineExceededError("The call's time limit passed before its step began");
  return options;
}

void BatchCall::Finish(int part, absl::StatusOr<NamedTensors> result) {
  const MutexLock lock(mutex_);
  if (!error_.ok()) return;  // the caller has left, or is about to
  if (result.ok()) {
    results_[static_cast<size_t>(part)] = *std::move(result);
    --unfinished_;
  } else {
    error_ = std::move(result).status();
  }
  changed_.NotifyAll();
}

absl::StatusOr<std::vector<NamedTensors>> BatchCall::Wait() {
  int64_t token = 0;
  const auto cancel = [this] {
    const MutexLock lock(mutex_);
    if (error_.ok()) error_ = cancellation_->status();
    changed_.NotifyAll();
  };
  const bool linked = cancellation_ != nullptr && cancellation_->OnCancel(cancel, &token);
  if (cancellation_ != nullptr && !linked) cancel();
  absl::Status status;
  std::vector<NamedTensors> results;
  std::vector<std::shared_ptr<SharedStep>> steps;
  {
    const MutexLock lock(mutex_);
    status = WaitLocked();
    results.swap(results_);
    steps.swap(steps_);
  }
  if (linked) cancellation_->Unregister(token);
  if (status.ok()) return results;
  for (const auto& step : steps) step->Leave(status);
  return status;
}

absl::Status BatchCall::WaitLocked() {
  while (pins_ > 0 || (unfinished_ > 0 && error_.ok())) {
    if (pins_ > 0 || !deadline_.has_value()) {
      changed_.Wait(mutex_);
    } else if (!changed_.WaitUntil(mutex_, *deadline_) && pins_ == 0 && unfinished_ > 0 &&
               error_.ok()) {
      error_ = absl::DeadlineExceededError(
          steps_.empty() ? "The call's time limit passed while it waited for a batch"
                         : "The call's time limit passed while its batch ran");
    }
  }
  return error_;
}

}  // namespace weir::serving
