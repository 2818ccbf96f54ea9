#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/kernels/lib/elementwise.h"

// Ndtri and Erfinv against iterations on the C library's error functions, with tails, bounds of
// their formulas and special values next to each other; and the same bits wherever an element
// stands.
namespace weir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// The start is formula 26.2.23 of Abramowitz and Stegun; Halley's iteration follows.
double PlainNdtri(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0) return -kInf;
  if (p == 1) return kInf;
  const double tail = std::min(p, 1 - p), t = std::sqrt(-2 * std::log(tail));
  double x = -(t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
  for (int i = 0; i < 4; ++i) {
    const double error = 0.5 * std::erfc(-x * M_SQRT1_2) - tail;
    const double newton = error * std::sqrt(2 * M_PI) * std::exp(0.5 * x * x);
    x -= newton / (1 + 0.5 * x * newton);
  }
  return p < 0.5 ? x : -x;
}
double PlainErfinv(double y) {
  if (!(y >= -1 && y <= 1)) return NAN;
  const double size = std::abs(y);
  if (size == 1) return std::copysign(kInf, y);
  double x = size < 0.5 ? size * 0.886226925452758 : PlainNdtri((1 - size) / 2) * -M_SQRT1_2;
  for (int i = 0; i < 6; ++i) {
    const double error = size < 0.5 ? std::erf(x) - size : (1 - size) - std::erfc(x);
    const double newton = error / (1.1283791670955126 * std::exp(-x * x));
    x -= newton / (1 + x * newton);
  }
  return std::copysign(x, y);
}

template <class T>
std::vector<T> Arguments() {
  constexpr T kStep = std::numeric_limits<T>::epsilon() / 2;
  std::vector<T> x = {0, T(-0.), 1, -1, T(NAN), T(kInf), T(-kInf), 2, T(-1e-30), T(1 + 3 * kStep)};
  for (const T v : {kStep, T(1e-30), std::numeric_limits<T>::min(), T(0.075), T(0.925), T(0.85)}) {
    for (const T w : {std::nextafter(v, T(0)), v, std::nextafter(v, T(1))}) {
      for (const T u : {w, -w, 1 - w, w - 1}) x.push_back(u);
    }
  }
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(0, 1), exponent(-37, 0);
  for (int i = 0; i < 4001; ++i) {
    const T u = static_cast<T>(uniform(random)), e = static_cast<T>(std::pow(10, exponent(random)));
    for (const T v : {u, -u, e, 1 - e, -e, e - 1}) x.push_back(v);
  }
  return x;
}

template <class T>
void ExpectAsPlain(const char* op, double (*plain)(double), double relative, double absolute) {
  const std::vector<T> x = Arguments<T>();
  const Tensor got = RunOn(op, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = plain(x[i]), y = got.data<T>()[i];
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(y)) << op << " of " << x[i];
    } else if (std::isinf(want)) {
      ASSERT_EQ(y, want) << op << " of " << x[i];
    } else {
      ASSERT_NEAR(y, want, relative * std::abs(want) + absolute) << op << " of " << x[i];
    }
  }
}

// The iterations themselves are good to some units in the last place of a double.
TEST(QuantileVectors, ReturnWhatIterationsReturn) {
  ExpectAsPlain<float>("Ndtri", PlainNdtri, 6.1e-8, 1e-16);
  ExpectAsPlain<float>("Erfinv", PlainErfinv, 6.1e-8, 0);
  ExpectAsPlain<double>("Ndtri", PlainNdtri, 8 * kEpsilon, kEpsilon);
  ExpectAsPlain<double>("Erfinv", PlainErfinv, 8 * kEpsilon, 0);
}

TEST(QuantileVectors, ErfinvKeepsTheSignOfZero) {
  const Tensor got = RunOn("Erfinv", std::vector<float>{0, -0.f});
  EXPECT_FALSE(std::signbit(got.data<float>()[0]));
  EXPECT_TRUE(std::signbit(got.data<float>()[1]));
}

TEST(QuantileVectors, ReturnTheSameBitsAtEveryPosition) {
  ExpectSameBitsAnywhere<float>("Erfinv", -0.999, 0.999);
  ExpectSameBitsAnywhere<double>("Erfinv", -0.999, 0.999);
  ExpectSameBitsAnywhere<float>("Ndtri", 0, 1);
  ExpectSameBitsAnywhere<double>("Ndtri", 0, 1);
}

}  // namespace
}  // namespace weir
