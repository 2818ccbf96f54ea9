#include "weir/core/tensor/cancellation.h"

namespace weir {

thread_local constinit const Cancellation* ScopedCancellation::current_ = nullptr;

bool Cancellation::OnCancel(std::function<void()> fn, int64_t* token) {
  const MutexLock lock(mutex_);
  if (cancelled()) return false;
  *token = next_token_++;
  callbacks_.emplace_back(*token, std::move(fn));
  return true;
}

void Cancellation::Unregister(int64_t token) {
  const MutexLock lock(mutex_);
  const size_t erased =
      std::erase_if(callbacks_, [token](const auto& c) { return c.first == token; });
  if (erased > 0 || canceller_ == std::this_thread::get_id()) return;
  while (running_) ran_.Wait(mutex_);
}

// A callback may call Cancel again (a waiter that gives up fails its step); the second call does
// nothing.
void Cancellation::Cancel(absl::Status why) {
  std::vector<std::pair<int64_t, std::function<void()>>> callbacks;
  {
    const MutexLock lock(mutex_);
    if (cancelled()) return;
    running_ = true;
    why_ = std::move(why);
    canceller_ = std::this_thread::get_id();
    cancelled_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
  }
  {
    const ScopedCancellation none(nullptr);  // callbacks may do work of other steps
    for (auto& [token, fn] : callbacks) fn();
  }
  const MutexLock lock(mutex_);
  running_ = false;
  ran_.NotifyAll();
}

absl::Status Cancellation::status() const {
  const MutexLock lock(mutex_);
  return why_;
}

void ScopedCancellation::Throw() { throw StepCancelled{current_->status()}; }

}  // namespace weir
