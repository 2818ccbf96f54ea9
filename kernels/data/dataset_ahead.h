#ifndef WEIR_KERNELS_DATA_DATASET_AHEAD_H_
#define WEIR_KERNELS_DATA_DATASET_AHEAD_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "weir/kernels/data/dataset.h"

// Who computes elements ahead of their consumer, and whether it pays.
namespace weir {

// An iterator that can prepare elements before they are asked for. Thread-safe.
class AheadWork {
 public:
  virtual ~AheadWork() = default;
  // Whether Work() would find something to do now.
  virtual bool HasWork() = 0;
  // Prepares one element as a part of the step of `x`, here or further upstream. Returns false if
  // there was nothing to do.
  virtual bool Work(const DatasetContext& x) = 0;
};

// The iterators upstream of a consumer that prepare elements ahead. The consumer, instead of
// waiting for one of them, helps any of them. Thread-safe.
class AheadGroup {
 public:
  void Add(std::weak_ptr<AheadWork> work);
  bool HasWork();
  bool Work(const DatasetContext& x);

 private:
  std::vector<std::shared_ptr<AheadWork>> Members();

  std::mutex mutex_;
  std::vector<std::weak_ptr<AheadWork>> members_;
};

// Measures whether the elements of a data set take so long that another thread should prepare them:
// the last few took kLongNs or more. A single long one, such as the first call of a function, which
// compiles it, does not count. Thread-safe.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kLongNs = 30'000;

  bool is_slow() const { return score_.load(std::memory_order_relaxed) >= kSlow; }
  void Report(Clock::duration one) {
    const bool is_long = one >= std::chrono::nanoseconds(kLongNs);
    const int score = score_.load(std::memory_order_relaxed);
    const int next = is_long ? std::min(score + 1, kMost) : std::max(score - 1, 0);
    if (next != score) score_.store(next, std::memory_order_relaxed);
  }

 private:
  static constexpr int kSlow = 2, kMost = 4;
  std::atomic<int> score_{0};
};

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_DATASET_AHEAD_H_
