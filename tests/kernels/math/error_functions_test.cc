#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/kernels/lib/elementwise.h"

// Erf and Erfc against the C library with more digits, in units in the last place, over all ranges
// for which they have formulas of their own; and the same bits for an element wherever it stands.
namespace weir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Function {
  const char* op;
  long double (*exact)(long double);
  double max_error;  // in units in the last place
};
const Function kFunctions[] = {{"Erf", +[](long double x) { return std::erf(x); }, 1.5},
                               {"Erfc", +[](long double x) { return std::erfc(x); }, 4.5}};

template <class T>
void ExpectAccurate(const Function& f, double from, double to) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(from, to);
  std::vector<T> x(100003);
  for (T& v : x) v = static_cast<T>(uniform(random));
  const Tensor got = RunOn(f.op, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const long double want = f.exact(x[i]);
    const T near = std::abs(static_cast<T>(want));
    const T ulp = std::nextafter(near, std::numeric_limits<T>::infinity()) - near;
    const double error = static_cast<double>(std::abs(got.data<T>()[i] - want) / ulp);
    ASSERT_LE(error, f.max_error) << f.op << " of " << x[i];
  }
}

TEST(ErrorFunctions, AreWithinUnitsInTheLastPlace) {
  for (const Function& f : kFunctions) {
    for (const auto& [from, to] :
         {std::pair(-1e-30, 1e-30), {-0.5, 0.5}, {0.4, 1.1}, {-1.1, -0.4}, {1., 4.1}, {-7., 11.}}) {
      ExpectAccurate<float>(f, from, to);
      ExpectAccurate<double>(f, from, to);
    }
    ExpectAccurate<double>(f, 10, 28);
  }
}

template <class T>
void ExpectSpecialValues() {
  const T least = std::numeric_limits<T>::denorm_min(), most = std::numeric_limits<T>::max();
  const std::vector<T> x = {0, T(-0.), T(kInf), T(-kInf), most, -most, 30, -30, least, T(kNan)};
  const Tensor erf = RunOn("Erf", x), erfc = RunOn("Erfc", x);
  const std::vector<T> want = {0, T(-0.), 1, -1, 1, -1, 1, -1, least},
                       rest = {1, 1, 0, 2, 0, 2, 0, 2, 1};
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(erf.data<T>()[i], want[i]) << x[i];
    EXPECT_EQ(std::signbit(erf.data<T>()[i]), std::signbit(want[i])) << x[i];
    EXPECT_EQ(erfc.data<T>()[i], rest[i]) << x[i];
  }
  EXPECT_TRUE(std::isnan(erf.data<T>()[want.size()]));
  EXPECT_TRUE(std::isnan(erfc.data<T>()[want.size()]));
}

TEST(ErrorFunctions, OfInfinitiesZerosAndNan) {
  ExpectSpecialValues<float>();
  ExpectSpecialValues<double>();
}

TEST(ErrorFunctions, ReturnTheSameBitsAtEveryPosition) {
  for (const char* op : {"Erf", "Erfc"}) {
    ExpectSameBitsAnywhere<float>(op, -5, 5);
    ExpectSameBitsAnywhere<double>(op, -5, 5);
  }
}

}  // namespace
}  // namespace weir
