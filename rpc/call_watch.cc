#include "weir/rpc/call_watch.h"

#include <grpcpp/server_context.h>

#include <utility>

namespace weir::rpc {

namespace {

constexpr std::chrono::milliseconds kPeriod(50);
constexpr int kPeriodsPerTask = 20;

}  // namespace

CallWatch::CallWatch(std::function<void()> periodic_task)
    : periodic_task_(std::move(periodic_task)), thread_([this] { Watch(); }) {}

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
    for (Call* call : calls_) {
      if (call->context_.IsCancelled())
        call->cancellation_.Cancel(absl::CancelledError("The client has cancelled the call."));
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

CallWatch::Call::Call(CallWatch& watch, grpc::ServerContext& context)
    : watch_(watch), context_(context) {
  const MutexLock lock(watch_.mutex_);
  watch_.calls_.insert(this);
}

CallWatch::Call::~Call() {
  const MutexLock lock(watch_.mutex_);
  watch_.calls_.erase(this);
}

}  // namespace weir::rpc
