#include "weir/kernels/lib/bin_counter.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace weir {
namespace {

// The bins after counting, one value after the other.
template <class T>
std::vector<T> CountedPlainly(const std::vector<int32_t>& values, int64_t size,
                              const std::vector<T>& weights, bool binary) {
  std::vector<T> bins(size, T(0));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= size) continue;
    T& bin = bins[values[i]];
    bin = binary ? T(1) : static_cast<T>(bin + (weights.empty() ? T(1) : weights[i]));
  }
  return bins;
}

template <class T>
void TestCounts(int64_t n, int64_t size, bool weighted, bool binary) {
  std::vector<int32_t> values(n);
  std::vector<T> weights(weighted ? n : 0);
  for (int64_t i = 0; i < n; ++i) {
    values[i] = static_cast<int32_t>(i * 7919 % (size + 3));
    if (weighted) weights[i] = static_cast<T>(i % 17) / static_cast<T>(3);
  }
  const BinCounter<T, int32_t> counter(size, weighted ? weights.data() : nullptr, binary);
  const std::vector<T> want = CountedPlainly(values, size, weights, binary);
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<T> bins(size, T(9));
    EXPECT_GE(counter.CountAll(pool, values.data(), n, bins.data()), 0);
    EXPECT_EQ(bins, want) << n << " in " << size << " with " << threads << " threads";
  }
}

TEST(BinCounter, CountsTheSameOnAnyNumberOfThreads) {
  for (const int64_t n : {0, 1, 100, 65535, 65536, 200001}) {
    for (const int64_t size : {0, 1, 7, 1000, 40000}) {
      for (const bool weighted : {false, true}) {
        TestCounts<int32_t>(n, size, weighted, false);
        TestCounts<int64_t>(n, size, weighted, false);
        TestCounts<float>(n, size, weighted, false);
        TestCounts<double>(n, size, weighted, false);
        TestCounts<float>(n, size, weighted, true);
      }
    }
  }
}

TEST(BinCounter, StopsWhereAFloatDoes) {
  constexpr int64_t kLast = int64_t{1} << 24;
  const std::vector<int32_t> values(kLast + 1000, 2);
  const BinCounter<float, int32_t> counter(4, nullptr, false);
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    std::vector<float> bins(4);
    counter.CountAll(pool, values.data(), static_cast<int64_t>(values.size()), bins.data());
    EXPECT_EQ(bins, (std::vector<float>{0, 0, static_cast<float>(kLast), 0}));
  }
}

TEST(BinCounter, ReportsNegativeValues) {
  std::vector<int64_t> values(200000, 1);
  const BinCounter<int32_t, int64_t> counter(3, nullptr, false);
  ThreadPool pool(2);
  std::vector<int32_t> bins(3);
  for (const size_t at : {size_t{0}, size_t{99999}, values.size() - 1}) {
    values[at] = INT64_MIN;
    EXPECT_LT(counter.CountAll(pool, values.data(), 200000, bins.data()), 0);
    values[at] = 1;
  }
}

}  // namespace
}  // namespace weir
