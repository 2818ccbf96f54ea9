#include "weir/core/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "weir/core/cancellation.h"
#include "weir/core/float_mode.h"

namespace weir {

// How work is shared out. A loop lives on the stack of the thread that started it: counters of
// chunks that threads draw from until none is left. The starter publishes it in `loops_`, draws
// chunks itself, withdraws the loop when all are drawn, and then waits only for the threads that
// are still inside (`users`). So a loop whose helpers never wake up costs its starter nothing but
// the publishing.
//
// The chunks of a loop are dealt into one part a thread (kMaxParts at most, which threads then have
// in common), and every thread begins with its own before it takes what is left of the others'. So
// the rows of an image that a thread has computed in one loop are those that it reads in the next,
// and lie in its core's cache: fetching them from the other core's took a depthwise convolution
// longer than computing it alone (Markatos and LeBlanc, "Using processor affinity in loop
// scheduling", 1994).
//
// Idle threads first spin on `posted_` for a hundred microseconds or two, because in a training
// step the next loop is rarely further away than that, and a thread that sleeps comes late: waking
// it takes tens of microseconds in a virtual machine, more than many a loop. Then they sleep on a
// condition variable. The publisher notifies only if somebody sleeps. A thread that has nothing to
// do but wait for the pool helps it one chunk at a time, so that it sees the end of its wait soon.
// Chunks are many more than threads only as far as their size stays worth a hand-over
// (kMinChunkNs): a preempted thread then delays its loop by one chunk, not by its share.
//
// Several threads may run steps on one pool. Together with helpers they would be more threads than
// processors, and whoever has started a loop would wait for a helper that does not run. So a worker
// helps only as long as it and the callers have a processor each: 4 threads that call a small
// network on two processors got 51,000 results a second with helpers, and get 62,000.
//
// An exception of a chunk (std::bad_alloc) ends its loop: chunks that nobody has begun are left
// out, and once all threads are back it is thrown where the loop was started. In the same way a
// loop ends whose step is cancelled: threads look before each chunk. So chunks are also not longer
// than kMaxChunkNs, even where one thread takes them all.

namespace {

constexpr double kMinLoopNs = 20e3;
constexpr double kMinChunkNs = 10e3;
// Estimates of cost may be a few times too low.
constexpr double kMaxChunkNs = 10e6;
constexpr int kChunksPerThread = 4;
constexpr std::chrono::microseconds kIdleSpin{150};
// A caller that has ended its step counts for as long, in case that it begins the next one.
constexpr std::chrono::microseconds kCallerReturnWindow{200};
// For helpers that are still inside: one that does not run needs the processor.
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

