#include "weir/core/thread_pool.h"

#include <sched.h>

#include <algorithm>

namespace weir {

// How work is shared out. A loop lives on the stack of the thread that started it: a counter of
// pieces that threads draw from until none is left. The starter publishes it in `loops_`, draws
// pieces itself, withdraws the loop when the counter has run out, and then waits only for the
// threads that are still inside (`users`). So a loop whose helpers never wake up costs its starter
// nothing but the publishing.
//
// Idle threads first spin on `posted_` for some tens of microseconds, because in a training step
// the next loop is rarely further away than that and waking a sleeping thread costs several
// microseconds; then they sleep on a condition variable. The publisher notifies only if somebody
// sleeps. Pieces are many more than threads only as far as their size stays worth a hand-over
// (kMinPieceNs): a preempted thread then delays its loop by one piece, not by its share.

namespace {

constexpr double kMinLoopNs = 20e3;
constexpr double kMinPieceNs = 10e3;
constexpr int kPiecesPerThread = 4;
constexpr int kSpins = 2000;

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
  int64_t n = 0, piece = 0;
  absl::FunctionRef<void(int64_t, int64_t)> body;
  std::atomic<int64_t> next{0};
  std::atomic<int> users{0};
};

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads > 0 ? num_threads : AvailableProcessors()) {
  for (int i = 1; i < num_threads_; ++i) threads_.emplace_back([this] { Worker(); });
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
  bool notify = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(fn));
    posted_.fetch_add(1, std::memory_order_release);
    notify = sleeping_ > 0;
  }
  if (notify) wake_.notify_one();
}

void ThreadPool::RunLoop(Loop& loop) {
  for (;;) {
    const int64_t begin = loop.next.fetch_add(loop.piece, std::memory_order_relaxed);
    if (begin >= loop.n) return;
    loop.body(begin, std::min(loop.n, begin + loop.piece));
  }
}

void ThreadPool::ParallelFor(int64_t n, double cost, absl::FunctionRef<void(int64_t, int64_t)> body,
                             int64_t align) {
  if (n <= 0) return;
  const double total = static_cast<double>(n) * cost;
  if (num_threads_ == 1 || n <= align || total < kMinLoopNs) {
    body(0, n);
    return;
  }
  const double pieces =
      std::min(total / kMinPieceNs, static_cast<double>(num_threads_ * kPiecesPerThread));
  int64_t piece = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(n) / pieces));
  piece = (piece + align - 1) / align * align;
  Loop loop{.n = n, .piece = piece, .body = body};
  Share(loop);
}

void ThreadPool::ForEach(int n, absl::FunctionRef<void(int)> body) {
  const auto one = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(static_cast<int>(i));
  };
  if (num_threads_ == 1 || n <= 1) {
    one(0, n);
    return;
  }
  Loop loop{.n = n, .piece = 1, .body = one};
  Share(loop);
}

void ThreadPool::Share(Loop& loop) {
  bool notify = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    loops_.push_back(&loop);
    posted_.fetch_add(1, std::memory_order_release);
    notify = sleeping_ > 0;
  }
  if (notify) wake_.notify_all();
  RunLoop(loop);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(loops_, &loop);
  }
  for (int spins = 0; loop.users.load(std::memory_order_acquire) != 0; ++spins) {
    spins < kSpins ? Pause() : std::this_thread::yield();
  }
}

void ThreadPool::Worker() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    const auto open = std::find_if(loops_.begin(), loops_.end(), [](Loop* l) {
      return l->next.load(std::memory_order_relaxed) < l->n;
    });
    if (open != loops_.end()) {
      Loop& loop = **open;
      loop.users.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      RunLoop(loop);
      loop.users.fetch_sub(1, std::memory_order_release);
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
      lock.unlock();
      int spins = 0;
      while (spins < kSpins && posted_.load(std::memory_order_acquire) == seen) {
        Pause();
        ++spins;
      }
      lock.lock();
      if (posted_.load(std::memory_order_relaxed) == seen && !stop_) {
        ++sleeping_;
        wake_.wait(lock, [&] { return posted_.load(std::memory_order_relaxed) != seen || stop_; });
        --sleeping_;
      }
    }
  }
}

ThreadPool& DefaultThreadPool() {
  static ThreadPool* const pool = new ThreadPool(0);
  return *pool;
}

}  // namespace weir
