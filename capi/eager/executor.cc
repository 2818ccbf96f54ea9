#include "weir/capi/eager/executor.h"

#include <algorithm>

#include "weir/core/tensor/exception.h"

namespace weir::capi {

absl::StatusOr<std::shared_ptr<EagerExecutor>> EagerExecutor::Make(bool is_async, int limit) {
  std::shared_ptr<EagerExecutor> executor(new EagerExecutor(is_async, std::max(limit, 0)));
  if (is_async) {
    WEIR_RETURN_IF_ERROR(CatchExceptions("Starting the thread of an executor", [&] {
      executor->thread_ = std::thread([self = executor.get()] { self->Loop(); });
      return absl::OkStatus();
    }));
  }
  return executor;
}

EagerExecutor::~EagerExecutor() {
  {
    const MutexLock lock(mutex_);
    is_ended_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
  const MutexLock lock(mutex_);
  for (const auto& call : waiting_) call->Abort(absl::CancelledError("the executor was deleted"));
}

absl::Status EagerExecutor::Add(std::unique_ptr<Call> call) {
  const MutexLock lock(mutex_);
  while (limit_ > 0 && num_open() >= limit_ && error_.ok()) changed_.Wait(mutex_);
  WEIR_RETURN_IF_ERROR(error_);
  ++num_added_;
  waiting_.push_back(std::move(call));
  if (waiting_.size() == 1) changed_.NotifyAll();
  return absl::OkStatus();
}

absl::Status EagerExecutor::WaitForAll() {
  const MutexLock lock(mutex_);
  const int64_t last = num_added_;
  while (num_done_ < last && error_.ok()) changed_.Wait(mutex_);
  return error_;
}

void EagerExecutor::ClearError() {
  const MutexLock lock(mutex_);
  error_ = absl::OkStatus();
}

void EagerExecutor::Loop() {
  for (;;) {
    std::unique_ptr<Call> call;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !is_ended_) changed_.Wait(mutex_);
      if (is_ended_) return;
      call = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Run(*call);
    call.reset();  // releases its handles before anybody is told
    {
      const MutexLock lock(mutex_);
      ++num_done_;
    }
    changed_.NotifyAll();
  }
}

// The error is set before the outputs get it, so that whoever sees it there finds it here.
void EagerExecutor::Run(Call& call) {
  const absl::Status status = call.Run();
  if (status.ok()) return;
  std::deque<std::unique_ptr<Call>> dropped;
  {
    const MutexLock lock(mutex_);
    error_ = absl::Status(status.code(),
                          absl::StrCat(status.message(), "; this error cancels all operations ",
                                       "that follow, until it is cleared"));
    dropped.swap(waiting_);
    num_done_ += static_cast<int64_t>(dropped.size());
  }
  call.Abort(status);
  for (const auto& other : dropped) other->Abort(status);
}

}  // namespace weir::capi
