#include "weir/tools/lib/compare.h"

#include <complex>
#include <limits>

#include "gtest/gtest.h"

namespace weir::tools {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::string Compare(std::initializer_list<float> got, std::initializer_list<float> want,
                    Tolerance tolerance = {}) {
  return CompareTensors(Tensor::Vector(got), Tensor::Vector(want), tolerance);
}

TEST(CompareTensors, ToleranceIsAbsolutePlusRelativeToTheRecordedValue) {
  EXPECT_EQ(Compare({100.0009f}, {100.f}), "");
  EXPECT_NE(Compare({100.002f}, {100.f}), "");
  EXPECT_EQ(Compare({0.9e-6f}, {0.f}), "");
  EXPECT_NE(Compare({2e-6f}, {0.f}), "");
  EXPECT_EQ(Compare({1.5f}, {1.f}, {.rtol = 0.5}), "");
}

TEST(CompareTensors, NaNEqualsNaNAndInfinityItself) {
  EXPECT_EQ(Compare({kNaN, kInf, -kInf}, {kNaN, kInf, -kInf}), "");
  EXPECT_NE(Compare({kNaN}, {0.f}), "");
  EXPECT_NE(Compare({0.f}, {kNaN}), "");
  EXPECT_NE(Compare({kInf}, {-kInf}), "");
  EXPECT_NE(Compare({3e38f}, {kInf}, {.rtol = 1}), "");
}

TEST(CompareTensors, SmallTypesHaveWiderTolerances) {
  const auto halves = [](float a, float b) {
    return CompareTensors(Tensor::Scalar(half(a)), Tensor::Scalar(half(b)), {});
  };
  EXPECT_EQ(halves(1.003f, 1.f), "");
  EXPECT_NE(halves(1.01f, 1.f), "");
  const auto brains = [](float a, float b) {
    return CompareTensors(Tensor::Scalar(bfloat16(a)), Tensor::Scalar(bfloat16(b)), {});
  };
  EXPECT_EQ(brains(1.03f, 1.f), "");
  EXPECT_NE(brains(1.05f, 1.f), "");
}

TEST(CompareTensors, TheRecordOfAStringScalarMayLackZerosAtItsEnd) {
  const std::string full("a\0b\0\0", 5), cut("a\0b", 3), other("a\0b\0c", 5);
  EXPECT_EQ(CompareTensors(Tensor::Scalar(full), Tensor::Scalar(cut), {}), "");
  EXPECT_NE(CompareTensors(Tensor::Scalar(cut), Tensor::Scalar(full), {}), "");
  EXPECT_NE(CompareTensors(Tensor::Scalar(other), Tensor::Scalar(cut), {}), "");
  EXPECT_NE(CompareTensors(Tensor::Vector({full}), Tensor::Vector({cut}), {}), "");
}

TEST(CompareTensors, IntegersBooleansAndStringsAreExact) {
  EXPECT_NE(
      CompareTensors(Tensor::Scalar<int64_t>(int64_t{1} << 60),
                     Tensor::Scalar<int64_t>((int64_t{1} << 60) + 1), {.rtol = 1, .atol = 1e9}),
      "");
  EXPECT_NE(CompareTensors(Tensor::Scalar(true), Tensor::Scalar(false), {.atol = 2}), "");
  EXPECT_EQ(CompareTensors(Tensor::Scalar("a"), Tensor::Scalar("a"), {}), "");
  EXPECT_NE(CompareTensors(Tensor::Scalar("a"), Tensor::Scalar("b"), {}), "");
}

TEST(CompareTensors, TypesAndShapesMustAgree) {
  EXPECT_EQ(CompareTensors(Tensor::Scalar(1.f), Tensor::Scalar(1.0), {}),
            "got float[], recorded double[]");
  EXPECT_EQ(CompareTensors(Tensor::Scalar(1.f), Tensor::Vector({1.f}), {}),
            "got float[], recorded float[1]");
  EXPECT_EQ(CompareTensors(Tensor::Vector<uint8_t>({9}).BitcastTo(DT_QUINT8),
                           Tensor::Vector<uint8_t>({9}), {}),
            "");
}

TEST(CompareTensors, ReportsTheCountAndFirstDifference) {
  const std::string why = CompareTensors(Tensor::Of<float>({2, 2}, {1, 2, 3, 5}),
                                         Tensor::Of<float>({2, 2}, {1, 2, 4, 8}), {});
  EXPECT_EQ(why, "2 of 4 elements differ: [1,0] is 3, recorded 4, greatest difference 3");
}

TEST(CompareTensors, ComplexNumbersByDistance) {
  using C = std::complex<float>;
  EXPECT_EQ(CompareTensors(Tensor::Scalar(C(3, 4.00001f)), Tensor::Scalar(C(3, 4)), {}), "");
  EXPECT_NE(CompareTensors(Tensor::Scalar(C(3, 4.001f)), Tensor::Scalar(C(3, 4)), {}), "");
  EXPECT_EQ(CompareTensors(Tensor::Scalar(C(kNaN, 0)), Tensor::Scalar(C(0, kNaN)), {}), "");
}

}  // namespace
}  // namespace weir::tools
