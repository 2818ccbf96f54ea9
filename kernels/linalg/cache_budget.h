#ifndef WEIR_KERNELS_LINALG_CACHE_BUDGET_H_
#define WEIR_KERNELS_LINALG_CACHE_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace weir {

// A share of the memory that kernels may use to speed up later steps, for example for packed
// weights. The kernels of a process share kMost bytes. A session may have a plan for each of many
// shapes, each plan has kernels of its own, and each of these would cache a copy. Different objects
// may be used by different threads; a single object is not thread-safe.
class CacheBudget {
 public:
  static constexpr int64_t kMost = int64_t{2} << 30;

  CacheBudget() = default;
  // Reserves `bytes` bytes, or none if fewer remain.
  explicit CacheBudget(int64_t bytes) : bytes_(bytes) {
    if (used_.fetch_add(bytes) + bytes > kMost) Release();
  }
  CacheBudget(CacheBudget&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  CacheBudget& operator=(CacheBudget&& other) noexcept {
    Release();
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~CacheBudget() { Release(); }

  int64_t bytes() const { return bytes_; }

 private:
  void Release() { used_ -= std::exchange(bytes_, 0); }

  static inline std::atomic<int64_t> used_{0};
  int64_t bytes_ = 0;
};

// Tracks whether cached values are reused often enough. A weight that training updates in every
// step, through a plan that itself writes nothing (such as a function's), would be packed again
// each time, and each update would copy it because the cache holds a reference. After several
// consecutive values with little reuse, caching no longer pays. Not thread-safe.
class ReuseTracker {
 public:
  // Records that another value was cached.
  void RecordNewValue() {
    if (changes_++ > 0) rarely_used_ = uses_ < kEnoughUses ? rarely_used_ + 1 : 0;
    uses_ = 0;
  }
  // Records a use after the first.
  void RecordReuse() { uses_ = uses_ < kEnoughUses ? uses_ + 1 : uses_; }
  bool pays() const { return rarely_used_ < kMaxRarelyUsed; }

 private:
  static constexpr int kEnoughUses = 3, kMaxRarelyUsed = 4;
  int64_t changes_ = 0;
  int uses_ = 0, rarely_used_ = 0;
};

}  // namespace weir

#endif  // WEIR_KERNELS_LINALG_CACHE_BUDGET_H_
