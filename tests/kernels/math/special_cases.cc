#include <cmath>
#include <functional>

#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/op_case.h"

// Gradients checked to order 1 by rows: Expint.

// Bessel functions and integrals of elementary functions. The references are the C++ library's
// functions, or numeric integrals.
namespace weir {

namespace {

// Simpson's rule with many steps.
double Integral(double from, double to, const std::function<double(double)>& f) {
  constexpr int kSteps = 20000;
  const double h = (to - from) / kSteps;
  double sum = f(from) + f(to);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * f(from + i * h);
  return sum * h / 3;
}

double I0(double x) { return std::cyl_bessel_i(0, std::abs(x)); }
double I1(double x) { return std::copysign(std::cyl_bessel_i(1, std::abs(x)), x); }
double J1(double x) { return (x < 0 ? -1 : 1) * std::cyl_bessel_j(1, std::abs(x)); }

double DawsnByIntegral(double x) {
  return Integral(0, x, [x](double t) { return std::exp((t - x) * (t + x)); });
}
double FresnelCosByIntegral(double x) {
  return Integral(0, x, [](double t) { return std::cos(M_PI / 2 * t * t); });
}
double FresnelSinByIntegral(double x) {
  return Integral(0, x, [](double t) { return std::sin(M_PI / 2 * t * t); });
}
// With t = exp(u), so that the integrand is not steep.
double SpenceByIntegral(double x) {
  return -Integral(0, std::log(x),
                   [](double u) { return u == 0 ? 1 : u * std::exp(u) / std::expm1(u); });
}

// For a, b >= 4, where the integrand is smooth at its ends.
double BetaByIntegral(double a, double b, double x) {
  const auto f = [=](double t) { return std::pow(t, a - 1) * std::pow(1 - t, b - 1); };
  return Integral(0, x, f) / Integral(0, 1, f);
}

Tensors BetaincReference(const Node&, const Tensors& in) {
  const auto at = [&](int k, int64_t i) { return in[k].data<double>()[in[k].rank() == 0 ? 0 : i]; };
  int widest = 0;
  for (int k = 1; k < 3; ++k) {
    if (in[widest].rank() == 0) widest = k;
  }
  Tensor out(DT_DOUBLE, in[widest].shape());
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    out.data<double>()[i] = BetaByIntegral(at(0, i), at(1, i), at(2, i));
  }
  return {out};
}

// Numeric integrals are slow: the rows of these functions have few elements.
OpReference EachBy(double (*f)(double)) {
  return [f](const Node&, const Tensors& in) -> Tensors {
    Tensor out(DT_DOUBLE, in[0].shape());
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      out.data<double>()[i] = f(in[0].data<double>()[i]);
    }
    return {out};
  };
}

