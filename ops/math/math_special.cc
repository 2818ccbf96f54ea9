#include "weir/ops/math/math_special.h"

#include <cmath>
#include <functional>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

// The builders of unary functions, which differ only in the op's name.
#define WEIR_SPECIAL(Name) \
  Output Name(Output x, absl::string_view name) { return AddOp(#Name, {x}, {}, name); }
WEIR_SPECIAL(BesselI0)
WEIR_SPECIAL(BesselI1)
WEIR_SPECIAL(BesselI0e)
WEIR_SPECIAL(BesselI1e)
WEIR_SPECIAL(BesselK0)
WEIR_SPECIAL(BesselK1)
WEIR_SPECIAL(BesselK0e)
WEIR_SPECIAL(BesselK1e)
WEIR_SPECIAL(BesselJ0)
WEIR_SPECIAL(BesselJ1)
WEIR_SPECIAL(BesselY0)
WEIR_SPECIAL(BesselY1)
WEIR_SPECIAL(Dawsn)
WEIR_SPECIAL(Expint)
WEIR_SPECIAL(FresnelCos)
WEIR_SPECIAL(FresnelSin)
WEIR_SPECIAL(Spence)
#undef WEIR_SPECIAL

Output Betainc(Output a, Output b, Output x, absl::string_view name) {
  return AddOp("Betainc", {a, b, x}, {}, name);
}
Output NextAfter(const Output& x1, const Output& x2, absl::string_view name) {
  return AddOp("NextAfter", {x1, x2}, {}, name);
}

namespace {

// Returns dy times the derivative `of` x and y. The derivative is computed only once dy is
// available.
using Derivative = Output (*)(const Output& x, const Output& y);
template <Derivative kDerivative>
Grads SpecialGradient(GradContext& g) {
  const Output dy = g.dy();
  const ControlDependencies after(g.graph(), {dy});
  return {dy * kDerivative(g.x(), g.y())};
}

// At x = 0, where the formula divides by 0, the derivative is `at_zero`.
Output UnlessZero(const Output& x, float at_zero, const Output& elsewhere) {
  return SelectV2(Equal(x, 0), Cast(Const(x.graph(), at_zero), x.dtype()), elsewhere);
}

Output DI0(const Output& x, const Output&) { return BesselI1(x); }
Output DI0e(const Output& x, const Output& y) { return BesselI1e(x) - Sign(x) * y; }
Output DI1(const Output& x, const Output& y) {
  return UnlessZero(x, 1, BesselI0(x) - RealDiv(y, x));
}
Output DI1e(const Output& x, const Output& y) {
  return UnlessZero(x, 0.5f, BesselI0e(x) - y * (Sign(x) + Reciprocal(x)));
}
Output DK0(const Output& x, const Output&) { return Negative(BesselK1(x)); }
Output DK0e(const Output& x, const Output& y) { return y - BesselK1e(x); }
Output DK1(const Output& x, const Output& y) { return Negative(BesselK0(x)) - RealDiv(y, x); }
Output DK1e(const Output& x, const Output& y) { return y * (1 - Reciprocal(x)) - BesselK0e(x); }
Output DJ0(const Output& x, const Output&) { return Negative(BesselJ1(x)); }
Output DJ1(const Output& x, const Output& y) {
  return UnlessZero(x, 0.5f, BesselJ0(x) - RealDiv(y, x));
}
Output DY0(const Output& x, const Output&) { return Negative(BesselY1(x)); }
Output DY1(const Output& x, const Output& y) { return BesselY0(x) - RealDiv(y, x); }
Output DDawsn(const Output& x, const Output& y) { return 1 - 2 * x * y; }
Output DFresnelCos(const Output& x, const Output&) { return Cos(M_PI / 2 * Square(x)); }
Output DFresnelSin(const Output& x, const Output&) { return Sin(M_PI / 2 * Square(x)); }
Output DSpence(const Output& x, const Output&) {
  const Output elsewhere = Log(x) / (1 - x);
  return Select(Equal(x, 1), Negative(OnesOf(x)), elsewhere);
}

Grads ExpintGradient(GradContext& g) {
  const Output dy = g.dy();
  const ControlDependencies after(g.graph(), {dy});
  return {dy * Exp(g.x()) / g.x()};
}

// The gradient with respect to x only. Either x or both a and b may be scalars.
Grads BetaincGradient(GradContext& g) {
  const Output a = g.x(0), b = g.x(1), x = g.x(2);
  const Output shape = ShapeVector(x);
  const BroadcastReductions axes = BroadcastGradientArgs(ShapeVector(a), shape);
  const Output log_beta = Lgamma(a) + Lgamma(b) - Lgamma(a + b);
  const Output derivative = Exp(Xlog1py(b - 1, Negative(x)) + Xlogy(a - 1, x) - log_beta);
  return {Grad(), Grad(), SumTo(derivative * g.dy(), axes.r1, shape)};
}

Grads NextAfterGradient(GradContext& g) {
  const Output x1 = g.x(0), x2 = g.x(1), dy = g.dy();
  const BroadcastAxes axes = AxesOfBroadcast(x1, x2);
  const ControlDependencies after(g.graph(), {dy});
  const Output ones = Ones(g.graph(), axes.sx, x1.dtype());
  const Output zeros = Zeros(g.graph(), axes.sy, x2.dtype());
  const Output first = SumTo(ones * dy, axes.rx, axes.sx);
  return {first, SumTo(zeros * dy, axes.ry, axes.sy)};
}

// All arguments that are not scalars have the same shape.
absl::Status BetaincShape(ShapeContext& c) {
  Shape result({});
  bool any_unknown = false;
  for (int i = 0; i < 3; ++i) {
    const Shape& s = c.input(i);
    if (!s.has_rank()) {
      any_unknown = true;
    } else if (s.rank() > 0) {
      if (result.IsScalar()) result = s;
      WEIR_ASSIGN_OR_RETURN(result, result.MergeWith(s));
    }
  }
  if (!any_unknown || !result.IsScalar()) c.set_output(0, result);
  return absl::OkStatus();
}

struct SpecialFunction {
  const char* op;
  GradientFn gradient;
  const char* doc;
};

void AddBesselOps(const std::function<void(SpecialFunction)>& add) {
  add({"BesselI0", SpecialGradient<DI0>,
       "Computes the modified Bessel function of the first kind I0(x)."});
  add({"BesselI1", SpecialGradient<DI1>,
       "Computes the modified Bessel function of the first kind I1(x)."});
  add({"BesselI0e", SpecialGradient<DI0e>, "exp(-|x|) I0(x)."});
  add({"BesselI1e", SpecialGradient<DI1e>, "exp(-|x|) I1(x)."});
  add({"BesselK0", SpecialGradient<DK0>,
       "Computes the modified Bessel function of the second kind K0(x)."});
  add({"BesselK1", SpecialGradient<DK1>,
       "Computes the modified Bessel function of the second kind K1(x)."});
  add({"BesselK0e", SpecialGradient<DK0e>, "exp(x) K0(x)."});
  add({"BesselK1e", SpecialGradient<DK1e>, "exp(x) K1(x)."});
  add({"BesselJ0", SpecialGradient<DJ0>, "Computes the Bessel function of the first kind J0(x)."});
  add({"BesselJ1", SpecialGradient<DJ1>, "Computes the Bessel function of the first kind J1(x)."});
  add({"BesselY0", SpecialGradient<DY0>, "Computes the Bessel function of the second kind Y0(x)."});
  add({"BesselY1", SpecialGradient<DY1>, "Computes the Bessel function of the second kind Y1(x)."});
}

}  // namespace

void AddSpecialMathOps(OpRegistry* ops) {
  const auto add = [ops](SpecialFunction f) {
    ops->Add(OpSpec(f.op)
                 .In("x: T")
                 .Out("y: T")
                 .Attr(kFloatTypes)
                 .InferShape(SameShape)
                 .Gradient(std::move(f.gradient))
                 .Doc(f.doc));
  };
  AddBesselOps(add);
  add({"Dawsn", SpecialGradient<DDawsn>,
       "Computes Dawson's integral: exp(-x^2) times the integral of exp(t^2) from 0 to x."});
  add({"Expint", ExpintGradient, "Computes the exponential integral Ei(x)."});
  add({"FresnelCos", SpecialGradient<DFresnelCos>,
       "Computes the Fresnel integral of cos(pi t^2 / 2) from 0 to x."});
  add({"FresnelSin", SpecialGradient<DFresnelSin>,
       "Computes the Fresnel integral of sin(pi t^2 / 2) from 0 to x."});
  add({"Spence", SpecialGradient<DSpence>,
       "Computes Spence's integral: the dilogarithm of 1 - x."});
  ops->Add(OpSpec("Betainc")
               .In("a: T, b: T, x: T")
               .Out("z: T")
               .Attr("T: {float, double}")
               .InferShape(BetaincShape)
               .Gradient(BetaincGradient)
               .Doc("Computes the regularized incomplete beta function elementwise."));
  ops->Add(OpSpec("NextAfter")
               .In("x1: T, x2: T")
               .Out("output: T")
               .Attr("T: {double, float} = DT_FLOAT")
               .InferShape(BroadcastShape)
               .Gradient(NextAfterGradient)
               .Doc("Returns the next representable value after x1 in the direction of x2, "
                    "elementwise."));
}

}  // namespace weir
