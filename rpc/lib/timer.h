#ifndef WEIR_RPC_LIB_TIMER_H_
#define WEIR_RPC_LIB_TIMER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "weir/core/tensor/mutex.h"

namespace weir::rpc {

// Calls functions at given times, all on one thread. Thread-safe.
class Timer {
 public:
  using Clock = std::chrono::steady_clock;
  // A function to be called: its time, and a number that tells it from others.
  using Alarm = std::pair<Clock::time_point, int64_t>;

  Timer();
  // Calls nothing more.
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Calls `fn` at this time, or at once if it has passed. `fn` must return soon: later ones wait.
  Alarm At(Clock::time_point when, std::function<void()> fn);
  // Returns when the function can no longer run, unless it is running on the calling thread.
  void Forget(const Alarm& alarm);

 private:
  void Run();

  Mutex mutex_;
  CondVar changed_;
  std::map<Alarm, std::function<void()>> alarms_ ABSL_GUARDED_BY(mutex_);
  int64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  Alarm running_ ABSL_GUARDED_BY(mutex_) = {{}, -1};  // -1: none
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// An alarm for the lifetime of this object.
class ScopedAlarm {
 public:
  // The timer outlives this object.
  ScopedAlarm(Timer& timer, Timer::Clock::time_point when, std::function<void()> fn)
      : timer_(timer), alarm_(timer.At(when, std::move(fn))) {}
  ~ScopedAlarm() { timer_.Forget(alarm_); }
  ScopedAlarm(const ScopedAlarm&) = delete;
  ScopedAlarm& operator=(const ScopedAlarm&) = delete;

 private:
  Timer& timer_;
  const Timer::Alarm alarm_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_TIMER_H_
