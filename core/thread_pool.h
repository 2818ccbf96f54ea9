#ifndef WEIR_CORE_THREAD_POOL_H_
#define WEIR_CORE_THREAD_POOL_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace weir {

// The one pool of threads of a process or session: kernels split loops over it, the executor runs
// tasks on it. The calling thread always works too, so a pool of one thread starts none. Work may
// start more work; a thread that waits for a loop it started helps with that loop, never with
// foreign work, so nested loops do not deadlock. What runs on a thread of the pool has the mode for
// floats (core/float_mode.h) of the thread that started it.
class ThreadPool {
 public:
  // `num_threads` counts the caller: 1 runs everything inline. 0 takes the number of processors
  // this process may use.
  explicit ThreadPool(int num_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // For work that is a chunk of something larger, cut by its sizes: a pool of one thread, whose
  // kernels leave sums and calls of libraries whole that they would cut elsewhere.
  static ThreadPool& ForTiles();
  bool is_for_tiles() const { return this == &ForTiles(); }

  // Stands for a step that runs on this thread, as long as it lives. Each thread from outside that
  // runs loops in its step, and does not sleep, takes the place of one of the pool's: with as many
  // callers as threads, each computes its loops by itself, and no thread waits for a processor.
  // Within another Caller, and on the pool's own threads, it is nothing; so is a step without
  // loops, unless it `schedules`.
  class Caller {
   public:
    Caller(ThreadPool& pool, bool schedules);
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    friend class ThreadPool;
    void Count();  // needs the lock

    ThreadPool* const pool_;  // null: nothing
    bool counted_ = false;
  };

  // Whether there are threads besides callers, for what might be scheduled.
  bool HasRoom();

  // Runs `fn` on some thread of the pool, soon. Inline if the pool has one thread.
  void Schedule(std::function<void()> fn);

  // Calls body(begin, end) for chunks that together cover [0, n), on several threads at once, and
  // returns when all are done. `cost` is an estimate of nanoseconds per index: loops under about 20
  // us run inline, chunks are not smaller than about 10 us and not more than a few a thread, unless
  // they would take more than about 10 ms: then there are more of them, also on one thread. Chunks
  // begin at multiples of `align`. Each thread begins with its own part of [0, n): one loop after
  // another over the same range finds what the last one made in the caches of the same cores. The
  // first exception of a chunk is rethrown here, when no chunk runs any more; so is StepCancelled
  // (core/cancellation.h), if the step that the calling thread works for is over before the last
  // chunk has begun.
  void ParallelFor(int64_t n, double cost, absl::FunctionRef<void(int64_t, int64_t)> body,
                   int64_t align = 1);

  // Calls body(i) for i in [0, n), each on its own, several at once: for a few big chunks that the
  // caller cut itself.
  void ForEach(int n, absl::FunctionRef<void(int)> body);

  // For a thread that has handed its work to the pool and waits for the end of it: takes chunks of
  // any loops until `done()` is true, and sleeps while there are none. (A chunk may be a whole
  // slice of another step's batch.) `done` is asked anew after each chunk and whenever something is
  // scheduled, looped over, or Wake is called. False if the deadline came first.
  bool HelpUntil(absl::FunctionRef<bool()> done,
                 std::optional<std::chrono::steady_clock::time_point> deadline = {});
  // To be called when what a HelpUntil waits for has become true.
  void Wake();

 private:
  struct Loop;
  void Worker();
  void RunShared(Loop& loop);
  static void RunLoop(Loop& loop);
  static bool RunChunk(Loop& loop);
  Loop* JoinLoop();
  Caller* ThisCaller() const;
  int NumCallers() const;
  bool MayHelp(int worker) const { return worker + NumCallers() <= num_threads_; }
  void PostEvent(absl::FunctionRef<int()> what);
  bool SpinWhile(uint64_t seen) const;

  const int num_threads_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, wake_helpers_;
  std::deque<std::function<void()>> queue_;
  std::vector<Loop*> loops_;         // running loops that still have chunks
  std::atomic<uint64_t> posted_{0};  // bumped with each chunk of news; what idle threads spin on
  int sleeping_ = 0, sleeping_helpers_ = 0;  // workers; threads in HelpUntil
  int callers_ = 0;                          // that are counted
  std::thread::id last_caller_;              // the last to end its step, if it is not back yet, and
  std::chrono::steady_clock::time_point last_caller_left_at_;  // when that was
  bool stop_ = false;
};

// The pool that sessions use unless told otherwise: one thread a processor. Made on first use.
ThreadPool& DefaultThreadPool();

}  // namespace weir

#endif  // WEIR_CORE_THREAD_POOL_H_
