#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Integers divided by a scalar, against the division of each by its own divisor: the same bits for
// divisors and dividends of all sizes, at the ends of the range and around multiples.
namespace weir {
namespace {

template <class T>
std::vector<T> Divisors(std::mt19937_64& random) {
  constexpr T kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  std::vector<T> d = {1, -1, 2, -2, 3, 7, -7, 10, 641, kMin, kMax, kMin + 1, kMax - 1};
  for (int bit = 2; bit < 8 * static_cast<int>(sizeof(T)) - 1; ++bit) {
    const T power = T{1} << bit;
    d.insert(d.end(), {power, -power, power - 1, power + 1, -power - 1});
    d.push_back(power + static_cast<T>(random() % power));
  }
  return d;
}

template <class T>
Tensor Dividends(T d, std::mt19937_64& random) {
  constexpr T kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  std::vector<T> x = {0, 1, -1, kMin, kMin + 1, kMax, kMax - 1};
  while (x.size() < 600) {
    const T any = static_cast<T>(random());
    const T multiple = d == -1 ? any : any / d * d;
    const T small = static_cast<T>(random() % 2001) - 1000;
    for (const T v : {any, multiple, small}) x.push_back(v);
    if (multiple > kMin && multiple < kMax) x.insert(x.end(), {multiple - 1, multiple + 1});
  }
  return Tensor::Vector<T>(x);
}

template <class T>
void ExpectAsByElement() {
  std::mt19937_64 random(5);
  for (const T d : Divisors<T>(random)) {
    const Tensor x = Dividends<T>(d, random);
    const std::vector<T> divisors(x.num_elements(), d);
    for (const char* op : {"FloorDiv", "FloorMod", "Div", "TruncateDiv", "Mod", "TruncateMod"}) {
      const auto got = RunFed(op, {x, Tensor::Scalar(d)}),
                 want = RunFed(op, {x, Tensor::Vector<T>(divisors)});
      ASSERT_TRUE(got.ok() && want.ok()) << got.status() << want.status();
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        ASSERT_EQ((*got)[0].template data<T>()[i], (*want)[0].template data<T>()[i])
            << op << " of " << x.data<T>()[i] << " and " << d;
      }
    }
  }
}

TEST(DivideByScalar, Int32) { ExpectAsByElement<int32_t>(); }
TEST(DivideByScalar, Int64) { ExpectAsByElement<int64_t>(); }

TEST(DivideByScalar, ByZeroIsAnError) {
  const Tensor x = Tensor::Vector<int32_t>(std::vector<int32_t>(1000, 3));
  for (const char* op : {"FloorDiv", "FloorMod", "Div", "TruncateDiv", "Mod", "TruncateMod"}) {
    EXPECT_EQ(RunFed(op, {x, Tensor::Scalar<int32_t>(0)}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << op;
  }
}

}  // namespace
}  // namespace weir
