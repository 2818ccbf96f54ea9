#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Atan2 against the C library: all pairs of special values, all octants, quotients near 1 and near
// the bounds of the type, and the same bits wherever a pair stands.
namespace weir {
namespace {

template <class T>
Tensor Atan2(const std::vector<T>& y, const std::vector<T>& x) {
  const absl::StatusOr<Tensors> out = RunFed("Atan2", {Tensor::Vector<T>(y), Tensor::Vector<T>(x)});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0] : Tensor::Vector<T>(y);
}

template <class T>
void ExpectAsLibrary() {
  constexpr T kInf = std::numeric_limits<T>::infinity(), kMost = std::numeric_limits<T>::max();
  constexpr T kLeast = std::numeric_limits<T>::min(), kEpsilon = std::numeric_limits<T>::epsilon();
  std::vector<T> special, y, x;
  for (const T v : {T(0), kLeast, T(1), 1 + kEpsilon, T(3), kMost, kInf, T(NAN)}) {
    special.push_back(v);
    special.push_back(-v);
  }
  for (const T a : special) {
    for (const T b : special) y.push_back(a), x.push_back(b);
  }
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1), exponent(-12, 12);
  for (int i = 0; i < 50001; ++i) {
    const double a = uniform(random), b = uniform(random);
    y.push_back(static_cast<T>(a)), x.push_back(static_cast<T>(b));
    y.push_back(static_cast<T>(a * std::pow(10, exponent(random)))), x.push_back(static_cast<T>(b));
    y.push_back(static_cast<T>(a)), x.push_back(static_cast<T>(a * (1 + 1e-6 * b)));
  }
  const Tensor got = Atan2<T>(y, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const T want = std::atan2(y[i], x[i]), z = got.data<T>()[i];
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(z)) << y[i] << " " << x[i];
    } else {
      // A result below the least normal number may be flushed to 0.
      const T unit = std::max(kEpsilon * std::abs(want), kLeast);
      ASSERT_NEAR(z, want, 2 * unit) << y[i] << " " << x[i];
      ASSERT_EQ(std::signbit(z), std::signbit(want)) << y[i] << " " << x[i];
    }
  }
}

TEST(Atan2, ReturnsWhatTheLibraryReturns) {
  ExpectAsLibrary<float>();
  ExpectAsLibrary<double>();
}

template <class T>
void ExpectSameBits() {
  std::vector<T> y, x;
  for (int i = 0; i < 70; ++i)
    y.push_back(T(i * 37 % 23 - 11.3)), x.push_back(T(i * 29 % 31 - 17.1));
  const Tensor all = Atan2<T>(y, x);
  for (size_t n = 1; n < y.size(); ++n) {
    const Tensor end = Atan2<T>({y.end() - n, y.end()}, {x.end() - n, x.end()});
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(end.data<T>()[i], all.data<T>()[y.size() - n + i]) << n << " " << i;
  }
}

TEST(Atan2, ReturnsTheSameBitsAtEveryPosition) {
  ExpectSameBits<float>();
  ExpectSameBits<double>();
}

}  // namespace
}  // namespace weir
