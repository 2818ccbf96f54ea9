#include "weir/rpc/lib/call_watch.h"

#include <grpcpp/server_context.h>

#include <algorithm>
#include <utility>

#include "weir/core/tensor/system_memory.h"

namespace weir::rpc {

namespace {

constexpr std::chrono::milliseconds kPeriod(50);
constexpr int kPeriodsPerTask = 20;

}  // namespace

CallWatch::CallWatch(int max_calls, int max_receiving, std::chrono::milliseconds transfer_limit,
                     std::function<void()> periodic_task)
    : max_calls_(max_calls),
      max_receiving_(max_receiving),
      transfer_limit_(transfer_limit),
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
    const auto now = std::chrono::steady_clock::now();
    const auto next = now + kPeriod;
    while (!stopping_ &&
           wake_.WaitUntil(mutex_, end_calls_at_ > now ? std::min(next, end_calls_at_) : next)) {
    }
    if (stopping_) return;
    CancelCalls();
    mutex_.unlock();
    const bool has_memory = SystemBytesFree(MemoryUse::kSmall) > 0;
    if (period % kPeriodsPerTask == 0) periodic_task_();
    mutex_.lock();
    has_memory_ = has_memory;
  }
}

void CallWatch::CancelCalls() {
  const auto now = std::chrono::steady_clock::now();
  for (ScopedCall* call : calls_) {
    if (now >= end_calls_at_) call->call_.cancellation.Cancel(why_calls_end_);
    if (now > call->transfer_until_) call->context_.TryCancel();
    if (!call->context_.IsCancelled()) continue;
    const bool is_late = call->context_.deadline() <= std::chrono::system_clock::now();
    call->call_.cancellation.Cancel(
        is_late ? absl::DeadlineExceededError("The deadline of the call has passed.")
                : absl::CancelledError("The client has cancelled the call."));
  }
}

void CallWatch::EndCallsAt(std::chrono::steady_clock::time_point when, absl::Status why) {
  {
    const MutexLock lock(mutex_);
    end_calls_at_ = when;
    why_calls_end_ = std::move(why);
  }
  wake_.NotifyAll();
}

std::chrono::steady_clock::time_point CallWatch::TransferEnd() const {
  if (transfer_limit_.count() == 0) return std::chrono::steady_clock::time_point::max();
  return std::chrono::steady_clock::now() + transfer_limit_;
}

int CallWatch::num_calls() const {
  const MutexLock lock(mutex_);
  return static_cast<int>(calls_.size());
}

CallWatch::ScopedCall::ScopedCall(CallWatch& watch, grpc::ServerContextBase& context, Kind kind)
    : watch_(watch), context_(context), kind_(kind), transfer_until_(watch.TransferEnd()) {
  call_.connection = context.peer();
  client_ = call_.connection.substr(0, call_.connection.rfind(':'));
  const int limit = watch_.max_receiving_ / 2;
  const MutexLock lock(watch_.mutex_);
  watch_.calls_.insert(this);
  int& receiving = watch_.num_receiving_[client_];
  if (receiving >= limit) {
    admission_ = absl::ResourceExhaustedError(
        absl::StrCat("The server is waiting for ", limit, " requests of ", client_,
                     " that are sent in part, and accepts no more of them"));
    return;
  }
  ++receiving;
  is_receiving_ = true;
}

CallWatch::ScopedCall::~ScopedCall() {
  const MutexLock lock(watch_.mutex_);
  watch_.calls_.erase(this);
  StopReceiving();
  StopWorking();
}

absl::Status CallWatch::ScopedCall::StartWork() {
  const MutexLock lock(watch_.mutex_);
  StopReceiving();
  transfer_until_ = Clock::time_point::max();
  if (kind_ == Kind::kAdministration) return absl::OkStatus();
  if (watch_.num_working_ >= watch_.max_calls_) {
    return absl::ResourceExhaustedError(absl::StrCat("The server has reached its limit of ",
                                                     watch_.max_calls_,
                                                     " concurrent calls (weir serve --max-calls)"));
  }
  if (!watch_.has_memory_) {
    return absl::ResourceExhaustedError(
        "OOM: the server has hardly any memory left, and begins no work until some is free");
  }
  is_working_ = true;
  ++watch_.num_working_;
  return absl::OkStatus();
}

void CallWatch::ScopedCall::StartSending() {
  const MutexLock lock(watch_.mutex_);
  transfer_until_ = watch_.TransferEnd();
}

void CallWatch::ScopedCall::StopReceiving() {
  if (!std::exchange(is_receiving_, false)) return;
  const auto count = watch_.num_receiving_.find(client_);
  if (--count->second == 0) watch_.num_receiving_.erase(count);
}

void CallWatch::ScopedCall::StopWorking() {
  if (std::exchange(is_working_, false)) --watch_.num_working_;
}

}  // namespace weir::rpc
