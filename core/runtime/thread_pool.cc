#include "weir/core/runtime/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "weir/core/runtime/float_mode.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/heap.h"
#include "weir/core/tensor/memory_quota.h"

namespace weir {

// Scheduling of loops. A loop lives on the stack of the thread that starts it; it has counters from
// which threads draw chunks until none are left. The starter publishes the loop in `loops_`, draws
// chunks itself, withdraws the loop when all are drawn, and then waits only for the threads that
// still run a chunk (`users`). So if the helpers never wake up, the starter pays only for
// publishing the loop.
//
// The chunks of a loop are divided into one part per thread (at most kMaxParts, which threads then
// share). Every thread begins with its own part before it steals from the others. So the image rows
// that a thread computes in one loop are those that it reads in the next, and they are in its
// core's cache: fetching them from another core's cache took a depthwise convolution longer than
// computing it (Markatos and LeBlanc, "Using processor affinity in loop scheduling", 1994).
//
// Idle threads first spin on `posted_` for one to two hundred microseconds, because in a training
// step the next loop usually starts within that time, and waking a sleeping thread takes tens of
// microseconds in a virtual machine, longer than many loops. Then they sleep on a condition
// variable. The publisher notifies only if a thread sleeps. A thread that waits for the pool helps
// it one chunk at a time, so that it notices soon when its wait is over. The number of chunks
// exceeds the number of threads only while chunks are large enough to justify a hand-over
// (kMinChunkNs): a preempted thread then delays its loop by one chunk rather than by its whole
// share.
//
// Several threads may run steps on one pool. With helpers, there would be more threads than
// processors, and the starter of a loop would wait for a helper that is not running. So a worker
// helps only while it and the callers have one processor each: 4 threads that call a small network
// on two processors got 51,000 results per second with helpers, and get 62,000 without.
//
// An exception in a chunk (std::bad_alloc) ends its loop: the chunks not yet started are skipped,
// and when all threads have left, the starter of the loop rethrows the exception. Cancellation of a
// step ends its loops in the same way: threads check before each chunk. Therefore chunks take at
// most kMaxChunkNs, even if one thread runs all of them.

namespace {

constexpr double kMinLoopNs = 20e3;
constexpr double kMinChunkNs = 10e3;
// Cost estimates may be a few times too low.
constexpr double kMaxChunkNs = 10e6;
constexpr int kChunksPerThread = 4;
constexpr std::chrono::microseconds kIdleSpin{150};
// A caller that has ended its step still counts for this long, in case it starts another one.
constexpr std::chrono::microseconds kCallerReturnWindow{200};
// The starter then yields: a helper that is not running needs the processor.
constexpr int kWaitSpins = 2000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int AvailableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

struct ThreadPool::Loop {
  static constexpr int kMaxParts = 16;

  // A range of chunks that ends at `last`; `next` is the first chunk not yet drawn, if less. On its
  // own cache line, since mostly one thread draws from it.
  struct alignas(64) Part {
    std::atomic<int64_t> next{0};
    int64_t last = 0;
    bool is_left() const { return next.load(std::memory_order_relaxed) < last; }
  };

  Loop(const ThreadPool* the_pool, int64_t size, int64_t chunk_size,
       absl::FunctionRef<void(int64_t, int64_t)> f)
      : pool(the_pool), n(size), chunk(chunk_size), body(f) {
    const int64_t chunks = (n + chunk - 1) / chunk;
    num_parts = static_cast<int>(std::min<int64_t>({chunks, pool->num_threads(), kMaxParts}));
    for (int i = 0; i < num_parts; ++i) {
      parts[i].next.store(chunks * i / num_parts, std::memory_order_relaxed);
      parts[i].last = chunks * (i + 1) / num_parts;
    }
  }

  bool is_left() const {
    return std::any_of(parts, parts + num_parts, [](const Part& p) { return p.is_left(); });
  }

