#include "weir/rpc/lib/timer.h"

#include <atomic>
#include <optional>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace weir::rpc {
namespace {

using std::chrono::milliseconds;

TEST(TimerTest, CallsInOrderOfTime) {
  std::vector<int> called;
  absl::Notification last;
  Timer timer;
  const auto now = Timer::Clock::now();
  timer.At(now + milliseconds(60), [&] { last.Notify(); });
  timer.At(now + milliseconds(40), [&] { called.push_back(2); });
  timer.At(now + milliseconds(20), [&] { called.push_back(1); });
  timer.At(now - milliseconds(20), [&] { called.push_back(0); });
  last.WaitForNotification();
  EXPECT_EQ(called, (std::vector<int>{0, 1, 2}));
  EXPECT_GE(Timer::Clock::now(), now + milliseconds(60));
}

TEST(TimerTest, WhatIsForgottenDoesNotRun) {
  std::atomic<bool> ran = false;
  Timer timer;
  const auto now = Timer::Clock::now();
  {
    const ScopedAlarm alarm(timer, now + milliseconds(30), [&] { ran = true; });
  }
  absl::Notification later;
  timer.At(now + milliseconds(60), [&] { later.Notify(); });
  later.WaitForNotification();
  EXPECT_FALSE(ran);
}

TEST(TimerTest, ForgetWaitsForAFunctionThatRuns) {
  std::atomic<bool> ended = false;
  absl::Notification running, may_end;
  Timer timer;
  const Timer::Alarm alarm = timer.At(Timer::Clock::now(), [&] {
    running.Notify();
    may_end.WaitForNotification();
    ended = true;
  });
  running.WaitForNotification();
  std::thread other([&] { may_end.Notify(); });
  timer.Forget(alarm);
  EXPECT_TRUE(ended);
  other.join();
}

// A function may forget itself, and set the next alarm.
TEST(TimerTest, FunctionsMayUseTheTimer) {
  absl::Notification done;
  Timer timer;
  std::optional<Timer::Alarm> alarm;
  Mutex mutex;
  const MutexLock lock(mutex);
  alarm = timer.At(Timer::Clock::now(), [&] {
    const MutexLock is_set(mutex);
    timer.Forget(*alarm);
    timer.At(Timer::Clock::now(), [&] { done.Notify(); });
  });
  mutex.unlock();
  done.WaitForNotification();
  mutex.lock();
}

}  // namespace
}  // namespace weir::rpc
