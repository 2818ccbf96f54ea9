#include "weir/rpc/lib/timer.h"

namespace weir::rpc {

Timer::Timer() : thread_([this] { Run(); }) {}

Timer::~Timer() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

Timer::Alarm Timer::At(Clock::time_point when, std::function<void()> fn) {
  const MutexLock lock(mutex_);
  const Alarm alarm(when, next_number_++);
  const bool is_first = alarms_.empty() || alarm < alarms_.begin()->first;
  alarms_.emplace(alarm, std::move(fn));
  if (is_first) changed_.NotifyAll();
  return alarm;
}

void Timer::Forget(const Alarm& alarm) {
  std::function<void()> fn;  // destroyed without the lock
  const MutexLock lock(mutex_);
  if (const auto found = alarms_.find(alarm); found != alarms_.end()) {
    fn = std::move(found->second);
    alarms_.erase(found);
    return;
  }
  if (thread_.get_id() == std::this_thread::get_id()) return;
  while (running_ == alarm) changed_.Wait(mutex_);
}

void Timer::Run() {
  const MutexLock lock(mutex_);
  while (!stopping_) {
    if (alarms_.empty()) {
      changed_.Wait(mutex_);
      continue;
    }
    const auto first = alarms_.begin();
    if (const Clock::time_point when = first->first.first; Clock::now() < when) {
      changed_.WaitUntil(mutex_, when);
      continue;
    }
    running_ = first->first;
    std::function<void()> fn = std::move(first->second);
    alarms_.erase(first);
    mutex_.unlock();
    fn();
    fn = nullptr;
    mutex_.lock();
    running_.second = -1;
    changed_.NotifyAll();
  }
}

}  // namespace weir::rpc
