#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/numeric_types.h"
#include "weir/tests/evaluate.h"

// Requantize to quint8 against TensorFlow's formula (RequantizeManyInNewRangeReference in
// core/kernels/quantization_utils.h) in 128-bit arithmetic.
namespace weir {
namespace {

struct Range {
  float min, max;
};

int64_t Limited(double x) {
  return std::isnan(x) ? 0 : static_cast<int64_t>(std::clamp(x, -0x1p62, 0x1p62));
}

uint8_t Reference(int32_t x, Range from, Range to) {
  const float range = to.max - to.min;
  const float reciprocal = range == 0 ? 0 : static_cast<float>(255.0 / range);
  const float center = static_cast<float>((from.min + from.max) / 2.0);
  const __int128 scale = range == 0 ? 0 : Limited(255.0 * 65536 * (from.max - from.min) / range);
  const __int128 shift = Limited(center * reciprocal * 65536.0f);
  const __int128 low = range == 0 ? 0 : Limited(std::round(65536 * (to.min * 255.0) / range));
  const __int128 sum = ((x * scale) >> 32) + shift - low + 32768;
  return static_cast<uint8_t>(std::clamp<__int128>(sum >> 16, 0, 255));
}

void ExpectReference(const std::vector<int32_t>& x, Range from, Range to) {
  SCOPED_TRACE(absl::StrCat(from.min, " ", from.max, " to ", to.min, " ", to.max));
  const auto scalar = [](float v) { return Tensor::Scalar<float>(v); };
  const auto got = RunFed("Requantize",
                          {Tensor::Vector<int32_t>(x).BitcastTo(DT_QINT32), scalar(from.min),
                           scalar(from.max), scalar(to.min), scalar(to.max)},
                          {{"out_type", DT_QUINT8}});
  ASSERT_TRUE(got.ok()) << got.status();
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ((*got)[0].data<quint8>()[i].value, Reference(x[i], from, to)) << x[i];
}

// Integers of all magnitudes, and the ends of their type.
std::vector<int32_t> Integers(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> x = {INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX - 1, INT32_MAX};
  while (x.size() < n) x.push_back(static_cast<int32_t>(random()) >> random() % 32);
  x.resize(n);
  return x;
}

TEST(Requantize, EqualsWideArithmetic) {
  std::mt19937 random(1);
  const auto magnitude = [&] { return std::pow(2.0f, static_cast<float>(random() % 40) - 20); };
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Range from = {-magnitude(), magnitude()}, to = {-magnitude() * (seed % 3), magnitude()};
    ExpectReference(Integers(100 + seed % 17, seed), from, to);
  }
}

TEST(Requantize, EqualsWideArithmeticAtTheLimits) {
  const std::vector<int32_t> x = Integers(1000, 5);
  constexpr float kHuge = std::numeric_limits<float>::max();
  for (const Range from : {Range{-1, 1},
                           {1, -1},
                           {3, 7},
                           {-7, -3},
                           {0, 0},
                           {-1e30f, 1e30f},
                           {1e30f, -1e30f},
                           {0, kHuge},
                           {-1e-30f, 1e-30f},
                           {-100, 1e9f}}) {
    for (const Range to : {Range{-1, 1},
                           {0, 0},
                           {0, 6},
                           {-1e-30f, 1e-30f},
                           {-1e30f, 1e30f},
                           {-1e9f, 0},
                           {-1e-3f, 1e-9f}})
      ExpectReference(x, from, to);
  }
}

TEST(Requantize, EqualsWideArithmeticForAnyLength) {
  for (size_t n = 0; n < 70; ++n) ExpectReference(Integers(n, 9), {-50, 40}, {-1, 2});
}

}  // namespace
}  // namespace weir