  void Fail(std::exception_ptr why) {
    if (!failed.exchange(true)) error = std::move(why);
  }

  const ThreadPool* const pool;
  const int64_t n, chunk;
  const FloatMode mode = FloatMode::Current();
  const Cancellation* const cancellation = ScopedCancellation::Current();
  MemoryQuota* const memory = MemoryQuota::Current();
  const absl::FunctionRef<void(int64_t, int64_t)> body;
  int num_parts = 0;
  Part parts[kMaxParts];
  std::atomic<int> users{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
};

namespace {

// Identifies this thread within its pool.
struct ThreadIdentity {
  const ThreadPool* pool = nullptr;
  int index = 0;
};
thread_local ThreadIdentity this_thread;
// The Caller of this thread, if the thread does not belong to the pool.
thread_local ThreadPool::Caller* this_caller = nullptr;

// External threads count as thread 0: they are the callers of the pool.
int IndexIn(const ThreadPool* pool) { return this_thread.pool == pool ? this_thread.index : 0; }

}  // namespace

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads > 0 ? num_threads : AvailableProcessors()) {
  try {
    for (int i = 1; i < num_threads_; ++i) {
      threads_.emplace_back([this, i] {
        this_thread = {this, i};
        Worker();
      });
    }
  } catch (...) {  // there can be no more threads, and the destructor will not run
    {
      const MutexLock lock(mutex_);
      stop_ = true;
      posted_.fetch_add(1, std::memory_order_release);
    }
    wake_.NotifyAll();
    for (std::thread& t : threads_) t.join();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    posted_.fetch_add(1, std::memory_order_release);
  }
  wake_.NotifyAll();
  for (std::thread& t : threads_) t.join();
}

void ThreadPool::Schedule(std::function<void()> fn) {
  if (num_threads_ == 1) {
    fn();
    return;
  }
  PostEvent([&] {
    mutex_.AssertHeld();
    queue_.push_back(
        [fn = std::move(fn), mode = FloatMode::Current(), memory = MemoryQuota::ShareCurrent()] {
          const ScopedFloatMode as_scheduled(mode);
          const ScopedMemoryQuota for_the_same(memory.get());
          fn();
        });
    return 1;
  });
}

void ThreadPool::Wake() {
  PostEvent([] { return 0; });
}

ThreadPool::Caller::Caller(ThreadPool& pool, bool schedules)
    : pool_(this_caller == nullptr && this_thread.pool != &pool ? &pool : nullptr) {
  if (pool_ == nullptr) return;
  this_caller = this;
  if (!schedules) return;
  const MutexLock lock(pool_->mutex_);
  pool_->Count(*this);
}

void ThreadPool::Count(Caller& caller) {
  if (caller.counted_) return;
  caller.counted_ = true;
  ++callers_;
  if (last_caller_ == std::this_thread::get_id()) last_caller_ = {};
}

// Returns this thread's Caller for this pool, if it is an external thread.
ThreadPool::Caller* ThreadPool::ThisCaller() const {
  return this_caller != nullptr && this_caller->pool_ == this ? this_caller : nullptr;
}

// A thread that has just left usually comes back at once.
int ThreadPool::NumCallers() const {
  if (last_caller_ == std::thread::id() || callers_ == 0 || callers_ >= num_threads_)
    return callers_;
  return callers_ +
         (std::chrono::steady_clock::now() - last_caller_left_at_ < kCallerReturnWindow ? 1 : 0);
}

bool ThreadPool::HasRoom() {
  const MutexLock lock(mutex_);
  return NumCallers() < num_threads_;
}

ThreadPool::Caller::~Caller() {
  if (pool_ == nullptr) return;
  this_caller = nullptr;
  if (!counted_) return;
  const MutexLock lock(pool_->mutex_);
  --pool_->callers_;
  pool_->last_caller_ = std::this_thread::get_id();
  pool_->last_caller_left_at_ = std::chrono::steady_clock::now();
}

// Announces an event, recorded by `what`, to spinning threads, to sleeping helpers, and to as many
// sleeping workers as `what` returns. Everything happens under the lock: otherwise the work that an
// external thread schedules could complete, and the thread waiting for it could delete the pool,
// before the scheduling thread returns from this function.
void ThreadPool::PostEvent(absl::FunctionRef<int()> what) {
  const MutexLock lock(mutex_);
  const int workers = what();
  posted_.fetch_add(1, std::memory_order_release);
  if (sleeping_ > 0 && workers > 0) workers == 1 ? wake_.NotifyOne() : wake_.NotifyAll();
  if (sleeping_helpers_ > 0) wake_helpers_.NotifyAll();
}

bool ThreadPool::RunChunk(Loop& loop) {
  const int own = IndexIn(loop.pool) % loop.num_parts;
  for (int i = 0; i < loop.num_parts; ++i) {
    Loop::Part& part = loop.parts[(own + i) % loop.num_parts];
    if (!part.is_left()) continue;
    const int64_t drawn = part.next.fetch_add(1, std::memory_order_relaxed);
    if (drawn >= part.last) continue;
    if (loop.failed.load(std::memory_order_relaxed)) return true;
    const int64_t begin = drawn * loop.chunk;
    try {
      ThrowIfCancelled();
      loop.body(begin, std::min(loop.n, begin + loop.chunk));
    } catch (...) {
      loop.Fail(std::current_exception());
    }
    return true;
  }
  return false;
}

void ThreadPool::RunLoop(Loop& loop) {
  const ScopedFloatMode as_started(loop.mode);
  const ScopedCancellation of_its_step(loop.cancellation);
  const ScopedMemoryQuota for_its_step(loop.memory);
  while (RunChunk(loop)) {
  }
}

void ThreadPool::ParallelFor(int64_t n, double cost, absl::FunctionRef<void(int64_t, int64_t)> body,
                             int64_t align) {
  if (n <= 0) return;
  ThrowIfCancelled();
  const bool alone = num_threads_ == 1;
  const double total = static_cast<double>(n) * cost;
  if (n <= align || total < (alone ? kMaxChunkNs : kMinLoopNs)) {
    body(0, n);
    return;
  }
  const double for_threads =
      alone ? 1
            : std::min(total / kMinChunkNs, static_cast<double>(num_threads_ * kChunksPerThread));
  const double chunks = std::max(for_threads, total / kMaxChunkNs);
  int64_t chunk = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(n) / chunks));
  chunk = (chunk + align - 1) / align * align;
  if (alone) {
    for (int64_t begin = 0; begin < n; begin += chunk) {
      ThrowIfCancelled();
      body(begin, std::min(n, begin + chunk));
    }
    return;
  }
  Loop loop(this, n, chunk, body);
  RunShared(loop);
}

