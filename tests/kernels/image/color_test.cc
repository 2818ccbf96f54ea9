#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Colors of float images in vectors, compared with the scalar formulas: those of double images, and
// plain sums.
namespace weir {
namespace {

Tensor Numbers(const Shape& shape, uint32_t seed) {
  Tensor t(DT_FLOAT, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    t.data<float>()[i] = static_cast<float>(seed >> 8) / (1 << 24);
  }
  return t;
}

void ExpectAsDoubles(const char* op, const Tensor& in) {
  SCOPED_TRACE(absl::StrCat(op, " ", in.shape().ToString()));
  Tensor wide(DT_DOUBLE, in.shape());
  for (int64_t i = 0; i < in.num_elements(); ++i) wide.data<double>()[i] = in.data<float>()[i];
  const auto got = RunFed(op, {in}), want = RunFed(op, {wide});
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(want.ok()) << want.status();
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    const double x = (*got)[0].data<float>()[i], y = (*want)[0].data<double>()[i];
    if (std::isfinite(y)) {
      ASSERT_NEAR(x, y, 2e-6) << "element " << i;
    } else {
      ASSERT_EQ(std::isnan(x), std::isnan(y)) << "element " << i;
    }
  }
}

TEST(Color, ConversionsOfAnyNumberOfPixels) {
  for (const int64_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 1000}) {
    Tensor in = Numbers(Shape({n, 3}), 5);
    ExpectAsDoubles("RGBToHSV", in);
    ExpectAsDoubles("HSVToRGB", in);
    // Gray, black, and the largest component in each place.
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      in.data<float>()[i] = std::floor(in.data<float>()[i] * 3) / 2;
    }
    ExpectAsDoubles("RGBToHSV", in);
    ExpectAsDoubles("HSVToRGB", in);
  }
}

TEST(Color, ConversionsOfNan) {
  const float nan = std::nanf("");
  const Tensor in = Tensor::Of<float>(
      Shape({4, 3}), {nan, 0.5f, 0.25f, 0.5f, nan, 0.25f, 0.5f, 0.75f, nan, nan, nan, nan});
  ExpectAsDoubles("RGBToHSV", in);
  ExpectAsDoubles("HSVToRGB", in);
}

// Rotates hues by way of HSV in double; all six sectors meet all others.
TEST(Color, HueOfAnyNumberOfPixels) {
  for (const int64_t n : {1, 3, 8, 17, 1000}) {
    const Tensor in = Numbers(Shape({1, n, 3}), 6);
    Tensor wide(DT_DOUBLE, in.shape());
    for (int64_t i = 0; i < 3 * n; ++i) wide.data<double>()[i] = in.data<float>()[i];
    for (const float turns : {-0.99f, -0.4f, 0.0f, 0.25f, 0.8f, 1.7f}) {
      Tensor hsv = (*RunFed("RGBToHSV", {wide}))[0];
      for (int64_t i = 0; i < 3 * n; i += 3) {
        const double hue = hsv.data<double>()[i] + turns;
        hsv.data<double>()[i] = hue - std::floor(hue);
      }
      const Tensor want = (*RunFed("HSVToRGB", {hsv}))[0];
      const auto got = RunFed("AdjustHue", {in, Tensor::Scalar<float>(turns)});
      ASSERT_TRUE(got.ok()) << got.status();
      for (int64_t i = 0; i < 3 * n; ++i) {
        ASSERT_NEAR((*got)[0].data<float>()[i], want.data<double>()[i], 1e-5)
            << turns << " turns, element " << i;
      }
    }
  }
}

// As TensorFlow, which keeps the extremes of a pixel whose hue is no number.
TEST(Color, HueOfNan) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const Tensor in =
      Tensor::Of<float>(Shape({1, 4, 3}), {0.5f, nan, 0.25f, inf, 1, 2, nan, 1, 2, 1, 1, 1});
  const Tensor out = (*RunFed("AdjustHue", {in, Tensor::Scalar<float>(0.25f)}))[0];
  const Tensor scalar = (*RunFed("AdjustHue", {in, Tensor::Scalar<float>(1.25f)}))[0];
  for (int64_t i = 0; i < 12; ++i) {
    const float x = out.data<float>()[i], y = scalar.data<float>()[i];
    EXPECT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << x << " " << y << " at " << i;
  }
}

// Sizes of one block, several, and several pieces.
TEST(Color, ContrastOfAnySize) {
  const Shape shapes[] = {Shape({1, 1, 1}),        Shape({2, 3, 5, 1}),   Shape({2, 9, 15, 3}),
                          Shape({1, 300, 200, 3}), Shape({2, 40, 31, 4}), Shape({1, 17, 5, 33}),
                          Shape({1, 9, 8, 1000}),  Shape({3, 0, 2, 3})};
  for (const Shape& shape : shapes) {
    const Tensor in = Numbers(shape, 9);
    const auto got = RunFed("AdjustContrastv2", {in, Tensor::Scalar<float>(1.5f)});
    ASSERT_TRUE(got.ok()) << got.status();
    const int64_t channels = shape.dim(-1), pixels = shape.dim(-2) * shape.dim(-3);
    for (int64_t first = 0; first < in.num_elements(); first += pixels * channels) {
      for (int64_t c = 0; c < channels; ++c) {
        const float* x = in.data<float>() + first + c;
        const float* y = (*got)[0].data<float>() + first + c;
        double mean = 0;
        for (int64_t p = 0; p < pixels; ++p) mean += x[p * channels] / static_cast<double>(pixels);
        for (int64_t p = 0; p < pixels; ++p) {
          ASSERT_NEAR(y[p * channels], mean + 1.5 * (x[p * channels] - mean), 2e-6)
              << shape.ToString() << ", channel " << c << ", pixel " << p;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir
