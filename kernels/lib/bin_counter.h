#ifndef WEIR_KERNELS_LIB_BIN_COUNTER_H_
#define WEIR_KERNELS_LIB_BIN_COUNTER_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "weir/core/runtime/thread_pool.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/scalar_math.h"

// Counting in bins, for histograms.
namespace weir {

// Adds 1 for each value, or its weight, to the bin that the value numbers. Values without a bin are
// dropped. Integers wrap around. A floating-point number stops counting where adding 1 no longer
// changes it.
template <class T, class Index>
class BinCounter {
 public:
  // `size` bins. `weights` has one weight for each value; null: all are 1. `binary`: a bin becomes
  // 1 instead, whatever the weights.
  BinCounter(int64_t size, const T* weights, bool binary)
      : size_(static_cast<uint64_t>(size)), weights_(binary ? nullptr : weights), binary_(binary) {}

  // Counts values [begin, end), in order, on the calling thread. Returns the bitwise or of them,
  // which is negative if any of them is.
  Index Count(const Index* values, int64_t begin, int64_t end, T* bins) const {
    if (binary_) return CountAs<kBinary>(values, begin, end, bins);
    return weights_ == nullptr ? CountAs<kOnes>(values, begin, end, bins)
                               : CountAs<kWeights>(values, begin, end, bins);
  }

  // Sets all bins to 0 and counts n values. Several threads count in bins of their own, unless
  // weights are rounded when they are added, or there are not many more values than bins. The
  // result does not depend on the division of the values: see Join.
  Index CountAll(ThreadPool& pool, const Index* values, int64_t n, T* bins) const {
    const int64_t size = static_cast<int64_t>(size_);
    std::fill_n(bins, size, T(0));
    const int64_t pieces = NumPieces(pool, n);
    if (pieces <= 1) return Count(values, 0, n, bins);
    std::vector<T> others(static_cast<size_t>((pieces - 1) * size), T(0));
    std::vector<Index> all(static_cast<size_t>(pieces));
    pool.ForEach(static_cast<int>(pieces), [&](int p) {
      T* const own = p == 0 ? bins : others.data() + (p - 1) * size;
      all[p] = Count(values, n * p / pieces, n * (p + 1) / pieces, own);
    });
    for (int64_t p = 1; p < pieces; ++p) {
      const T* const other = others.data() + (p - 1) * size;
      for (int64_t i = 0; i < size; ++i) bins[i] = Join(bins[i], other[i]);
      all[0] |= all[p];
    }
    return all[0];
  }

 private:
  enum Mode { kOnes, kWeights, kBinary };

  template <Mode kMode>
  Index CountAs(const Index* values, int64_t begin, int64_t end, T* bins) const {
    const uint64_t size = size_;
    const T* const weights = weights_;
    Index all = 0;
    for (const auto [first, last] : CancellableBlocks(end - begin)) {
      for (int64_t i = begin + first; i < begin + last; ++i) {
        const Index value = values[i];
        all |= value;
        if (static_cast<uint64_t>(value) >= size) continue;
        T& bin = bins[value];
        bin = kMode == kBinary ? T(1)
                               : ScalarMath<T>::Add(bin, kMode == kWeights ? weights[i] : T(1));
      }
    }
    return all;
  }

  int64_t NumPieces(const ThreadPool& pool, int64_t n) const {
    constexpr int64_t kFew = int64_t{1} << 15;
    if (weights_ != nullptr && !std::is_integral_v<T>) return 1;
    const int64_t by_bins = n / (4 * static_cast<int64_t>(size_) + 1);
    return std::min<int64_t>({pool.num_threads(), n / kFew, by_bins});
  }

  // What one thread would have counted instead of two.
  T Join(T a, T b) const {
    if (binary_) return std::max(a, b);
    if constexpr (std::is_integral_v<T>) {
      return ScalarMath<T>::Add(a, b);
    } else {
      constexpr T kLast = static_cast<T>(int64_t{1} << std::numeric_limits<T>::digits);
      return std::min(a + b, kLast);
    }
  }

  const uint64_t size_;
  const T* const weights_;
  const bool binary_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_BIN_COUNTER_H_
