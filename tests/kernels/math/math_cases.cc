#include <cmath>
#include <complex>
#include <functional>

#include "weir/tests/kernels/lib/op_case.h"

// Gradients checked to order 1 by rows: Cast, Igamma, Igammac.

namespace weir {

namespace {

using Z = complex128;

double SignOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double SafeDiv(double x, double y) { return y == 0 ? 0 : x / y; }
double Floored(double x, double y) { return std::floor(x / y); }
double FloorRemainder(double x, double y) {
  const double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
double NanMax(double x, double y) { return std::isnan(x) ? x : std::isnan(y) ? y : std::max(x, y); }
double NanMin(double x, double y) { return std::isnan(x) ? x : std::isnan(y) ? y : std::min(x, y); }

// P(a, x) by numeric integration: the trapezoidal rule with the substitution t = x u^8 (smooth at 0
// for a > 1/4).
double IncompleteGamma(double a, double x) {
  constexpr int kSteps = 20000;
  double sum = 0;
  for (int i = 1; i < kSteps; ++i) {
    const double u = static_cast<double>(i) / kSteps, t = x * std::pow(u, 8);
    sum += std::pow(t, a - 1) * std::exp(-t) * 8 * x * std::pow(u, 7);
  }
  sum += 0.5 * std::pow(x, a - 1) * std::exp(-x) * 8 * x;
  return sum / kSteps / std::tgamma(a);
}
// The derivative of log gamma by a high-order central difference.
double DigammaByDifferences(double x) {
  const double h = 1e-3;
  const auto f = [](double v) { return std::lgamma(v); };
  return (45 * (f(x + h) - f(x - h)) - 9 * (f(x + 2 * h) - f(x - 2 * h)) +
          (f(x + 3 * h) - f(x - 3 * h))) /
         (60 * h);
}
double ZetaBySum(double x, double q) {
  double sum = 0;
  constexpr int kTerms = 20000;
  for (int n = kTerms - 1; n >= 0; --n) sum += std::pow(q + n, -x);
  const double m = q + kTerms;
  return sum + std::pow(m, 1 - x) / (x - 1) + 0.5 * std::pow(m, -x);
}
// Returns the root of f(v) = y in [low, high] by bisection, for an increasing f.
double Bisect(const std::function<double(double)>& f, double y, double low, double high) {
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (f(middle) < y ? low : high) = middle;
  }
  return low;
}

std::vector<OpCase> UnaryCases() {
  return {
      OpCase("Abs", +[](double x) { return std::abs(x); }, {-9, 9}),
      OpCase("Neg", +[](double x) { return -x; }, {-9, 9}).Complex(+[](Z x) { return -x; }),
      OpCase("Sign", SignOf, {-9, 9}).Complex(+[](Z x) {
        return x == 0.0 ? Z(0) : x / std::abs(x);
      }),
      OpCase("Reciprocal", +[](double x) { return 1 / x; }, {-3, 3, true})
          .Complex(+[](Z x) { return 1.0 / x; })
          .Gradient(2),
      OpCase("Inv", +[](double x) { return 1 / x; }, {-3, 3, true}).Gradient(2),
      OpCase("Square", +[](double x) { return x * x; }, {-9, 9})
          .Complex(+[](Z x) { return x * x; })
          .Gradient(2),
      OpCase("Sqrt", +[](double x) { return std::sqrt(x); }, {0.1, 9})
          .Complex(+[](Z x) { return std::sqrt(x); })
          .Gradient(2),
      OpCase("Rsqrt", +[](double x) { return 1 / std::sqrt(x); }, {0.1, 9})
          .Complex(+[](Z x) { return 1.0 / std::sqrt(x); })
          .Gradient(2),
      OpCase("Exp", +[](double x) { return std::exp(x); }, {-5, 5})
          .Complex(+[](Z x) { return std::exp(x); })
          .Gradient(2),
      OpCase("Exp", +[](double x) { return std::exp(x); }, {-104, 88})
          .Label("range")
          .Types({DT_FLOAT, DT_DOUBLE})
          .Gradient(0),
      OpCase("Expm1", +[](double x) { return std::expm1(x); }, {-5, 5}).Complex(+[](Z x) {
        return std::exp(x) - 1.0;
      }),
      OpCase("Log", +[](double x) { return std::log(x); }, {0.01, 90})
          .Complex(+[](Z x) { return std::log(x); })
          .Gradient(2),
      OpCase("Log1p", +[](double x) { return std::log1p(x); }, {-0.9, 9}).Complex(+[](Z x) {
        return std::log(1.0 + x);
      }),
      OpCase("Sin", +[](double x) { return std::sin(x); }, {-20, 20})
          .Complex(+[](Z x) { return std::sin(x / 10.0 * 10.0); })
          .NotTypes({DT_COMPLEX64, DT_COMPLEX128})
          .Gradient(2),
      OpCase("Sin", +[](double x) { return std::sin(x); }, {-2, 2})
          .Label("small")
          .Complex(+[](Z x) { return std::sin(x); }),
      OpCase("Cos", +[](double x) { return std::cos(x); }, {-20, 20}).Gradient(2),
      OpCase("Cos", +[](double x) { return std::cos(x); }, {-2, 2})
          .Label("small")
          .Complex(+[](Z x) { return std::cos(x); }),
      OpCase("Tan", +[](double x) { return std::tan(x); }, {-1.3, 1.3}).Complex(+[](Z x) {
        return std::tan(x);
      }),
      OpCase("Asin", +[](double x) { return std::asin(x); }, {-0.95, 0.95}).Complex(+[](Z x) {
        return std::asin(x);
      }),
      OpCase("Acos", +[](double x) { return std::acos(x); }, {-0.95, 0.95}).Complex(+[](Z x) {
        return std::acos(x);
      }),
      OpCase("Atan", +[](double x) { return std::atan(x); }, {-9, 9}).Complex(+[](Z x) {
        return std::atan(x);
      }),
      OpCase("Sinh", +[](double x) { return std::sinh(x); }, {-5, 5}).Complex(+[](Z x) {
        return std::sinh(x);
      }),
      OpCase("Cosh", +[](double x) { return std::cosh(x); }, {-5, 5}).Complex(+[](Z x) {
        return std::cosh(x);
      }),
      OpCase("Tanh", +[](double x) { return std::tanh(x); }, {-5, 5})
          .Complex(+[](Z x) { return std::tanh(x); })
          .Gradient(2),
      OpCase("Asinh", +[](double x) { return std::asinh(x); }, {-9, 9}).Complex(+[](Z x) {
        return std::asinh(x);
      }),
      OpCase("Acosh", +[](double x) { return std::acosh(x); }, {1.1, 9}).Complex(+[](Z x) {
        return std::acosh(x);
      }),
      OpCase("Atanh", +[](double x) { return std::atanh(x); }, {-0.95, 0.95}).Complex(+[](Z x) {
        return std::atanh(x);
      }),
      OpCase("Sigmoid", +[](double x) { return 1 / (1 + std::exp(-x)); }, {-9, 9})
          .Complex(+[](Z x) { return 1.0 / (1.0 + std::exp(-x)); })
          .Gradient(2),
      OpCase("Erf", +[](double x) { return std::erf(x); }, {-3, 3}).Gradient(2),
      OpCase("Erfc", +[](double x) { return std::erfc(x); }, {-3, 3}),
      OpCase("Erfinv",
             +[](double y) { return Bisect([](double x) { return std::erf(x); }, y, -6, 6); },
             {-0.99, 0.99})
          .NoSpecials(),
      OpCase("Ndtri",
             +[](double p) {
               return Bisect([](double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }, p, -40, 40);
             },
             {0.01, 0.99})
          .NoSpecials(),
      OpCase("Lgamma", +[](double x) { return std::lgamma(x); }, {0.1, 20}).NoSpecials(),
      OpCase("Digamma", DigammaByDifferences, {0.5, 20}).Tolerance(DT_DOUBLE, 1e-9).NoSpecials(),
      OpCase("Floor", +[](double x) { return std::floor(x); }, {-9, 9}),
      OpCase("Ceil", +[](double x) { return std::ceil(x); }, {-9, 9}),
      OpCase("Round", +[](double x) { return std::nearbyint(x); }, {-9, 9}).Complex(+[](Z x) {
        return Z(std::nearbyint(x.real()), std::nearbyint(x.imag()));
      }),
      OpCase("Rint", +[](double x) { return std::nearbyint(x); }, {-9, 9}),
      OpCase("Invert", +[](double x) { return -x - 1; }, {0, 100})
          .Types(DataTypesOf(SignedIntegers())),
      OpCase("Invert", +[](double x) { return 255 - x; }, {0, 255})
          .Label("unsigned")
          .Types({DT_UINT8}),
      OpCase(
          "Conj", +[](double x) { return x; })
          .Complex(+[](Z x) { return std::conj(x); }),
  };
}

Z ConjTimes(Z dy, Z y, Z factor) { return dy * std::conj(y) * factor; }

std::vector<OpCase> BinaryCases() {
  constexpr auto kAdd = +[](double x, double y) { return x + y; };
  constexpr auto kDiv = +[](double x, double y) { return x / y; };
  constexpr auto kTruncDiv = +[](double x, double y) { return std::trunc(x / y); };
  const DataTypes floats = DataTypesOf(JoinLists<Floats, Complexes>());
  const DataTypes integers = DataTypesOf(Integers());
  const auto divide = +[](Z x, Z y) { return x / y; };
  const auto add = +[](Z x, Z y) { return x + y; };
  return {
      OpCase("Add", kAdd, {-9, 9}).Complex(add),
      OpCase("AddV2", kAdd, {0, 60}).Complex(add).Gradient(2),
      OpCase("Sub", +[](double x, double y) { return x - y; }, {5, 9}, {0, 5})
          .Complex(+[](Z x, Z y) { return x - y; }),
      OpCase("Mul", +[](double x, double y) { return x * y; }, {-9, 9})
          .Complex(+[](Z x, Z y) { return x * y; })
          .Gradient(2),
      OpCase("Div", kDiv, {-9, 9}, {-3, 3, true}).Types(floats).Complex(divide),
      OpCase("Div", kTruncDiv, {-9, 90}, {-3, 3, true})
          .Label("integers")
          .Types(integers)
          .Gradient(0),
      OpCase("RealDiv", kDiv, {-9, 9}, {-3, 3, true}).Types(floats).Complex(divide).Gradient(2),
      OpCase("FloorDiv", Floored, {-90, 90}, {-7, 7, true})
          .NoSpecials()
          .NotTypes({DT_HALF, DT_BFLOAT16, DT_FLOAT}),
      // A quotient near an integer may round either way in single precision; these do not.
      OpCase("FloorDiv")
          .Label("floats")
          .Types({DT_FLOAT})
          .Input(Tensor::Vector<float>({7, -7, 7.5f, -1}))
          .Input(Tensor::Vector<float>({2, 2, -2, 4}))
          .Reference([](const Node&, const Tensors&) -> Tensors {
            return {Doubles({4}, {3, -4, -4, -1})};
          }),
      OpCase("TruncateDiv", kTruncDiv, {-90, 90}, {-7, 7, true})
          .NoSpecials()
          .NotTypes({DT_HALF, DT_BFLOAT16, DT_FLOAT}),
      OpCase("FloorMod", FloorRemainder, {-90, 90}, {-7, 7, true})
          .NoSpecials()
          .NotTypes({DT_HALF, DT_BFLOAT16}),
      OpCase("Mod", +[](double x, double y) { return std::fmod(x, y); }, {-90, 90}, {-7, 7, true})
          .NoSpecials()
          .NotTypes({DT_HALF, DT_BFLOAT16}),
      OpCase("TruncateMod", +[](double x, double y) { return std::fmod(x, y); }, {-90, 90},
             {-7, 7, true})
          .NoSpecials()
          .NotTypes({DT_HALF, DT_BFLOAT16}),
      OpCase("DivNoNan", SafeDiv, {-9, 9}, {-3, 3, true}).Complex(+[](Z x, Z y) {
        return y == 0.0 ? Z(0) : x / y;
      }),
      OpCase("MulNoNan", +[](double x, double y) { return y == 0 ? 0 : x * y; }, {-9, 9})
          .Complex(+[](Z x, Z y) { return x * y; }),
      OpCase("Xdivy", +[](double x, double y) { return x == 0 ? 0 : x / y; }, {-9, 9, true}, {1, 3})
          .Complex(+[](Z x, Z y) { return x / y; }),
      OpCase("Xlogy", +[](double x, double y) { return x == 0 ? 0 : x * std::log(y); },
             {-9, 9, true}, {0.1, 9})
          .Complex(+[](Z x, Z y) { return x * std::log(y); }),
      OpCase("Xlog1py", +[](double x, double y) { return x == 0 ? 0 : x * std::log1p(y); },
             {-9, 9, true}, {0.1, 9})
          .Complex(+[](Z x, Z y) { return x * std::log(1.0 + y); }),
      OpCase("Pow", +[](double x, double y) { return std::pow(x, y); }, {0.5, 3}, {0, 3})
          .Complex(+[](Z x, Z y) { return std::pow(x, y); })
          .Gradient(2),
      OpCase("Maximum", NanMax, {0, 9}),
      OpCase("Minimum", NanMin, {0, 9}),
      OpCase("SquaredDifference", +[](double x, double y) { return (x - y) * (x - y); }, {-9, 9})
          .Complex(+[](Z x, Z y) { return Z(std::norm(x - y)); })
          .Gradient(2),
      OpCase("Atan2", +[](double y, double x) { return std::atan2(y, x); }, {-9, 9}),
      OpCase("Igamma")
          .Input({4}, {0.5, 6})
          .Input({4}, {0.1, 9})
          .Gradient(1)
          .Reference([](const Node&, const Tensors& in) -> Tensors {
            std::vector<double> y;
            for (int i = 0; i < 4; ++i)
              y.push_back(IncompleteGamma(in[0].data<double>()[i], in[1].data<double>()[i]));
            return {Doubles({4}, y)};
          })
          .Tolerance(DT_DOUBLE, 1e-7),
      OpCase("Igammac")
          .Input({4}, {0.5, 6})
          .Input({4}, {0.1, 9})
          .Gradient(1)
          .Reference([](const Node&, const Tensors& in) -> Tensors {
            std::vector<double> y;
            for (int i = 0; i < 4; ++i)
              y.push_back(1 - IncompleteGamma(in[0].data<double>()[i], in[1].data<double>()[i]));
            return {Doubles({4}, y)};
          })
          .Tolerance(DT_DOUBLE, 1e-7),
      OpCase("IgammaGradA")
          .Input({4}, {0.5, 6})
          .Input({4}, {0.1, 9})
          .Reference([](const Node&, const Tensors& in) -> Tensors {
            std::vector<double> y;
            for (int i = 0; i < 4; ++i) {
              const double a = in[0].data<double>()[i], x = in[1].data<double>()[i], h = 1e-3;
              y.push_back((IncompleteGamma(a + h, x) - IncompleteGamma(a - h, x)) / (2 * h));
            }
            return {Doubles({4}, y)};
          })
          .Tolerance(DT_DOUBLE, 1e-5),
      OpCase("Zeta")
          .Input({6}, {1.5, 6})
          .Input({6}, {0.5, 9})
          .GradientInputs({1})
          .Reference([](const Node&, const Tensors& in) -> Tensors {
            std::vector<double> y;
            for (int i = 0; i < 6; ++i)
              y.push_back(ZetaBySum(in[0].data<double>()[i], in[1].data<double>()[i]));
            return {Doubles({6}, y)};
          })
          .Tolerance(DT_DOUBLE, 1e-8),
      OpCase("Polygamma")
          .Input(Tensor::Vector<double>({0, 1, 2, 3}))
          .Input(DT_DOUBLE, {4}, {0.5, 9})
          .Types({DT_DOUBLE})
          .Gradient(0)
          .Reference([](const Node&, const Tensors& in) -> Tensors {
            std::vector<double> y = {DigammaByDifferences(in[1].data<double>()[0])};
            double factorial = 1;
            for (int n = 1; n < 4; ++n) {
              factorial *= n;
              y.push_back((n % 2 == 0 ? -1 : 1) * factorial *
                          ZetaBySum(n + 1, in[1].data<double>()[n]));
            }
            return {Doubles({4}, y)};
          })
          .Tolerance(DT_DOUBLE, 1e-8),
      OpCase("BitwiseAnd", +[](double x, double y) { return double(int64_t(x) & int64_t(y)); },
             {0, 100}),
      OpCase("BitwiseOr", +[](double x, double y) { return double(int64_t(x) | int64_t(y)); },
             {0, 100}),
      OpCase("BitwiseXor", +[](double x, double y) { return double(int64_t(x) ^ int64_t(y)); },
             {0, 100}),
      OpCase("LeftShift", +[](double x, double y) { return double(int64_t(x) << int64_t(y)); },
             {0, 7}, {0, 3}),
      OpCase("RightShift", +[](double x, double y) { return double(int64_t(x) >> int64_t(y)); },
             {-100, 100}, {0, 6}),
  };
}

// Ops of two equal shapes, which do not use the sweep's broadcasting shapes.
OpCase Elementwise2(const char* op, Range y, Z (*f)(Z, Z)) {
  return OpCase(op)
      .Input({3, 37}, y)
      .Input({3, 37}, {-3, 3})
      .Gradient(2)
      .Reference([f](const Node&, const Tensors& in) -> Tensors {
        const bool complex = in[0].dtype() == DT_COMPLEX128;
        Tensor out(in[0].dtype(), in[0].shape());
        for (int64_t i = 0; i < out.num_elements(); ++i) {
          if (complex)
            out.data<Z>()[i] = f(in[0].data<Z>()[i], in[1].data<Z>()[i]);
          else
            out.data<double>()[i] = f(in[0].data<double>()[i], in[1].data<double>()[i]).real();
        }
        return {out};
      });
}

std::vector<OpCase> GradientOpCases() {
  return {
      Elementwise2(
          "SigmoidGrad", {0.1, 0.9}, +[](Z y, Z dy) { return dy * y * (1.0 - y); }),
      Elementwise2(
          "TanhGrad", {-0.9, 0.9}, +[](Z y, Z dy) { return dy * (1.0 - y * y); }),
      Elementwise2(
          "SqrtGrad", {0.5, 3}, +[](Z y, Z dy) { return 0.5 * dy / std::conj(y); }),
      Elementwise2(
          "RsqrtGrad", {0.5, 3}, +[](Z y, Z dy) { return -0.5 * dy * std::pow(std::conj(y), 3); }),
      Elementwise2(
          "ReciprocalGrad", {0.5, 3}, +[](Z y, Z dy) { return ConjTimes(-dy, y, std::conj(y)); }),
      Elementwise2(
          "InvGrad", {0.5, 3}, +[](Z y, Z dy) { return ConjTimes(-dy, y, std::conj(y)); }),
  };
}

// ---- results of other types

OpReference Predicate(std::function<bool(double, double)> f) {
  return [f](const Node&, const Tensors& in) -> Tensors {
    const std::vector<double> x = ToDoubles(in[0]), y = in.size() > 1 ? ToDoubles(in[1]) : x;
    Tensor out(DT_BOOL, in[0].shape());
    for (size_t i = 0; i < x.size(); ++i) out.data<bool>()[i] = f(x[i], y[i % y.size()]);
    return {out};
  };
}
OpCase Comparison(const char* op, std::function<bool(double, double)> f) {
  return OpCase(op).Input({5, 40}, {0, 5}).Input({40}, {0, 5}).Reference(Predicate(std::move(f)));
}

OpReference PartOf(double (*f)(Z)) {
  return [f](const Node&, const Tensors& in) -> Tensors {
    std::vector<double> y;
    for (int64_t i = 0; i < in[0].num_elements(); ++i) y.push_back(f(in[0].data<Z>()[i]));
    return {Doubles(in[0].shape(), y)};
  };
}

std::vector<OpCase> MixedTypeCases() {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor special = Tensor::Vector<double>({1, -inf, nan, 0, inf, -5});
  const auto test = [&](const char* op, std::function<bool(double, double)> f) {
    return OpCase(op).Types({DT_DOUBLE}).Input(special).Reference(Predicate(std::move(f)));
  };
  return {
      Comparison("Less", [](double x, double y) { return x < y; }),
      Comparison("LessEqual", [](double x, double y) { return x <= y; }),
      Comparison("Greater", [](double x, double y) { return x > y; }),
      Comparison("GreaterEqual", [](double x, double y) { return x >= y; }),
      Comparison("Equal", [](double x, double y) { return x == y; })
          .Types(DataTypesOf(RealNumbers())),
      Comparison("NotEqual", [](double x, double y) { return x != y; })
          .Types(DataTypesOf(RealNumbers())),
      OpCase("Equal")
          .Label("strings")
          .Types({DT_STRING})
          .Input(Tensor::Vector<std::string>({"a", "b"}))
          .Input(Tensor::Of<std::string>({2, 1}, {"a", "c"}))
          .Reference([](const Node&, const Tensors&) -> Tensors {
            return {Tensor::Of<bool>({2, 2}, {true, false, false, false})};
          }),
      OpCase("Add")
          .Label("strings")
          .Types({DT_STRING})
          .Input(Tensor::Vector<std::string>({"a", "b"}))
          .Input(Tensor::Scalar("c"))
          .Reference([](const Node&, const Tensors&) -> Tensors {
            return {Tensor::Vector<std::string>({"ac", "bc"})};
          })
          .Gradient(0),
      OpCase("Equal")
          .Label("incompatible")
          .Attr("incompatible_shape_error", false)
          .Input({2})
          .Input({3})
          .Types({DT_FLOAT})
          .Reference(
              [](const Node&, const Tensors&) -> Tensors { return {Tensor::Scalar(false)}; }),
      OpCase("ApproximateEqual")
          .Attr("tolerance", 0.5f)
          .Input({200}, {0, 5})
          .Input({200}, {0, 5})
          .Types({DT_FLOAT, DT_DOUBLE, DT_INT32, DT_UINT8, DT_INT8})
          .Reference(Predicate([](double x, double y) { return std::abs(x - y) < 0.5; })),
      OpCase("LogicalAnd")
          .Input(DT_BOOL, {7})
          .Input(DT_BOOL, {7})
          .Reference(Predicate([](double x, double y) { return x && y; })),
      OpCase("LogicalOr")
          .Input(DT_BOOL, {7})
          .Input(DT_BOOL, {7})
          .Reference(Predicate([](double x, double y) { return x || y; })),
      OpCase("LogicalNot").Input(DT_BOOL, {7}).Reference(Predicate([](double x, double) {
        return !x;
      })),
      test("IsNan", [](double x, double) { return std::isnan(x); }),
      test("IsInf", [](double x, double) { return std::isinf(x); }),
      test("IsFinite", [](double x, double) { return std::isfinite(x); }),
      OpCase("PopulationCount")
          .Input({20}, {0, 127})
          .Reference([](const Node&, const Tensors& in) -> Tensors {
            Tensor out(DT_UINT8, in[0].shape());
            for (int i = 0; i < 20; ++i)
              out.data<uint8_t>()[i] =
                  __builtin_popcount(static_cast<int>(in[0].data<double>()[i]));
            return {out};
          }),
      OpCase("Real")
          .Attr("Tout", DT_DOUBLE)
          .Types({DT_COMPLEX128})
          .Input({9})
          .Reference(PartOf([](Z z) { return z.real(); })),
      OpCase("Imag")
          .Attr("Tout", DT_DOUBLE)
          .Types({DT_COMPLEX128})
          .Input({9})
          .Reference(PartOf([](Z z) { return z.imag(); })),
      OpCase("Angle")
          .Attr("Tout", DT_FLOAT)
          .Types({DT_COMPLEX64})
          .Input({9})
          .Reference(PartOf([](Z z) { return std::arg(z); })),
      OpCase("ComplexAbs")
          .Attr("Tout", DT_FLOAT)
          .Types({DT_COMPLEX64})
          .Input({9})
          .Reference(PartOf([](Z z) { return std::abs(z); })),
      OpCase("Complex")
          .Attr("Tout", DT_COMPLEX128)
          .Types({DT_DOUBLE})
          .Input({3, 1})
          .Input({4})
          .Gradient(0)
          .Reference([](const Node&, const Tensors& in) -> Tensors {
            Tensor out(DT_COMPLEX128, {3, 4});
            for (int i = 0; i < 12; ++i)
              out.data<Z>()[i] = Z(in[0].data<double>()[i / 4], in[1].data<double>()[i % 4]);
            return {out};
          }),
  };
}

// ---- casts

OpReference CastReference() {
  return [](const Node& node, const Tensors& in) -> Tensors {
    std::vector<double> y = ToDoubles(in[0]);
    const DataType to = node.attr<DataType>("DstT");
    if (IsComplex(to) && in[0].dtype() == DT_COMPLEX128) return {in[0]};
    for (double& v : y) v = to == DT_BOOL ? v != 0 : IsInteger(to) ? std::trunc(v) : v;
    if (!IsInteger(to) && to != DT_BOOL) return {Doubles(in[0].shape(), y)};
    Tensor out(to, in[0].shape());
    for (size_t i = 0; i < y.size(); ++i) {
      if (to == DT_BOOL) out.data<bool>()[i] = y[i] != 0;
      DispatchType(to, Integers{}, [&]<class T>() { out.data<T>()[i] = static_cast<T>(y[i]); });
    }
    return {out};
  };
}

std::vector<OpCase> CastCases() {
  std::vector<OpCase> cases;
  const DataTypes types = DataTypesOf(JoinLists<RealNumbers, List<bool>, Complexes>());
  for (const DataType to : types) {
    OpCase c = OpCase("Cast")
                   .Label(DataTypeName(to))
                   .TypeAttr("SrcT")
                   .Attr("DstT", to)
                   .Input({700}, {0, 100});
    c.Types(types);
    cases.push_back(c.Reference(CastReference()).Gradient(to == DT_DOUBLE ? 1 : 0));
  }
  cases.push_back(OpCase("Cast")
                      .Label("truncate")
                      .TypeAttr("SrcT")
                      .Types({DT_FLOAT})
                      .Attr("DstT", DT_BFLOAT16)
                      .Attr("Truncate", true)
                      .Input(Tensor::Vector<float>({1.0117187f, -1.0117187f}))
                      .Gradient(0)
                      .Reference([](const Node&, const Tensors&) -> Tensors {
                        return {Doubles({2}, {1.0078125, -1.0078125})};
                      })
                      .Tolerance(DT_FLOAT, 1e-9)
                      .Tolerance(DT_BFLOAT16, 1e-9));
  return cases;
}

}  // namespace

std::vector<OpCase> MathCases() {
  std::vector<OpCase> all;
  for (auto* part : {&UnaryCases, &BinaryCases, &GradientOpCases, &MixedTypeCases, &CastCases}) {
    for (OpCase& c : (*part)()) all.push_back(std::move(c));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Math, OpSweepTest, testing::ValuesIn(MathCases()), OpCaseName);

}  // namespace weir
