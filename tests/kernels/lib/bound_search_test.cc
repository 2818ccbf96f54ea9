#include "weir/kernels/lib/bound_search.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace weir {
namespace {

template <class T>
void ExpectBoundsOfStd(const std::vector<T>& in, const std::vector<T>& values) {
  const int64_t n = static_cast<int64_t>(values.size());
  std::vector<int32_t> lower(values.size(), -1), upper(values.size(), -1);
  FindBounds<false>(in.data(), static_cast<int64_t>(in.size()), values.data(), n, lower.data());
  FindBounds<true>(in.data(), static_cast<int64_t>(in.size()), values.data(), n, upper.data());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(lower[i], std::lower_bound(in.begin(), in.end(), values[i]) - in.begin())
        << values[i] << " in " << in.size();
    ASSERT_EQ(upper[i], std::upper_bound(in.begin(), in.end(), values[i]) - in.begin())
        << values[i] << " in " << in.size();
  }
}

// Few values are searched for one by one, many in groups.
TEST(BoundSearch, FindsThePositionsOfTheStandardLibrary) {
  std::mt19937 random(1);
  for (const size_t length :
       {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 100, 1023, 1024, 1025}) {
    std::vector<int64_t> sorted(length);
    for (int64_t& x : sorted) x = static_cast<int64_t>(random() % 200);
    std::sort(sorted.begin(), sorted.end());
    for (const size_t n : {1, 17, 256, 257, 258, 259, 260, 271, 300}) {
      std::vector<int64_t> values(n);
      for (int64_t& v : values) v = static_cast<int64_t>(random() % 204) - 2;
      ExpectBoundsOfStd(sorted, values);
    }
  }
}

// The result is not defined by the documentation, but TensorFlow's is that of the standard library.
TEST(BoundSearch, TakesItsStepsWithNansAndUnsortedRanges) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::mt19937 random(2);
  for (size_t length = 0; length < 70; ++length) {
    std::vector<float> any(length), values(300);
    for (float& x : any) x = random() % 7 == 0 ? kNan : static_cast<float>(random() % 50);
    for (float& v : values) v = random() % 9 == 0 ? kNan : static_cast<float>(random() % 52) - 1;
    ExpectBoundsOfStd(any, values);
  }
}

}  // namespace
}  // namespace weir
