#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Erf and Erfc against the C library with more digits, in units in the last place, over all ranges
// for which they have formulas of their own; and the same bits for an element wherever it stands.
namespace weir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
Tensor RunOn(const char* op, const std::vector<T>& x) {
  Tensor in(DataTypeOf<T>::value, Shape({static_cast<int64_t>(x.size())}));
  for (size_t i = 0; i < x.size(); ++i) in.data<T>()[i] = x[i];
  const absl::StatusOr<Tensors> out = RunFed(op, {in});
  EXPECT_TRUE(out.ok()) << op << ": " << out.status();
  return out.ok() ? (*out)[0] : in;
}

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

// Whole vectors and the tail are computed by the same instructions.
template <class T>
void ExpectSameBitsAnywhere(const char* op) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-5, 5);
  std::vector<T> x(70);
  for (T& v : x) v = static_cast<T>(uniform(random));
  const Tensor all = RunOn(op, x);
  for (size_t n = 1; n < x.size(); ++n) {
    const Tensor end = RunOn(op, std::vector<T>(x.end() - n, x.end()));
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(end.data<T>()[i], all.data<T>()[x.size() - n + i]) << op << " " << n << " " << i;
    }
  }
}

TEST(ErrorFunctions, ReturnTheSameBitsAtEveryPosition) {
  for (const char* op : {"Erf", "Erfc"}) {
    ExpectSameBitsAnywhere<float>(op);
    ExpectSameBitsAnywhere<double>(op);
  }
}

}  // namespace
}  // namespace weir
