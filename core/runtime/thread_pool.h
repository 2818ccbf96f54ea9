#ifndef WEIR_CORE_RUNTIME_THREAD_POOL_H_
#define WEIR_CORE_RUNTIME_THREAD_POOL_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/mutex.h"

namespace WEIR_API weir {

// A thread pool of a process or session: kernels parallelize loops on it, the executor runs tasks
// on it. The calling thread always takes part, so a pool of one thread starts no threads. Work may
// start more work. A thread that waits for a loop it started helps only with that loop, so nested
// loops do not deadlock. Work runs with the floating-point mode (core/runtime/float_mode.h) of the
// thread that submitted it.
class ThreadPool {
 public:
  // `num_threads` includes the caller: 1 runs everything inline; 0 uses the number of processors
  // available to this process.
  explicit ThreadPool(int num_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The number of threads that work, including the calling one.
  int num_threads() const { return num_threads_; }

  // A pool of one thread for work that is one tile of a larger computation. Kernels do not split
  // the reductions and library calls of a tile, which they would split elsewhere.
  static ThreadPool& ForTiles();
  // Whether this is that pool.
  bool is_for_tiles() const { return this == &ForTiles(); }

  // Declares, for its lifetime, that this thread runs a step. An external thread that runs loops in
  // its step, and does not sleep, takes the place of one of the pool's threads: with as many
  // callers as threads, each caller computes its loops alone, and no thread waits for a processor.
  // No effect inside another Caller and on the pool's own threads; nor in a step without loops,
  // unless it `schedules` work.
  class Caller {
   public:
    // `pool` outlives the Caller. `schedules`: the step hands work to the pool (see above).
    Caller(ThreadPool& pool, bool schedules);
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    friend class ThreadPool;

    ThreadPool* const pool_;  // null: no effect
    bool counted_ = false;
  };

  // Returns true if the pool has threads to spare besides the callers, to run scheduled work.
  bool HasRoom();

  // Runs `fn` asynchronously on a thread of the pool; inline if the pool has one thread.
  void Schedule(std::function<void()> fn);

  // Calls body(begin, end) for chunks that together cover [0, n), on several threads, and returns
  // when all are done. `cost` is an estimate of the nanoseconds per index. Loops under about 20 us
  // run inline. Chunks take at least about 10 us, and there are at most a few per thread, unless
  // they would take more than about 10 ms; then there are more of them, even on one thread. Chunks
  // begin at multiples of `align`. Each thread begins with its own part of [0, n), so consecutive
  // loops over the same range find the data of the previous loop in the caches of the same cores.
  // Rethrows the first exception of a chunk when no chunk is running any more; also throws
  // StepCancelled (core/tensor/cancellation.h) if the step of the calling thread is cancelled
  // before the last chunk has started.
  void ParallelFor(int64_t n, double cost, absl::FunctionRef<void(int64_t, int64_t)> body,
                   int64_t align = 1);

  // Calls body(i) for each i in [0, n), several at a time: for a few large tasks that the caller
  // has divided itself.
  void ForEach(int n, absl::FunctionRef<void(int)> body);

  // For a thread that waits for work it has handed to the pool: runs chunks of any loops until
  // `done()` returns true, and sleeps while there are none. (A chunk may be a whole tile of another
  // step's batch.) Calls `done` after each chunk and whenever work is scheduled, a loop is started,
  // or Wake is called. Returns false if the deadline passes first.
  bool HelpUntil(absl::FunctionRef<bool()> done,
                 std::optional<std::chrono::steady_clock::time_point> deadline = {});
  // Call when the condition of a HelpUntil has become true.
  void Wake();

 private:
  struct Loop;
  void Worker();
  void RunShared(Loop& loop);
  static void RunLoop(Loop& loop);
  static bool RunChunk(Loop& loop);
  Loop* JoinLoop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Caller* ThisCaller() const;
  void Count(Caller& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int NumCallers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayHelp(int worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return worker + NumCallers() <= num_threads_;
  }
  void PostEvent(absl::FunctionRef<int()> what);
  bool SpinWhile(uint64_t seen) const;

  const int num_threads_;
  std::vector<std::thread> threads_;
  Mutex mutex_;
  CondVar wake_, wake_helpers_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<Loop*> loops_ ABSL_GUARDED_BY(mutex_);  // running loops that still have chunks
  std::atomic<uint64_t> posted_{0};  // incremented with each event; idle threads spin on it
  int sleeping_ ABSL_GUARDED_BY(mutex_) = 0;          // workers
  int sleeping_helpers_ ABSL_GUARDED_BY(mutex_) = 0;  // threads in HelpUntil
  int callers_ ABSL_GUARDED_BY(mutex_) = 0;           // counted Callers
  // The last thread to end its step, unless it is back, and when it did.
  std::thread::id last_caller_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point last_caller_left_at_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
};

// The default pool of sessions: one thread per processor. Created on first use.
ThreadPool& DefaultThreadPool();

}  // namespace weir

#endif  // WEIR_CORE_RUNTIME_THREAD_POOL_H_