std::vector<OpCase> BesselCases() {
  const Range all = {-9, 9}, positive = {0.1, 30};
  std::vector<OpCase> rows = {
      OpCase("BesselI0", I0, all).Gradient(2),
      OpCase("BesselI1", I1, all).Gradient(2),
      OpCase("BesselI0e", +[](double x) { return I0(x) * std::exp(-std::abs(x)); }, {0.1, 30})
          .Gradient(2),
      OpCase("BesselI1e", +[](double x) { return I1(x) * std::exp(-std::abs(x)); }, {0.1, 30})
          .Gradient(2),
      OpCase(
          "BesselJ0", +[](double x) { return std::cyl_bessel_j(0, std::abs(x)); }, all)
          .Gradient(2),
      OpCase("BesselJ1", J1, all).Gradient(2),
      OpCase(
          "BesselY0", +[](double x) { return std::cyl_neumann(0, x); }, positive)
          .Gradient(2),
      OpCase(
          "BesselY1", +[](double x) { return std::cyl_neumann(1, x); }, positive)
          .Gradient(2),
      OpCase(
          "BesselK0", +[](double x) { return std::cyl_bessel_k(0, x); }, positive)
          .Gradient(2),
      OpCase(
          "BesselK1", +[](double x) { return std::cyl_bessel_k(1, x); }, positive)
          .Gradient(2),
      OpCase(
          "BesselK0e", +[](double x) { return std::cyl_bessel_k(0, x) * std::exp(x); }, positive)
          .Gradient(2),
      OpCase(
          "BesselK1e", +[](double x) { return std::cyl_bessel_k(1, x) * std::exp(x); }, positive)
          .Gradient(2),
      OpCase("Expint", +[](double x) { return std::expint(x); }, {0.5, 12}).Gradient(1),
      OpCase(
          "NextAfter", +[](double x, double y) { return std::nextafter(x, y); }, all),
  };
  for (OpCase& row : rows) row.NoSpecials().ToleranceFactor(10);
  const struct {
    const char* op;
    double (*f)(double);
    Range range;
  } integrals[] = {{"Dawsn", DawsnByIntegral, all},
                   {"FresnelCos", FresnelCosByIntegral, {-5, 5}},
                   {"FresnelSin", FresnelSinByIntegral, {-5, 5}},
                   {"Spence", SpenceByIntegral, {0.1, 20}}};
  for (const auto& row : integrals) {
    for (const auto& [label, shape] :
         {std::pair("", Shape({2, 7})), {"scalar", Shape({})}, {"empty", Shape({0})}}) {
      rows.push_back(
          OpCase(row.op).Label(label).Input(shape, row.range).Gradient(2).Reference(EachBy(row.f)));
    }
  }
  const std::vector<std::pair<const char*, std::vector<Shape>>> shapes = {
      {"", {{6}, {6}, {6}}},
      {"scalars", {{}, {}, {2, 3}}},
      {"scalar_x", {{4}, {4}, {}}},
      {"empty", {{0}, {}, {0}}}};
  for (const auto& [label, s] : shapes) {
    rows.push_back(OpCase("Betainc")
                       .Label(label)
                       .Input(s[0], {4, 7})
                       .Input(s[1], {4, 7})
                       .Input(s[2], {0.1, 0.9})
                       .GradientInputs({2})
                       .Reference(BetaincReference));
  }
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Special, OpSweepTest, testing::ValuesIn(BesselCases()), OpCaseName);

