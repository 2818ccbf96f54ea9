#include "weir/core/tensor/convert.h"

#include <cmath>
#include <complex>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace weir {
namespace {

std::string Converted(const Tensor& from, DataType to, Rounding rounding = Rounding::kNever) {
  const auto t = ConvertTensor(from, to, rounding);
  return t.ok() ? t->Description() + " " + t->ToString() : std::string(t.status().message());
}

TEST(ConvertTensor, KeepsEveryValueOrNamesTheFirstThatItCannot) {
  const Tensor halves = Tensor::Vector<double>({1, -2.5});
  EXPECT_EQ(Converted(halves, DT_FLOAT), "float[2] [ 1.  -2.5]");
  EXPECT_EQ(Converted(halves, DT_INT32),
            "element 1 is -2.5 (double), which is not a value of type int32");
  EXPECT_EQ(Converted(halves, DT_INT32, Rounding::kAllowed), "int32[2] [ 1 -2]");
  EXPECT_EQ(Converted(halves, DT_UINT8, Rounding::kAllowed),
            "element 1 is -2.5 (double), which is not a value of type uint8");
  EXPECT_EQ(Converted(Tensor::Of<int64_t>({2, 1}, {1, 300}), DT_UINT8),
            "element 1 is 300 (int64), which is not a value of type uint8");
}

TEST(ConvertTensor, TheRangeEndsWhereTheTypesValuesDo) {
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(kOdd), DT_DOUBLE).ok());
  EXPECT_TRUE(ConvertTensor(Tensor::Scalar(kOdd - 1), DT_DOUBLE).ok());
  EXPECT_TRUE(ConvertTensor(Tensor::Scalar(kOdd), DT_DOUBLE, Rounding::kAllowed).ok());
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_TRUE(ConvertTensor(Tensor::Scalar(-0x1p63), DT_INT64).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(0x1p63), DT_INT64, Rounding::kAllowed).ok());
  EXPECT_TRUE(ConvertTensor(Tensor::Scalar(0x1p63), DT_UINT64).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(kLeast), DT_UINT64).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(0.1), DT_FLOAT).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(1e300), DT_FLOAT, Rounding::kAllowed).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(65520.f), DT_HALF, Rounding::kAllowed).ok());
  EXPECT_TRUE(ConvertTensor(Tensor::Scalar(65519.f), DT_HALF, Rounding::kAllowed).ok());
}

TEST(ConvertTensor, NotANumberStaysOneAndIsNoInteger) {
  const Tensor nan = Tensor::Scalar(std::nan(""));
  const auto half_nan = ConvertTensor(nan, DT_HALF);
  ASSERT_TRUE(half_nan.ok()) << half_nan.status();
  EXPECT_TRUE(std::isnan(static_cast<float>(half_nan->scalar<half>())));
  EXPECT_FALSE(ConvertTensor(nan, DT_INT32, Rounding::kAllowed).ok());
  EXPECT_TRUE(ConvertTensor(Tensor::Scalar(HUGE_VAL), DT_FLOAT).ok());
}

TEST(ConvertTensor, BooleansAreZeroAndOne) {
  EXPECT_EQ(Converted(Tensor::Vector<bool>({true, false}), DT_FLOAT), "float[2] [1. 0.]");
  EXPECT_EQ(Converted(Tensor::Vector<int64_t>({1, 0}), DT_BOOL), "bool[2] [ True False]");
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(2), DT_BOOL).ok());
}

TEST(ConvertTensor, RealNumbersBecomeComplexButNotBack) {
  using Complex = std::complex<double>;
  const auto complex = ConvertTensor(Tensor::Scalar(2.5f), DT_COMPLEX128);
  ASSERT_TRUE(complex.ok()) << complex.status();
  EXPECT_EQ(complex->scalar<Complex>(), Complex(2.5, 0));
  const auto narrow = ConvertTensor(Tensor::Scalar(Complex(1, -2)), DT_COMPLEX64);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_EQ(narrow->scalar<std::complex<float>>(), std::complex<float>(1, -2));
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(Complex(1, 0.1)), DT_COMPLEX64).ok());
  EXPECT_EQ(Converted(Tensor::Scalar(Complex(1, 0)), DT_FLOAT),
            "a value of type complex128 cannot be converted to float");
}

TEST(ConvertTensor, StringsAreNotConverted) {
  EXPECT_EQ(Converted(Tensor::Scalar("1"), DT_INT32),
            "a value of type string cannot be converted to int32");
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(1), DT_STRING).ok());
}

TEST(StoreNumber, StoresWhatTheTypeHas) {
  Tensor bytes = Tensor::Zeros(DT_UINT8, {2});
  EXPECT_TRUE(StoreNumber(255, Rounding::kNever, 1, &bytes));
  EXPECT_EQ(bytes.data<uint8_t>()[1], 255);
  EXPECT_FALSE(StoreNumber(256, Rounding::kAllowed, 1, &bytes));
  EXPECT_FALSE(StoreNumber(0.5, Rounding::kNever, 1, &bytes));
  Tensor large = Tensor::Zeros(DT_UINT64, {});
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  EXPECT_TRUE(StoreNumber(kMost, Rounding::kNever, 0, &large));
  EXPECT_EQ(large.scalar<uint64_t>(), kMost);
  Tensor text = Tensor::Scalar("");
  EXPECT_FALSE(StoreNumber(1, Rounding::kNever, 0, &text));
}

}  // namespace
}  // namespace weir
