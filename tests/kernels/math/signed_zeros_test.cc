#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// The sign of a zero that a function returns for -0, which is equal to that for 0.
namespace weir {
namespace {

template <class T>
class SignedZeros : public testing::Test {
 public:
  // Returns whether all results of an op for -0 are zeros with a sign; for numbers that fill
  // vectors, and for one.
  static bool AreNegative(const std::string& op) {
    bool negative = true;
    for (const int64_t n : {1, 67}) {
      Tensor x(DataTypeOf<T>::value, Shape({n}));
      for (int64_t i = 0; i < n; ++i) x.data<T>()[i] = static_cast<T>(-0.0f);
      const Tensor y = RunFed(op, {x}).value()[0];
      for (int64_t i = 0; i < n; ++i) {
        const double zero = static_cast<double>(y.data<T>()[i]);
        EXPECT_EQ(zero, 0) << op;
        negative &= std::signbit(zero);
      }
    }
    return negative;
  }
};
using Types = testing::Types<float, double, half, bfloat16>;
TYPED_TEST_SUITE(SignedZeros, Types);

TYPED_TEST(SignedZeros, OddFunctionsKeepTheSign) {
  for (const char* op : {"Asin", "Asinh", "Atan", "Atanh", "Erf", "Expm1", "Log1p", "Neg", "Sin",
                         "Sinh", "Softsign", "Sqrt", "Tan", "Tanh"}) {
    EXPECT_EQ(this->AreNegative(op), op != std::string("Neg")) << op;
  }
}

// As in TensorFlow.
TYPED_TEST(SignedZeros, SignHasNone) { EXPECT_FALSE(this->AreNegative("Sign")); }

TYPED_TEST(SignedZeros, TheCosineIsOne) {
  using T = TypeParam;
  for (const int64_t n : {1, 67}) {
    const Tensor y = RunFed("Cos", {Tensor::Zeros(DataTypeOf<T>::value, Shape({n}))}).value()[0];
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(static_cast<double>(y.data<T>()[i]), 1);
  }
}

}  // namespace
}  // namespace weir
