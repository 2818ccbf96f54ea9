#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Fake quantization of many sizes and numbers of channels against a plain loop, bit for bit; the
// gradients of the range's ends are sums, in another order.
namespace weir {
namespace {

struct Range {
  float min = 0, max = 0, scale = 0, inverse = 0, zero = 0;
  bool empty = false;
  Range(float low, float high) : empty(low == 0 && high == 0) {
    scale = (high - low) / 255;
    inverse = 255 / (high - low);
    const float exact = 0 - low / scale;
    const float point = !(exact >= 0) ? 0 : exact > 255 ? 255 : std::round(exact);
    min = -point * scale;
    max = (255 - point) * scale;
    zero = std::floor(-min * inverse + 0.5f);
  }
  float Round(float x, bool divides) const {
    if (empty) return 0;
    const float offset = std::max(std::min(x, max), min) - min;
    return std::floor((divides ? offset / scale : offset * inverse) - zero + 0.5f) * scale;
  }
};

struct Example {
  std::vector<Range> ranges;
  Tensors inputs;  // dy, x, min, max
};
Example MakeExample(int64_t rows, int64_t channels) {
  const auto shape = Shape({rows, channels});
  Example e{{}, {Tensor(DT_FLOAT, shape), Tensor(DT_FLOAT, shape)}};
  std::vector<float> min(channels), max(channels);
  for (int64_t i = 0; i < channels; ++i) {
    min[i] = i % 7 == 3 ? 0 : -0.3f - 0.1f * static_cast<float>(i % 5);
    max[i] = i % 7 == 3 ? 0 : 0.9f + 0.2f * static_cast<float>(i % 3);
    e.ranges.emplace_back(min[i], max[i]);
  }
  float *dy = e.inputs[0].data<float>(), *x = e.inputs[1].data<float>();
  const float special[] = {NAN, INFINITY, -INFINITY, 0, -0.f, 1e30f, -1e30f};
  for (int64_t i = 0; i < rows * channels; ++i) {
    x[i] = i % 11 == 5 ? special[i / 11 % 7] : 2 * std::sin(static_cast<float>(i));
    dy[i] = i % 101 == 77 ? INFINITY : std::cos(static_cast<float>(i));
    if (std::isinf(dy[i]) && !(std::abs(x[i]) < 0.2f)) dy[i] = 1;  // sums stay finite
  }
  e.inputs.push_back(Tensor::Vector<float>(min));
  e.inputs.push_back(Tensor::Vector<float>(max));
  return e;
}

void ExpectSame(float got, float want, int64_t i) {
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(got)) << i;
  } else {
    ASSERT_EQ(got, want) << i;
  }
}

// `op` has one range or one per channel.
void ExpectAsPlain(const std::string& op, const Example& e, const Tensors& ranges, bool divides) {
  const int64_t n = e.inputs[1].num_elements(), channels = static_cast<int64_t>(e.ranges.size());
  const float *dy = e.inputs[0].data<float>(), *x = e.inputs[1].data<float>();
  const auto y = RunFed(op, {e.inputs[1], ranges[0], ranges[1]});
  const auto dx = RunFed(op + "Gradient", {e.inputs[0], e.inputs[1], ranges[0], ranges[1]});
  ASSERT_TRUE(y.ok() && dx.ok()) << y.status() << dx.status();
  std::vector<double> sums(2 * channels), sizes(2 * channels);
  for (int64_t i = 0; i < n; ++i) {
    const Range& r = e.ranges[i % channels];
    ExpectSame((*y)[0].data<float>()[i], r.Round(x[i], divides), i);
    const bool inside = r.empty || (x[i] >= r.min && x[i] <= r.max);
    ExpectSame((*dx)[0].data<float>()[i], inside ? dy[i] : dy[i] * 0, i);
    if (inside || std::isnan(x[i])) continue;
    const int64_t at = i % channels + (x[i] > r.max ? channels : 0);
    sums[at] += dy[i];
    sizes[at] += std::abs(dy[i]);
  }
  for (int64_t i = 0; i < 2 * channels; ++i) {
    const float got = (*dx)[1 + i / channels].data<float>()[i % channels];
    ASSERT_NEAR(got, sums[i], 1e-7 * std::abs(sums[i]) + 1e-12 * sizes[i]) << i;
  }
}

TEST(FakeQuant, IsThatOfPlainLoops) {
  for (const int64_t rows : {1, 2, 7, 65, 1300}) {
    for (const int64_t channels : {1, 2, 3, 5, 16, 63, 64, 65, 130}) {
      const Example e = MakeExample(rows, channels);
      ExpectAsPlain("FakeQuantWithMinMaxVarsPerChannel", e, {e.inputs[2], e.inputs[3]}, false);
    }
  }
}

TEST(FakeQuant, OfOneRangeIsThatOfPlainLoops) {
  for (const int64_t n : {1, 3, 15, 16, 17, 63, 64, 65, 1000, 100003}) {
    const Example e = MakeExample(n, 1);
    ExpectAsPlain("FakeQuantWithMinMaxVars", e,
                  {Tensor::Scalar<float>(*e.inputs[2].data<float>()),
                   Tensor::Scalar<float>(*e.inputs[3].data<float>())},
                  true);
  }
}

TEST(FakeQuant, OfNoElementsIsEmpty) {
  const auto none = RunFed("FakeQuantWithMinMaxVarsPerChannelGradient",
                           {Tensor(DT_FLOAT, Shape({0, 3})), Tensor(DT_FLOAT, Shape({0, 3})),
                            Tensor::Vector<float>({-1, -1, -1}), Tensor::Vector<float>({1, 1, 1})});
  ASSERT_TRUE(none.ok()) << none.status();
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*none)[1].data<float>()[i], 0);
}

}  // namespace
}  // namespace weir
