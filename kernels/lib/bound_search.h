#ifndef WEIR_KERNELS_LIB_BOUND_SEARCH_H_
#define WEIR_KERNELS_LIB_BOUND_SEARCH_H_

#include <algorithm>
#include <cstdint>

// Binary searches for many values in one sorted range.
namespace weir {

// A group of searches that proceed together, one step of each in turn. A search alone waits for
// memory at every step, and mispredicts every other branch; the loads of a group overlap, and no
// branch depends on a value (Khuong and Morin, "Array layouts for comparison-based searching",
// 2017). A step is that of std::lower_bound or std::upper_bound, so a range that is not sorted, or
// has NaNs, leads to the same position too. The ranges that are left to the searches differ in
// length by at most one.
template <bool kUpper, class T, class U>
class BoundSearches {
 public:
  static constexpr int64_t kGroup = 16;

  BoundSearches(const T* sorted, int64_t length) : sorted_(sorted), length_(length) {}

  // Writes the positions of n values, n in [1, kGroup].
  template <class Out>
  void Find(const U* values, int64_t n, Out* out) {
    for (int64_t i = 0; i < kGroup; ++i) {
      value_[i] = values[std::min(i, n - 1)];
      first_[i] = 0;
      left_[i] = static_cast<uint64_t>(length_);
    }
    int64_t longest = length_;
    for (; longest > 1; longest /= 2) {
      for (int64_t i = 0; i < kGroup; ++i) Step(i, IsAfter(i, first_[i] + left_[i] / 2));
    }
    for (int64_t i = 0; longest == 1 && i < kGroup; ++i) {
      const uint64_t last = static_cast<uint64_t>(length_) - 1;
      Step(i, static_cast<uint64_t>(left_[i] > 0) & IsAfter(i, std::min(first_[i], last)));
    }
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(first_[i]);
  }

 private:
  // Whether the position of value i is beyond the element at `middle`: 0 or 1.
  uint64_t IsAfter(int64_t i, uint64_t middle) const {
    return kUpper ? !(value_[i] < sorted_[middle]) : sorted_[middle] < value_[i];
  }
  void Step(int64_t i, uint64_t is_after) {
    const uint64_t half = left_[i] / 2, mask = ~is_after + 1;  // all bits, or none
    first_[i] += (half + 1) & mask;
    left_[i] = half + ((left_[i] - 2 * half - 1) & mask);
  }

  const T* const sorted_;
  const int64_t length_;
  U value_[kGroup];
  uint64_t first_[kGroup], left_[kGroup];
};

// out[k] = the position in sorted[0, length) that std::lower_bound (kUpper: std::upper_bound) finds
// for values[k], for k in [0, n).
template <bool kUpper, class T, class U, class Out>
void FindBounds(const T* sorted, int64_t length, const U* values, int64_t n, Out* out) {
  BoundSearches<kUpper, T, U> searches(sorted, length);
  constexpr int64_t kGroup = searches.kGroup, kFew = 4, kMany = 256;
  int64_t k = 0;
  for (; n >= kMany && n - k >= kFew; k = std::min(n, k + kGroup))
    searches.Find(values + k, std::min(kGroup, n - k), out + k);
  for (; k < n; ++k) {
    const T* const at = kUpper ? std::upper_bound(sorted, sorted + length, values[k])
                               : std::lower_bound(sorted, sorted + length, values[k]);
    out[k] = static_cast<Out>(at - sorted);
  }
}

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_BOUND_SEARCH_H_
