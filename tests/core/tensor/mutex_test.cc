#include "weir/core/tensor/mutex.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

static_assert(sizeof(Mutex) == sizeof(std::mutex));
static_assert(sizeof(SharedMutex) == sizeof(std::shared_mutex));

TEST(Mutex, OneThreadHoldsItAtATime) {
  Mutex mutex;
  int64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        const MutexLock lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 40'000);
}

TEST(SharedMutex, ReadersHoldItTogetherAndWritersAlone) {
  SharedMutex mutex;
  std::atomic<bool> read{false}, wrote{false};
  std::thread writer;
  {
    const ReaderLock here(mutex);
    std::thread reader([&] {
      const ReaderLock there(mutex);
      read = true;
    });
    reader.join();  // hangs if readers exclude each other
    EXPECT_TRUE(read);
    writer = std::thread([&] {
      const WriterLock lock(mutex);
      wrote = true;
    });
    std::this_thread::sleep_for(milliseconds(10));
    EXPECT_FALSE(wrote);
  }
  writer.join();
  EXPECT_TRUE(wrote);
}

TEST(CondVar, WaitReleasesTheMutexAndHoldsItAgain) {
  Mutex mutex;
  CondVar changed;
  bool asked = false, answered = false;
  std::thread other([&] {
    const MutexLock lock(mutex);
    while (!asked) changed.Wait(mutex);
    answered = true;
    changed.NotifyAll();
  });
  {
    const MutexLock lock(mutex);
    asked = true;
    changed.NotifyAll();
    while (!answered) changed.Wait(mutex);  // `other` needs the mutex meanwhile
  }
  other.join();
  const MutexLock free(mutex);  // hangs if a wait has kept it
}

TEST(CondVar, WaitUntilReturnsFalseAtTheDeadlineWithTheMutexHeld) {
  Mutex mutex;
  CondVar never;
  std::atomic<bool> taken{false};
  std::thread other;
  {
    const MutexLock lock(mutex);
    const auto deadline = steady_clock::now() + milliseconds(5);
    while (never.WaitUntil(mutex, deadline)) {
    }
    EXPECT_GE(steady_clock::now(), deadline);
    other = std::thread([&] {
      const MutexLock theirs(mutex);
      taken = true;
    });
    std::this_thread::sleep_for(milliseconds(10));
    EXPECT_FALSE(taken);
  }
  other.join();
}

}  // namespace
}  // namespace weir