void ThreadPool::ForEach(int n, absl::FunctionRef<void(int)> body) {
  if (num_threads_ == 1 || n <= 1) {
    for (int i = 0; i < n; ++i) {
      ThrowIfCancelled();
      body(i);
    }
    return;
  }
  const auto one = [&](int64_t begin, int64_t) { body(static_cast<int>(begin)); };
  Loop loop(this, n, 1, one);
  RunShared(loop);
}

void ThreadPool::RunShared(Loop& loop) {
  PostEvent([&] {
    mutex_.AssertHeld();
    if (Caller* const caller = ThisCaller(); caller != nullptr) Count(*caller);
    loops_.push_back(&loop);
    return std::max(0, num_threads_ - NumCallers());
  });
  RunLoop(loop);
  {
    const MutexLock lock(mutex_);
    std::erase(loops_, &loop);
  }
  for (int spins = 0; loop.users.load(std::memory_order_acquire) != 0; ++spins) {
    spins < kWaitSpins ? Pause() : std::this_thread::yield();
  }
  if (loop.error) std::rethrow_exception(loop.error);
}

// Returns a loop with chunks left, and counts this thread as a user; null if there is none.
ThreadPool::Loop* ThreadPool::JoinLoop() {
  const auto open =
      std::find_if(loops_.begin(), loops_.end(), [](const Loop* l) { return l->is_left(); });
  if (open == loops_.end()) return nullptr;
  (*open)->users.fetch_add(1, std::memory_order_relaxed);
  return *open;
}

