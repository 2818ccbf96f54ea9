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

// Pairs of numbers with these ranges of logarithms, and of special numbers.
struct Pairs {
  std::vector<float> first, second;
  Pairs(double low_a, double high_a, double low_b, double high_b) {
    const float special[] = {0,   -0.f, 1,     2,         -1,       -1.5f, 0.05f,
                             1e4, 1e5f, 1e30f, 1 + 1e-6f, INFINITY, NAN,   -INFINITY};
    for (const float a : special) {
      for (const float b : special) first.push_back(a), second.push_back(b);
    }
    std::mt19937 random(9);
    std::uniform_real_distribution<double> a(low_a, high_a), b(low_b, high_b);
    for (int i = 0; i < 5003; ++i) {
      first.push_back(static_cast<float>(std::exp(a(random))));
      second.push_back(static_cast<float>(std::exp(b(random))));
    }
  }
};

Tensor RunOnPairs(const char* op, const std::vector<float>& a, const std::vector<float>& b) {
  const absl::StatusOr<Tensors> out =
      RunFed(op, {Tensor::Vector<float>(a), Tensor::Vector<float>(b)});
  EXPECT_TRUE(out.ok()) << op << ": " << out.status();
  return out.ok() ? (*out)[0] : Tensor::Vector<float>(a);
}

void ExpectPairsAsScalar(const char* op, double (*scalar)(double, double), const Pairs& pairs) {
  const Tensor got = RunOnPairs(op, pairs.first, pairs.second);
  for (size_t i = 0; i < pairs.first.size(); ++i) {
    const double exact = scalar(pairs.first[i], pairs.second[i]);
    const float want = static_cast<float>(exact), y = got.data<float>()[i];
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(y)) << op << " of " << pairs.first[i] << " " << pairs.second[i];
    } else if (std::isinf(want)) {
      ASSERT_EQ(y, want) << op << " of " << pairs.first[i] << " " << pairs.second[i];
    } else {
      ASSERT_NEAR(y, exact, 6.2e-8 * std::abs(exact) + 1.2e-38)
          << op << " of " << pairs.first[i] << " " << pairs.second[i];
    }
  }
}

TEST(GammaVectors, OfPairsReturnWhatScalarFunctionsReturn) {
  for (const auto& pairs : {Pairs(-4, 3, -4, 4), Pairs(2, 8, 2, 8), Pairs(5, 5.1, 4.9, 5.2)}) {
    ExpectPairsAsScalar("Igamma", Igamma, pairs);
    ExpectPairsAsScalar("Igammac", Igammac, pairs);
  }
  for (const auto& pairs : {Pairs(0, 1, -3, 3), Pairs(1e-6, 1e-4, -1, 1), Pairs(0, 8, -3, 12)})
    ExpectPairsAsScalar("Zeta", Zeta, pairs);
}

// Lanes stop at different steps.
TEST(GammaVectors, OfPairsReturnTheSameBitsAtEveryPosition) {
  const Pairs pairs(-2, 5, -2, 5);
  for (const char* op : {"Igamma", "Igammac", "Zeta"}) {
    const Tensor all = RunOnPairs(op, pairs.first, pairs.second);
    const size_t n = pairs.first.size();
    for (size_t i = n - 150; i < n; ++i) {
      const Tensor one = RunOnPairs(op, {pairs.first[i]}, {pairs.second[i]});
      const float want = all.data<float>()[i], got = one.data<float>()[0];
      if (std::isnan(want)) continue;
      ASSERT_EQ(got, want) << op << " " << i;
    }
  }
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