namespace {

// The function's result for one number.
double Value(const char* op, double x) {
  const absl::StatusOr<Tensors> y = RunFed(op, {Tensor::Scalar(x)});
  EXPECT_TRUE(y.ok()) << y.status();
  return y.ok() ? (*y)[0].data<double>()[0] : 0;
}

// Values with 17 digits, computed in arbitrary precision.
TEST(Special, ValuesAreExactToAFewUnits) {
  const struct {
    const char* op;
    double x, y;
  } rows[] = {
      {"BesselI0", 0.5, 1.0634833707413235},        {"BesselI0", 19.5, 26760525.339838766},
      {"BesselI0", 25, 5774560606.4663103},         {"BesselI0", 700, 1.5295933476718737e+302},
      {"BesselI1", 1e-08, 5.0000000000000002e-9},   {"BesselI1", 3, 3.9533702174026094},
      {"BesselI1", 25, 5657865129.8787014},         {"BesselI0e", 2, 0.30850832255367104},
      {"BesselI0e", 500, 0.017845706500153167},     {"BesselI1e", 2, 0.21526928924893766},
      {"BesselI1e", 500, 0.017827851852898056},     {"BesselK0", 1e-08, 18.536612259610778},
      {"BesselK0", 0.75, 0.61058242211646412},      {"BesselK0", 1.25, 0.29760308908410592},
      {"BesselK0", 100, 4.656628229175902e-45},     {"BesselK1", 1e-08, 99999999.999999903},
      {"BesselK1", 0.75, 0.94958046696214023},      {"BesselK1", 1.25, 0.40212407978419541},
      {"BesselK1", 100, 4.6798537356369093e-45},    {"BesselK0e", 0.5, 1.5241093857739095},
      {"BesselK0e", 10, 0.39163193443659867},       {"BesselK0e", 10000.0, 0.012532984717699285},
      {"BesselK1e", 0.5, 2.7310097082117857},       {"BesselK1e", 10, 0.41076657059578875},
      {"BesselK1e", 10000.0, 0.012533611351270506}, {"BesselJ0", 1, 0.76519768655796655},
      {"BesselJ0", 50, 0.055812327669251815},       {"BesselJ1", 1, 0.44005058574493352},
      {"BesselJ1", 50, -0.097511828125175138},      {"BesselY0", 0.25, -0.93157302493005869},
      {"BesselY0", 50, -0.098064995470077079},      {"BesselY1", 0.25, -2.7041052293152824},
      {"BesselY1", 50, -0.056795668562014768},      {"Dawsn", 0.25, 0.23983916356289821},
      {"Dawsn", 1.5, 0.42824907108539863},          {"Dawsn", 8, 0.063000198707553388},
      {"Dawsn", 20, 0.025031367926403672},          {"Expint", 1, 1.8951178163559368},
      {"Expint", 39, 2280446200301902.6},           {"Expint", 45, 7.9439160357044538e+17},
      {"Expint", 500, 2.8128213978862943e+214},     {"FresnelCos", 0.5, 0.49234422587144639},
      {"FresnelCos", 1.75, 0.32193504614953786},    {"FresnelCos", 40, 0.49999841685744546},
      {"FresnelSin", 0.5, 0.064732432859999278},    {"FresnelSin", 1.75, 0.49938467459067455},
      {"FresnelSin", 40, 0.4920422537902731},       {"Spence", 0.125, 1.2381234817964802},
      {"Spence", 0.75, 0.26765263908273261},        {"Spence", 1.5, -0.4484142069236462},
      {"Spence", 1000000.0, -97.079085239941675},
  };
  for (const auto& row : rows) {
    EXPECT_NEAR(Value(row.op, row.x) / row.y, 1, 2e-15) << row.op << "(" << row.x << ")";
  }
}

TEST(Special, LimitsAreInfiniteOrZeroOrNan) {
  const double inf = HUGE_VAL;
  EXPECT_EQ(Value("BesselI0", 800), inf);
  EXPECT_EQ(Value("BesselI1", -inf), -inf);
  EXPECT_EQ(Value("BesselI0e", inf), 0);
  EXPECT_EQ(Value("BesselK0", 0), inf);
  EXPECT_EQ(Value("BesselK1e", -1), inf);
  EXPECT_EQ(Value("BesselK0", 1000), 0);
  EXPECT_EQ(Value("BesselK1", inf), 0);
  EXPECT_EQ(Value("BesselY0", 0), -inf);
  EXPECT_EQ(Value("BesselY1", -1), -inf);
  EXPECT_EQ(Value("Dawsn", inf), 0);
  EXPECT_EQ(Value("Expint", 0), -inf);
  EXPECT_EQ(Value("Expint", 1000), inf);
  EXPECT_TRUE(std::isnan(Value("Expint", -1)));
  EXPECT_EQ(Value("FresnelCos", -inf), -0.5);
  EXPECT_EQ(Value("FresnelSin", 1e300), 0.5);
  EXPECT_TRUE(std::isnan(Value("Spence", -1)));
  for (const char* op : {"BesselI0", "BesselJ1", "BesselK0e", "BesselY1", "Dawsn", "Expint",
                         "FresnelSin", "Spence"}) {
    EXPECT_TRUE(std::isnan(Value(op, std::nan("")))) << op;
  }
}

TEST(Special, NextAfterIsTheNeighborInItsType) {
  const auto next = RunFed("NextAfter", {Tensor::Vector<float>({0, 1, 1, 2}),
                                         Tensor::Vector<float>({1, 0, 1, HUGE_VALF})});
  ASSERT_TRUE(next.ok()) << next.status();
  const float* y = (*next)[0].data<float>();
  EXPECT_EQ(y[0], 1.40129846e-45f);
  EXPECT_EQ(y[1], 0.999999940f);
  EXPECT_EQ(y[2], 1);
  EXPECT_EQ(y[3], 2.00000024f);
}

TEST(Special, BetaincRejectsIncompatibleShapes) {
  const auto vector = [](int64_t n) { return Tensor::Zeros(DT_FLOAT, {n}); };
  const auto z = RunFed("Betainc", {vector(2), Tensor::Scalar(1.f), vector(3)});
  EXPECT_EQ(z.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(z.status().message().find("a and x are inconsistent"), std::string::npos) << z.status();
}

TEST(Special, BetaincIsNanOutsideItsDomain) {
  const auto z = RunFed("Betainc", {Tensor::Vector<double>({1, 0, 1, 1, 2e5}),
                                    Tensor::Vector<double>({0, 1, 1, 3, 2e5}),
                                    Tensor::Vector<double>({.5, .5, -.1, 1, .5})});
  ASSERT_TRUE(z.ok()) << z.status();
  const double* y = (*z)[0].data<double>();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
  EXPECT_EQ(y[3], 1);
  EXPECT_NEAR(y[4], 0.5, 1e-12);
}

}  // namespace

}  // namespace weir