// Spins until an event is posted. Returns false if none is posted within kIdleSpin.
bool ThreadPool::SpinWhile(uint64_t seen) const {
  const auto end = std::chrono::steady_clock::now() + kIdleSpin;
  for (int spins = 1;; ++spins) {
    if (posted_.load(std::memory_order_acquire) != seen) return true;
    Pause();
    if (spins % 64 == 0 && std::chrono::steady_clock::now() >= end) return false;
  }
}

void ThreadPool::Worker() {
  const int index = this_thread.index;
  const MutexLock lock(mutex_);
  while (!stop_) {
    if (Loop* const loop = MayHelp(index) ? JoinLoop() : nullptr; loop != nullptr) {
      mutex_.unlock();
      {
        const ScopedHeapCount heap_of_its_step;
        RunLoop(*loop);
      }
      loop->users.fetch_sub(1, std::memory_order_release);
      mutex_.lock();
    } else if (!queue_.empty()) {
      std::function<void()> fn = std::move(queue_.front());
      queue_.pop_front();
      mutex_.unlock();
      fn();
      fn = nullptr;
      mutex_.lock();
    } else {
      const uint64_t seen = posted_.load(std::memory_order_relaxed);
      if (MayHelp(index)) {
        mutex_.unlock();
        SpinWhile(seen);
        mutex_.lock();
      }
      if (posted_.load(std::memory_order_relaxed) == seen && !stop_) {
        ++sleeping_;
        while (posted_.load(std::memory_order_relaxed) == seen && !stop_) wake_.Wait(mutex_);
        --sleeping_;
      }
    }
  }
}

bool ThreadPool::HelpUntil(absl::FunctionRef<bool()> done,
                           std::optional<std::chrono::steady_clock::time_point> deadline) {
  for (;;) {
    const uint64_t seen = posted_.load(std::memory_order_acquire);
    if (done()) return true;
    if (deadline && std::chrono::steady_clock::now() >= *deadline) return false;
    Loop* loop;
    {
      const MutexLock lock(mutex_);
      loop = JoinLoop();
    }
    if (loop != nullptr) {
      {
        const ScopedFloatMode as_started(loop->mode);
        const ScopedCancellation of_its_step(loop->cancellation);
        const ScopedMemoryQuota for_its_step(loop->memory);
        const ScopedHeapCount heap_of_its_step;
        RunChunk(*loop);
      }
      loop->users.fetch_sub(1, std::memory_order_release);
      continue;
    }
    if (SpinWhile(seen)) continue;
    const MutexLock lock(mutex_);
    const Caller* const caller = ThisCaller();
    const bool counted = caller != nullptr && caller->counted_;
    if (counted) --callers_;
    ++sleeping_helpers_;
    while (posted_.load(std::memory_order_relaxed) == seen) {
      if (!deadline) {
        wake_helpers_.Wait(mutex_);
      } else if (!wake_helpers_.WaitUntil(mutex_, *deadline)) {
        break;
      }
    }
    --sleeping_helpers_;
    if (counted) ++callers_;
  }
}

ThreadPool& ThreadPool::ForTiles() {
  static ThreadPool* const pool = new ThreadPool(1);
  return *pool;
}

ThreadPool& DefaultThreadPool() {
  static ThreadPool* const pool = new ThreadPool(0);
  return *pool;
}

}  // namespace weir
