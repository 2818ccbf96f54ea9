#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "weir/kernels/math/special_functions.h"
#include "weir/tests/kernels/lib/elementwise.h"

// Lgamma and Digamma by vectors against the scalar functions: near their zeros, around the bounds
// of their formulas, for tiny, huge and negative arguments next to each other; and the same bits
// wherever an element stands.
namespace weir {
namespace {

template <class T>
std::vector<T> Arguments() {
  constexpr T kInf = std::numeric_limits<T>::infinity(), kNan = std::numeric_limits<T>::quiet_NaN();
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  std::vector<T> x = {0, T(-0.), -1, -2, kInf, -kInf, kNan, kLeast, kMost, -kMost, 1, 2, 10, 4};
  std::mt19937 random(5);
  for (const auto& [from, to] : {std::pair(0., 2.5),
                                 {0.999999, 1.000001},
                                 {1.999999, 2.000001},
                                 {1.46162, 1.46164},
                                 {0.74, 0.76},
                                 {2.24, 2.26},
                                 {3.9, 4.1},
                                 {2., 12.},
                                 {-9., 9.},
                                 {0., 1e-6},
                                 {10., 1e6},
                                 {1e9, 1e30}}) {
    std::uniform_real_distribution<double> uniform(from, to);
    for (int i = 0; i < 3001; ++i) x.push_back(static_cast<T>(uniform(random)));
  }
  return x;
}

// `absolute` is the error near a zero of the function.
template <class T>
void ExpectAsScalar(const char* op, double (*scalar)(double), double relative, double absolute) {
  const std::vector<T> x = Arguments<T>();
  const Tensor got = RunOn(op, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const T want = static_cast<T>(scalar(x[i])), y = got.data<T>()[i];
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(y)) << op << " of " << x[i];
    } else if (std::isinf(want)) {
      ASSERT_EQ(y, want) << op << " of " << x[i];
    } else {
      ASSERT_NEAR(y, want, relative * std::abs(want) + absolute) << op << " of " << x[i];
    }
  }
}

TEST(GammaVectors, ReturnWhatScalarFunctionsReturn) {
  ExpectAsScalar<float>("Lgamma", Lgamma, 1.2e-7, 0);
  ExpectAsScalar<float>("Digamma", Digamma, 1.2e-7, 1e-14);
  ExpectAsScalar<double>("Digamma", Digamma, 4e-15, 1e-14);
}

TEST(GammaVectors, LgammaHasPositiveZeros) {
  const Tensor zeros = RunOn("Lgamma", std::vector<float>(33, 1)),
               more = RunOn("Lgamma", std::vector<float>(33, 2));
  for (const Tensor& t : {zeros, more}) {
    for (const float y : t.flat<float>()) {
      EXPECT_EQ(y, 0);
      EXPECT_FALSE(std::signbit(y));
    }
  }
}

TEST(GammaVectors, ReturnTheSameBitsAtEveryPosition) {
  ExpectSameBitsAnywhere<float>("Lgamma", -1, 12);
  ExpectSameBitsAnywhere<float>("Digamma", -1, 12);
  ExpectSameBitsAnywhere<double>("Digamma", -1, 12);
}

}  // namespace
}  // namespace weir
