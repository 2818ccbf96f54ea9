#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// ClipByValue with bounds that are NaN.
namespace weir {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
class ClipByValue : public testing::Test {
 public:
  static Tensor Of(const std::vector<float>& values, const Shape& shape) {
    Tensor t(DataTypeOf<T>::value, shape);
    for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = static_cast<T>(values[i]);
    return t;
  }
  static std::vector<double> Run(const Tensor& low, const Tensor& high) {
    const Tensor x = Of({0.5f, 2, kNaN, -3, 9}, Shape({5}));
    const Tensor y = RunFed("ClipByValue", {x, low, high}).value()[0];
    std::vector<double> values;
    for (int64_t i = 0; i < 5; ++i) values.push_back(static_cast<double>(y.data<T>()[i]));
    EXPECT_TRUE(std::isnan(values[2]));
    values[2] = 0;
    return values;
  }
};
using Types = testing::Types<float, double, half, bfloat16>;
TYPED_TEST_SUITE(ClipByValue, Types);

// As in TensorFlow.
TYPED_TEST(ClipByValue, NaNBoundsNothing) {
  using Test = TestFixture;
  using Values = std::vector<double>;
  const Tensor nan = Test::Of({kNaN}, Shape()), one = Test::Of({1}, Shape()),
               five = Test::Of({5}, Shape());
  EXPECT_EQ(Test::Run(nan, five), (Values{0.5, 2, 0, -3, 5}));
  EXPECT_EQ(Test::Run(one, nan), (Values{1, 2, 0, 1, 9}));
  EXPECT_EQ(Test::Run(nan, nan), (Values{0.5, 2, 0, -3, 9}));
  const Tensor lows = Test::Of({1, kNaN, 1, kNaN, 1}, Shape({5})),
               highs = Test::Of({kNaN, 1, 1, 1, kNaN}, Shape({5}));
  EXPECT_EQ(Test::Run(lows, highs), (Values{1, 1, 0, -3, 9}));
  EXPECT_EQ(Test::Run(lows, five), (Values{1, 2, 0, -3, 5}));
}

}  // namespace
}  // namespace weir
