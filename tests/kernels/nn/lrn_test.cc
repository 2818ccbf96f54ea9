#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// LRN and LRNGrad against their definition, for channels that fill vectors and tiles or do not.
namespace weir {
namespace {

constexpr double kBias = 1.5, kAlpha = 0.25;

Tensor Wave(const Shape& shape, double phase) {
  Tensor t(DT_FLOAT, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i)
    t.data<float>()[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i) + phase));
  return t;
}

// Sums f(k) over the channels around c.
template <class F>
double Around(int64_t c, int64_t radius, int64_t n, F f) {
  double sum = 0;
  for (int64_t k = std::max<int64_t>(0, c - radius); k < std::min(n, c + radius + 1); ++k)
    sum += f(k);
  return sum;
}

void ExpectLrn(int64_t pixels, int64_t n, int64_t radius, double beta) {
  SCOPED_TRACE(testing::Message() << pixels << " pixels, " << n << " channels, radius " << radius
                                  << ", beta " << beta);
  const Shape shape({1, 1, pixels, n});
  const Tensor x = Wave(shape, 0), dy = Wave(shape, 1);
  const Attrs attrs = {{"depth_radius", radius},
                       {"bias", static_cast<float>(kBias)},
                       {"alpha", static_cast<float>(kAlpha)},
                       {"beta", static_cast<float>(beta)}};
  const auto y = RunFed("LRN", {x}, attrs);
  ASSERT_TRUE(y.ok()) << y.status();
  const auto dx = RunFed("LRNGrad", {dy, x, (*y)[0]}, attrs);
  ASSERT_TRUE(dx.ok()) << dx.status();
  for (int64_t p = 0; p < pixels; ++p) {
    const float *const xs = x.data<float>() + p * n, *const dys = dy.data<float>() + p * n;
    std::vector<double> norm(static_cast<size_t>(n)), ys(static_cast<size_t>(n));
    for (int64_t c = 0; c < n; ++c) {
      norm[c] = kBias + kAlpha * Around(c, radius, n, [&](int64_t k) {
                          return static_cast<double>(xs[k]) * xs[k];
                        });
      ys[c] = xs[c] * std::pow(norm[c], -beta);
    }
    for (int64_t c = 0; c < n; ++c) {
      const double sum = Around(c, radius, n, [&](int64_t k) { return dys[k] * ys[k] / norm[k]; });
      const double want = dys[c] * std::pow(norm[c], -beta) - 2 * kAlpha * beta * xs[c] * sum;
      ASSERT_NEAR((*y)[0].data<float>()[p * n + c], ys[c], 2e-6) << p << " " << c;
      ASSERT_NEAR((*dx)[0].data<float>()[p * n + c], want, 1e-5) << p << " " << c;
    }
  }
}

TEST(Lrn, MatchesItsDefinition) {
  for (const int64_t n : {1, 3, 7, 8, 9, 16, 31, 32, 33, 70, 3000}) {
    for (const int64_t radius : {0, 1, 5, 40}) ExpectLrn(n > 100 ? 3 : 300, n, radius, 0.75);
  }
  for (const double beta : {0.0, 0.3, 0.5, 0.75, 1.0, -0.5}) ExpectLrn(200, 21, 2, beta);
  ExpectLrn(3, 5, 1000000, 0.5);
}

}  // namespace
}  // namespace weir