  // A stretch of chunks that ends before `last`; `next` is the first that nobody has drawn, if
  // there is one. On a cache line of its own: mostly one thread draws from it.
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
  const absl::FunctionRef<void(int64_t, int64_t)> body;
  int num_parts = 0;
  Part parts[kMaxParts];
  std::atomic<int> users{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
};

namespace {

// Which of its pool's threads this one is.
struct ThreadIdentity {
  const ThreadPool* pool = nullptr;
  int index = 0;
};
thread_local ThreadIdentity this_thread;
// The step that this thread, which is none of the pool's, is in.
thread_local ThreadPool::Caller* this_caller = nullptr;

// Threads from outside all count as the first: they are the pool's callers.
int IndexIn(const ThreadPool* pool) { return this_thread.pool == pool ? this_thread.index : 0; }

}  // namespace

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads > 0 ? num_threads : AvailableProcessors()) {
  for (int i = 1; i < num_threads_; ++i) {
    threads_.emplace_back([this, i] {
      this_thread = {this, i};
      Worker();
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    posted_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void ThreadPool::Schedule(std::function<void()> fn) {
  if (num_threads_ == 1) {
    fn();
    return;
  }
  PostEvent([&] {
    queue_.push_back([fn = std::move(fn), mode = FloatMode::Current()] {
      const ScopedFloatMode as_scheduled(mode);
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
  const std::lock_guard<std::mutex> lock(pool_->mutex_);
  Count();
}

void ThreadPool::Caller::Count() {
  if (counted_) return;
  counted_ = true;
  ++pool_->callers_;
  if (pool_->last_caller_ == std::this_thread::get_id()) pool_->last_caller_ = {};
}

// The step of this pool that this thread is in, if it is one from outside.
ThreadPool::Caller* ThreadPool::ThisCaller() const {
  return this_caller != nullptr && this_caller->pool_ == this ? this_caller : nullptr;
}

// Who has just left mostly comes back at once. Needs the lock.
int ThreadPool::NumCallers() const {
  if (last_caller_ == std::thread::id() || callers_ == 0 || callers_ >= num_threads_)
    return callers_;
  return callers_ +
         (std::chrono::steady_clock::now() - last_caller_left_at_ < kCallerReturnWindow ? 1 : 0);
}

bool ThreadPool::HasRoom() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return NumCallers() < num_threads_;
}

ThreadPool::Caller::~Caller() {
  if (pool_ == nullptr) return;
  this_caller = nullptr;
  if (!counted_) return;
  const std::lock_guard<std::mutex> lock(pool_->mutex_);
  --pool_->callers_;
  pool_->last_caller_ = std::this_thread::get_id();
  pool_->last_caller_left_at_ = std::chrono::steady_clock::now();
}

// Makes a chunk of news, which `what` writes down, known to threads that spin, to helpers that
// sleep, and to as many workers that sleep as it says. All of it with the lock: what a thread from
// outside has scheduled may be done, and the pool deleted by who waited for that, before the thread
// has come to the end of this.
void ThreadPool::PostEvent(absl::FunctionRef<int()> what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int workers = what();
  posted_.fetch_add(1, std::memory_order_release);
  if (sleeping_ > 0 && workers > 0) workers == 1 ? wake_.notify_one() : wake_.notify_all();
  if (sleeping_helpers_ > 0) wake_helpers_.notify_all();
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
    if (Caller* const caller = ThisCaller(); caller != nullptr) caller->Count();
    loops_.push_back(&loop);
    return std::max(0, num_threads_ - NumCallers());
  });
  RunLoop(loop);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(loops_, &loop);
  }
  for (int spins = 0; loop.users.load(std::memory_order_acquire) != 0; ++spins) {
    spins < kWaitSpins ? Pause() : std::this_thread::yield();
  }
  if (loop.error) std::rethrow_exception(loop.error);
}

// A loop with chunks left, with this thread counted in; null if there is none. Needs the lock.
ThreadPool::Loop* ThreadPool::JoinLoop() {
  const auto open =
      std::find_if(loops_.begin(), loops_.end(), [](const Loop* l) { return l->is_left(); });
  if (open == loops_.end()) return nullptr;
  (*open)->users.fetch_add(1, std::memory_order_relaxed);
  return *open;
}

// False if nothing new was posted in the time worth spinning for.
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
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    if (Loop* const loop = MayHelp(index) ? JoinLoop() : nullptr; loop != nullptr) {
      lock.unlock();
      RunLoop(*loop);
      loop->users.fetch_sub(1, std::memory_order_release);
      lock.lock();
    } else if (!queue_.empty()) {
      std::function<void()> fn = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      fn();
      fn = nullptr;
      lock.lock();
    } else {
      const uint64_t seen = posted_.load(std::memory_order_relaxed);
      if (MayHelp(index)) {
        lock.unlock();
        SpinWhile(seen);
        lock.lock();
      }
      if (posted_.load(std::memory_order_relaxed) == seen && !stop_) {
        ++sleeping_;
        wake_.wait(lock, [&] { return posted_.load(std::memory_order_relaxed) != seen || stop_; });
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
    std::unique_lock<std::mutex> lock(mutex_);
    if (Loop* const loop = JoinLoop(); loop != nullptr) {
      lock.unlock();
      {
        const ScopedFloatMode as_started(loop->mode);
        const ScopedCancellation of_its_step(loop->cancellation);
        RunChunk(*loop);
      }
      loop->users.fetch_sub(1, std::memory_order_release);
      continue;
    }
    lock.unlock();
    if (SpinWhile(seen)) continue;
    lock.lock();
    const auto news = [&] { return posted_.load(std::memory_order_relaxed) != seen; };
    const Caller* const caller = ThisCaller();
    const bool counted = caller != nullptr && caller->counted_;
    if (counted) --callers_;
    ++sleeping_helpers_;
    if (deadline) {
      wake_helpers_.wait_until(lock, *deadline, news);
    } else {
      wake_helpers_.wait(lock, news);
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
