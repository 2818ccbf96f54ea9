#include "weir/rpc/call_watch.h"

#include <grpcpp/server_context.h>

#include <utility>

namespace weir::rpc {

namespace {

constexpr std::chrono::milliseconds kPeriod(50);
constexpr int kPeriodsPerTask = 20;

}  // namespace

CallWatch::CallWatch(int max_calls, std::function<void()> periodic_task)
    : max_calls_(max_calls),
      periodic_task_(std::move(periodic_task)),
      thread_([this] { Watch(); }) {}

CallWatch::~CallWatch() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

// Calls cannot end while the lock is held, which is short: cancellation only runs callbacks, which
// end quickly.
void CallWatch::Watch() {
  const MutexLock lock(mutex_);
  for (int period = 1;; ++period) {
    const auto until = std::chrono::steady_clock::now() + kPeriod;
    while (!stopping_ && wake_.WaitUntil(mutex_, until)) {
    }
    if (stopping_) return;
    for (ScopedCall* call : calls_) {
      if (call->context_.IsCancelled())
        call->call_.cancellation.Cancel(absl::CancelledError("The client has cancelled the call."));
    }
    if (period % kPeriodsPerTask != 0) continue;
    mutex_.unlock();
    periodic_task_();
    mutex_.lock();
  }
}

int CallWatch::num_calls() const {
  const MutexLock lock(mutex_);
  return static_cast<int>(calls_.size());
}

CallWatch::ScopedCall::ScopedCall(CallWatch& watch, grpc::ServerContext& context, Kind kind)
    : watch_(watch), context_(context) {
  call_.connection = context.peer();
  const MutexLock lock(watch_.mutex_);
  watch_.calls_.insert(this);
  if (kind == Kind::kAdministration) return;
  if (watch_.num_working_ >= watch_.max_calls_) {
    admission_ = absl::ResourceExhaustedError(
        absl::StrCat("The server has reached its limit of ", watch_.max_calls_,
                     " concurrent calls (weir serve --max-calls)"));
    return;
  }
  counts_ = true;
  ++watch_.num_working_;
}

CallWatch::ScopedCall::~ScopedCall() {
  const MutexLock lock(watch_.mutex_);
  watch_.calls_.erase(this);
  if (counts_) --watch_.num_working_;
}

}  // namespace weir::rpc
