#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// TopKV2 and InTopKV2 against plain references, for rows that use each of their algorithms.
namespace weir {
namespace {

// Random elements with ties, every special value, and large ones.
template <class T>
T RandomElement(std::mt19937& random) {
  const int32_t small = static_cast<int32_t>(random() % 9) - 4;
  if constexpr (std::is_integral_v<T>) {
    return random() % 2 == 0 ? static_cast<T>(small)
                             : static_cast<T>(uint64_t{random()} << 32 | random());
  } else {
    const double values[] = {small * 0.5,
                             -0.0,
                             std::ldexp(static_cast<double>(random()) - 2e9, -40),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
    const uint32_t which = random() % 40;
    return static_cast<T>(static_cast<float>(values[which < 20 ? 2 : which < 34 ? 0 : which - 34]));
  }
}

// The first k indices, NaNs first, then larger values, then smaller indices.
template <class T>
std::vector<int64_t> SortedIndices(const T* row, int64_t n, int64_t k) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [row](int64_t a, int64_t b) {
    if constexpr (std::is_integral_v<T>) {
      return row[a] > row[b];
    } else {
      const double x = static_cast<double>(row[a]), y = static_cast<double>(row[b]);
      if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y);
      return x > y;
    }
  });
  order.resize(static_cast<size_t>(k));
  return order;
}

template <class T>
bool SameBits(const T& a, const T& b) {
  return std::equal(reinterpret_cast<const char*>(&a), reinterpret_cast<const char*>(&a + 1),
                    reinterpret_cast<const char*>(&b));
}

template <class T>
void ExpectTopK(int64_t n, int64_t k, DataType index_type = DT_INT32) {
  constexpr int64_t kRows = 3;
  SCOPED_TRACE(testing::Message() << DataTypeName(DataTypeOf<T>::value) << " n " << n << " k "
                                  << k);
  std::mt19937 random(static_cast<uint32_t>(n * 1000 + k));
  Tensor x(DataTypeOf<T>::value, Shape({kRows, n}));
  for (T& v : x.flat<T>()) v = RandomElement<T>(random);
  const auto out = RunFed("TopKV2", {x, Tensor::Scalar<int32_t>(static_cast<int32_t>(k))},
                          {{"index_type", index_type}});
  ASSERT_TRUE(out.ok()) << out.status();
  const Tensor &values = (*out)[0], &indices = (*out)[1];
  ASSERT_EQ(values.shape(), Shape({kRows, k}));
  for (int64_t r = 0; r < kRows; ++r) {
    const T* const row = x.data<T>() + r * n;
    const std::vector<int64_t> want = SortedIndices(row, n, k);
    for (int64_t i = 0; i < k; ++i) {
      ASSERT_EQ(indices.IntAt(r * k + i), want[i]) << "row " << r << ", place " << i;
      ASSERT_TRUE(SameBits(values.data<T>()[r * k + i], row[want[i]])) << "place " << i;
    }
  }
}

template <class T>
void ExpectTopKOfEachSize() {
  for (const int64_t n : {1, 2, 7, 16, 31, 64, 127, 128, 129, 255, 256, 257, 1000, 5000}) {
    for (const int64_t k : {int64_t{1}, n / 16, n / 16 + 1, n / 2, n}) {
      if (k > 0) ExpectTopK<T>(n, k);
    }
  }
}

TEST(TopK, MatchesAStableSort) {
  ExpectTopKOfEachSize<float>();
  ExpectTopKOfEachSize<double>();
  ExpectTopKOfEachSize<half>();
  ExpectTopKOfEachSize<bfloat16>();
  ExpectTopKOfEachSize<int8_t>();
  ExpectTopKOfEachSize<uint8_t>();
  ExpectTopKOfEachSize<int16_t>();
  ExpectTopKOfEachSize<int32_t>();
  ExpectTopKOfEachSize<uint32_t>();
  ExpectTopKOfEachSize<int64_t>();
  ExpectTopKOfEachSize<uint64_t>();
}

// No element of an ascending row is rejected.
TEST(TopK, OfAscendingRows) {
  constexpr int64_t kN = 5000;
  Tensor x(DT_FLOAT, Shape({kN}));
  for (int64_t i = 0; i < kN; ++i) x.data<float>()[i] = static_cast<float>(i);
  for (const int32_t k : {1, 2, 31, 32, 33, 100, 312}) {
    const auto out = RunFed("TopKV2", {x, Tensor::Scalar<int32_t>(k)});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int32_t i = 0; i < k; ++i) ASSERT_EQ((*out)[1].flat<int32_t>()[i], kN - 1 - i) << k;
  }
}

TEST(TopK, HasIndicesOfEveryType) {
  for (const DataType type : {DT_INT16, DT_INT32, DT_INT64}) {
    ExpectTopK<float>(300, 7, type);
    ExpectTopK<float>(300, 300, type);
  }
}

TEST(TopK, SortsRowsWhoseKeysShareBytes) {
  Tensor x(DT_INT32, Shape({1000}));
  for (int32_t i = 0; i < 1000; ++i) x.data<int32_t>()[i] = (i * 7 % 1000) << 16;
  const auto out = RunFed("TopKV2", {x, Tensor::Scalar<int32_t>(1000)});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ((*out)[0].flat<int32_t>()[i], (999 - i) << 16);
  }
}

bool InTopK(const Tensor& predictions, int32_t target, int32_t k) {
  const auto out = RunFed(
      "InTopKV2", {predictions, Tensor::Vector<int32_t>({target}), Tensor::Scalar<int32_t>(k)});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() && (*out)[0].flat<bool>()[0];
}

TEST(InTopK, CountsTheLargerElementsOfRowsOfAnyLength) {
  for (const int64_t n : {1, 3, 15, 16, 17, 63, 64, 65, 127, 128, 150}) {
    // Element i is the (i * 5 % n)-th largest, or one of several if n is a multiple of 5.
    Tensor x(DT_FLOAT, Shape({1, n}));
    for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = -static_cast<float>(i * 5 % n);
    for (const int64_t target : {int64_t{0}, n / 2, n - 1}) {
      const float* const row = x.data<float>();
      const int32_t larger = static_cast<int32_t>(
          std::count_if(row, row + n, [&](float v) { return v > row[target]; }));
      for (int32_t k = std::max(larger - 1, 0); k <= larger + 2; ++k) {
        EXPECT_EQ(InTopK(x, static_cast<int32_t>(target), k), larger < k)
            << n << " elements, target " << target << ", k " << k;
      }
    }
  }
}

TEST(InTopK, IsFalseIfAnyElementIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
    for (int64_t at = 0; at < 70; ++at) {
      Tensor x = Tensor::Zeros(DT_FLOAT, Shape({1, 70}));
      x.data<float>()[7] = 1;
      EXPECT_TRUE(InTopK(x, 7, 1));
      x.data<float>()[at] = bad;
      EXPECT_FALSE(InTopK(x, 7, 1)) << bad << " at " << at;
    }
  }
}

}  // namespace
}  // namespace weir
