#ifndef WEIR_KERNELS_CACHE_BUDGET_H_
#define WEIR_KERNELS_CACHE_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace weir {

// A part of the memory that kernels may fill so that later steps are faster, as with packed
// weights. The kernels of a process share kMost bytes: a session has a plan for each of many
// shapes, each plan has kernels of its own, and each of these would keep a copy. Thread-safe but
// for a single object.
class CacheBudget {
 public:
  static constexpr int64_t kMost = int64_t{2} << 30;

  CacheBudget() = default;
  // Takes so many bytes, or none if fewer are left.
  explicit CacheBudget(int64_t bytes) : bytes_(bytes) {
    if (taken_.fetch_add(bytes) + bytes > kMost) Return();
  }
  CacheBudget(CacheBudget&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  CacheBudget& operator=(CacheBudget&& other) noexcept {
    Return();
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~CacheBudget() { Return(); }

  int64_t bytes() const { return bytes_; }

 private:
  void Return() { taken_ -= std::exchange(bytes_, 0); }

  static inline std::atomic<int64_t> taken_{0};
  int64_t bytes_ = 0;
};

// Whether what is kept is used often enough. A weight that training updates in every step (by a
// plan that writes to nothing itself, such as a function's) would be packed anew each time, and
// copied by each update, since it is held. After some in a row that were hardly used, nothing is to
// be kept any more. For one thread at a time.
class ReuseTracker {
 public:
  // Another one is kept from now on.
  void Change() {
    if (changes_++ > 0) rarely_used_ = uses_ < kFewest ? rarely_used_ + 1 : 0;
    uses_ = 0;
  }
  // Beyond the first.
  void Use() { uses_ = uses_ < kFewest ? uses_ + 1 : uses_; }
  bool pays() const { return rarely_used_ < kMostRarelyUsed; }

 private:
  static constexpr int kFewest = 3, kMostRarelyUsed = 4;
  int64_t changes_ = 0;
  int uses_ = 0, rarely_used_ = 0;
};

}  // namespace weir

#endif  // WEIR_KERNELS_CACHE_BUDGET_H_
