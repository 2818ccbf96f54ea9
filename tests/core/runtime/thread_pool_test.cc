#include "weir/core/runtime/thread_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/exception.h"

namespace weir {
namespace {

using Clock = std::chrono::steady_clock;

TEST(ThreadPool, LoopsCoverEveryIndexOnce) {
  ThreadPool pool(3);
  for (const int64_t n : {1, 7, 1000, 100003}) {
    std::vector<int> seen(n, 0);
    pool.ParallelFor(n, 1000, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[i];
    });
    EXPECT_THAT(seen, ::testing::Each(1)) << n;
  }
}

TEST(ThreadPool, ChunksBeginAtMultiplesOfTheAlignment) {
  ThreadPool pool(2);
  std::mutex mutex;
  std::set<int64_t> begins;
  pool.ParallelFor(
      1000, 1000,
      [&](int64_t begin, int64_t) {
        const std::lock_guard<std::mutex> lock(mutex);
        begins.insert(begin % 16);
      },
      16);
  EXPECT_EQ(begins, std::set<int64_t>{0});
}

// Each chunk waits for the other, so both threads take part. Each thread runs the same chunk as
// before, whichever thread starts the loop.
TEST(ThreadPool, EachThreadBeginsWithItsOwnPart) {
  ThreadPool pool(2);
  std::array<std::thread::id, 2> takers;
  const auto loop = [&] {
    std::atomic<int> started{0};
    pool.ForEach(2, [&](int i) {
      takers[i] = std::this_thread::get_id();
      ++started;
      while (started < 2) std::this_thread::yield();
    });
  };
  for (int round = 0; round < 20; ++round) {
    loop();
    EXPECT_EQ(takers[0], std::this_thread::get_id());
    std::atomic<bool> over{false};
    pool.Schedule([&] {
      loop();
      EXPECT_EQ(takers[1], std::this_thread::get_id());
      over = true;
      pool.Wake();
    });
    ASSERT_TRUE(pool.HelpUntil([&] { return over.load(); }));
  }
}

// Other threads steal the part of a thread that is busy elsewhere.
TEST(ThreadPool, PartsOfBusyThreadsAreStolen) {
  std::atomic<bool> over{false};
  std::atomic<int> busy{0};
  ThreadPool pool(4);
  for (int i = 0; i < 3; ++i) {
    pool.Schedule([&] {
      ++busy;
      while (!over) std::this_thread::yield();
    });
  }
  while (busy < 3) std::this_thread::yield();
  std::vector<int> seen(100, 0);
  pool.ForEach(100, [&](int i) { ++seen[i]; });
  EXPECT_THAT(seen, ::testing::Each(1));
  over = true;
}

// Two chunks wait for each other: the starter runs one of them, a worker the other, and one throws.
TEST(ThreadPool, RethrowsAnExceptionOfAChunk) {
  ThreadPool pool(2);
  for (const int thrower : {0, 1}) {
    std::atomic<int> here{0};
    const auto meet = [&](int chunk) {
      ++here;
      while (here < 2) std::this_thread::yield();
      if (chunk == thrower) throw std::bad_alloc();
    };
    EXPECT_THROW(pool.ForEach(2, meet), std::bad_alloc);
    EXPECT_EQ(here, 2);
  }
  std::atomic<int> ran{0};
  pool.ForEach(8, [&](int) { ++ran; });
  EXPECT_EQ(ran, 8);
}

// A server goes on when it can start no more threads.
TEST(ThreadPoolDeathTest, WithoutRoomForThreadsIsResourceExhausted) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "sanitizers need all the address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto check = [] {
    const rlimit space{200 << 20, 200 << 20};  // a stack takes 8 MB
    if (setrlimit(RLIMIT_AS, &space) != 0) std::abort();
    const absl::Status status = CatchExceptions("The pool", [] {
      const ThreadPool pool(1000);
      return absl::OkStatus();
    });
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    _exit(0);
  };
  EXPECT_EXIT(check(), ::testing::ExitedWithCode(0), "RESOURCE_EXHAUSTED: OOM: .* thread");
}

// Half a second of work: either one thread runs all of it, or two share it.
TEST(ThreadPool, LongLoopsRunInShortChunks) {
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    std::atomic<int64_t> covered{0}, longest{0};
    pool.ParallelFor(1000, 0.5e6, [&](int64_t begin, int64_t end) {
      covered += end - begin;
      int64_t seen = longest;
      while (seen < end - begin && !longest.compare_exchange_weak(seen, end - begin)) {
      }
    });
    EXPECT_EQ(covered, 1000);
    EXPECT_LE(longest, 25) << threads << " threads";
  }
}

// When the step ends, all threads skip the chunks that have not started.
TEST(ThreadPool, TheLoopsOfACancelledStepEnd) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    Cancellation cancellation;
    const ScopedCancellation of_step(&cancellation);
    std::atomic<int> ran{0};
    try {
      pool.ForEach(1000, [&](int) {
        ++ran;
        cancellation.Cancel(absl::CancelledError("enough"));
      });
      ADD_FAILURE() << "no exception";
    } catch (const StepCancelled& cancelled) {
      EXPECT_EQ(cancelled.why, absl::CancelledError("enough"));
    }
    EXPECT_LE(ran, threads);
    EXPECT_THROW(pool.ParallelFor(1, 1, [&](int64_t, int64_t) { ++ran; }), StepCancelled);
    EXPECT_LE(ran, threads);
  }
}

