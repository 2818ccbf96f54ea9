#include "weir/core/thread_pool.h"

#include <array>
#include <memory>
#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/cancellation.h"

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

TEST(ThreadPool, PiecesBeginAtMultiplesOfTheAlignment) {
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

// Each piece waits for the other, so that both threads take part; whoever starts the loop, each
// takes the piece that it had before.
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

// A part whose thread is busy elsewhere is taken by the others.
TEST(ThreadPool, PartsThatNobodyBeginsWithAreTakenToo) {
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

// The pool's one thread starts a loop of two pieces, each of which waits for the other: it ends
// only if the thread that waits takes one.
// Two pieces that wait for each other: one is the starter's, the other a worker's, and one throws.
TEST(ThreadPool, WhatAPieceThrowsComesOutOfTheLoop) {
  ThreadPool pool(2);
  for (const int thrower : {0, 1}) {
    std::atomic<int> here{0};
    const auto meet = [&](int piece) {
      ++here;
      while (here < 2) std::this_thread::yield();
      if (piece == thrower) throw std::bad_alloc();
    };
    EXPECT_THROW(pool.ForEach(2, meet), std::bad_alloc);
    EXPECT_EQ(here, 2);
  }
  std::atomic<int> ran{0};
  pool.ForEach(8, [&](int) { ++ran; });
  EXPECT_EQ(ran, 8);
}

// Half a second of work: whether one thread has all of it or two share it.
TEST(ThreadPool, LongLoopsComeInShortPieces) {
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

// Pieces that nobody has begun when the step ends are left out, on all threads.
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

// A thread that helps looks at the step whose loop it is, not at its own.
TEST(ThreadPool, WhoHelpsAnotherStepDoesNotEndIt) {
  ThreadPool pool(2);
  Cancellation cancellation;
  cancellation.Cancel(absl::CancelledError("enough"));
  const ScopedCancellation of_step(&cancellation);
  LoopOfTwo loop(pool);
  EXPECT_TRUE(pool.HelpUntil([&] { return loop.over.load(); }));
  EXPECT_EQ(loop.started, 2);
}

TEST(ThreadPool, WhoWaitsHelpsWithLoops) {
  ThreadPool pool(2);
  LoopOfTwo loop(pool);
  EXPECT_TRUE(
      pool.HelpUntil([&] { return loop.over.load(); }, Clock::now() + std::chrono::minutes(1)));
  EXPECT_TRUE(loop.over);
}

TEST(ThreadPool, WhoWaitsIsWokenFromSleep) {
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

// Two threads from outside, in steps of a pool of two: nobody helps either.
TEST(ThreadPool, AsManyCallersAsThreadsRunTheirLoopsAlone) {
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

// Each of the loop's pieces waits for the other one to have begun, so a worker has to take it.
void ExpectHelp(ThreadPool& pool) {
  std::atomic<int> begun{0};
  pool.ForEach(2, [&](int) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
  });
  EXPECT_EQ(begun, 2);
}

TEST(ThreadPool, ACallerAloneIsHelped) {
  ThreadPool pool(2);
  for (int step = 0; step < 20; ++step) {
    const ThreadPool::Caller caller(pool, step % 2 == 0);
    EXPECT_TRUE(pool.HasRoom());
    ExpectHelp(pool);
  }
}

TEST(ThreadPool, ACallerWithinAnotherIsNoSecondOne) {
  ThreadPool pool(2);
  const ThreadPool::Caller caller(pool, /*schedules=*/true);
  const ThreadPool::Caller of_a_function(pool, /*schedules=*/true);
  ExpectHelp(pool);
}

TEST(ThreadPool, WhoSleepsIsNoCaller) {
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
    while (!pool.HasRoom()) std::this_thread::yield();  // until it has gone to sleep
  }
  over = true;
  pool.Wake();
  sleeper.join();
}

TEST(ThreadPool, PlacesOfCallersThatDoNotComeBackAreFree) {
  ThreadPool pool(2);
  const ThreadPool::Caller caller(pool, /*schedules=*/true);
  std::thread([&] { const ThreadPool::Caller other(pool, /*schedules=*/true); }).join();
  while (!pool.HasRoom()) std::this_thread::yield();
  ExpectHelp(pool);
}

// A sleeping helper must not swallow the call that was to wake a worker for a job.
TEST(ThreadPool, JobsRunWhileOthersWait) {
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

// The thread that has scheduled a job may still be about it when the job has been done.
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