// A scheduled loop that ends only if two threads take part in it.
struct LoopOfTwo {
  explicit LoopOfTwo(ThreadPool& pool) {
    pool.Schedule([this, &pool] {
      pool.ForEach(2, [this](int) {
        ++started;
        while (started < 2) std::this_thread::yield();
      });
      over = true;
      pool.Wake();
    });
  }
  std::atomic<int> started{0};
  std::atomic<bool> over{false};
};

// A helper observes the cancellation of the loop's step, not of its own.
TEST(ThreadPool, HelpersObserveTheCancellationOfTheLoop) {
  ThreadPool pool(2);
  Cancellation cancellation;
  cancellation.Cancel(absl::CancelledError("enough"));
  const ScopedCancellation of_step(&cancellation);
  LoopOfTwo loop(pool);
  EXPECT_TRUE(pool.HelpUntil([&] { return loop.over.load(); }));
  EXPECT_EQ(loop.started, 2);
}

TEST(ThreadPool, WaitingThreadsHelpWithLoops) {
  ThreadPool pool(2);
  LoopOfTwo loop(pool);
  EXPECT_TRUE(
      pool.HelpUntil([&] { return loop.over.load(); }, Clock::now() + std::chrono::minutes(1)));
  EXPECT_TRUE(loop.over);
}

TEST(ThreadPool, WaitingThreadsAreWoken) {
  ThreadPool pool(2);
  std::atomic<bool> over{false};
  pool.Schedule([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    over = true;
    pool.Wake();
  });
  EXPECT_TRUE(pool.HelpUntil([&] { return over.load(); }));
}

TEST(ThreadPool, WaitingEndsAtTheDeadline) {
  ThreadPool pool(2);
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(20);
  EXPECT_FALSE(pool.HelpUntil([] { return false; }, deadline));
  EXPECT_GE(Clock::now(), deadline);
}

// Two external threads run steps on a pool of two threads: neither helps the other.
TEST(ThreadPool, CallersOfAFullPoolGetNoHelp) {
  ThreadPool pool(2);
  std::atomic<int> in_step{0}, done{0}, by_others{0};
  const auto call = [&] {
    const ThreadPool::Caller caller(pool, /*schedules=*/true);
    ++in_step;
    while (in_step < 2) std::this_thread::yield();
    EXPECT_FALSE(pool.HasRoom());
    const std::thread::id self = std::this_thread::get_id();
    for (int i = 0; i < 50; ++i) {
      pool.ForEach(16, [&](int) {
        if (std::this_thread::get_id() != self) ++by_others;
        std::this_thread::sleep_for(std::chrono::microseconds(10));
      });
    }
    ++done;
    while (done < 2) std::this_thread::yield();
  };
  std::thread other(call);
  call();
  other.join();
  EXPECT_EQ(by_others, 0);
}

// Each chunk of the loop waits for the other one to start, so a worker has to run one of them.
void ExpectHelp(ThreadPool& pool) {
  std::atomic<int> begun{0};
  pool.ForEach(2, [&](int) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
  });
  EXPECT_EQ(begun, 2);
}

TEST(ThreadPool, ASingleCallerIsHelped) {
  ThreadPool pool(2);
  for (int step = 0; step < 20; ++step) {
    const ThreadPool::Caller caller(pool, step % 2 == 0);
    EXPECT_TRUE(pool.HasRoom());
    ExpectHelp(pool);
  }
}

TEST(ThreadPool, NestedCallersCountOnce) {
  ThreadPool pool(2);
  const ThreadPool::Caller caller(pool, /*schedules=*/true);
  const ThreadPool::Caller of_a_function(pool, /*schedules=*/true);
  ExpectHelp(pool);
}

TEST(ThreadPool, SleepingCallersDoNotCount) {
  ThreadPool pool(2);
  std::atomic<bool> in_step{false}, over{false};
  std::thread sleeper([&] {
    const ThreadPool::Caller caller(pool, /*schedules=*/true);
    in_step = true;
    pool.HelpUntil([&] { return over.load(); });
  });
  while (!in_step) std::this_thread::yield();
  {
    const ThreadPool::Caller caller(pool, /*schedules=*/true);
    while (!pool.HasRoom()) std::this_thread::yield();  // until it sleeps
  }
  over = true;
  pool.Wake();
  sleeper.join();
}

TEST(ThreadPool, DepartedCallersFreeTheirThreads) {
  ThreadPool pool(2);
  const ThreadPool::Caller caller(pool, /*schedules=*/true);
  std::thread([&] { const ThreadPool::Caller other(pool, /*schedules=*/true); }).join();
  while (!pool.HasRoom()) std::this_thread::yield();
  ExpectHelp(pool);
}

// A sleeping helper must not consume the notification that was to wake a worker for a job.
TEST(ThreadPool, JobsRunWhileHelpersSleep) {
  ThreadPool pool(2);
  std::atomic<bool> over{false};
  std::thread waiting([&] { pool.HelpUntil([&] { return over.load(); }); });
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> ran{false};
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.Schedule([&] { ran = true; });
    while (!ran) std::this_thread::yield();
  }
  over = true;
  pool.Wake();
  waiting.join();
}

// The thread that schedules a job may still be in Schedule when the job is done.
TEST(ThreadPool, MayBeDeletedAsSoonAsAJobIsDone) {
  for (int i = 0; i < 200; ++i) {
    auto pool = std::make_unique<ThreadPool>(2);
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // workers sleep
    std::atomic<bool> ran{false};
    std::thread outside([&ran, &pool = *pool] { pool.Schedule([&ran] { ran = true; }); });
    while (!ran) std::this_thread::yield();
    pool.reset();
    outside.join();
  }
}

}  // namespace
}  // namespace weir
