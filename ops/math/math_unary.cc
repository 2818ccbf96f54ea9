#include <cmath>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"

// Elementwise functions of one tensor.
namespace weir {

namespace {

// dy * f'(x), with x conjugated if it is complex.
Grads AbsGradient(GradContext& g) { return {g.dy() * Sign(g.x())}; }
Grads NegGradient(GradContext& g) { return {Negative(g.dy())}; }
Grads SignGradient(GradContext& g) { return {ZerosOf(g.x())}; }
Grads ReciprocalGradient(GradContext& g) { return {ReciprocalGrad(g.y(), g.dy())}; }
Grads SquareGradient(GradContext& g) {
  // The control dependency on dy delays the computation of 2 x until it is needed.
  const ControlDependencies after(g.graph(), {g.dy()});
  const Output x = Conj(g.x());
  return {Multiply(g.dy(), Multiply(x, ScalarConst(x, 2)))};
}
Grads SqrtGradient(GradContext& g) { return {SqrtGrad(g.y(), g.dy())}; }
Grads RsqrtGradient(GradContext& g) { return {RsqrtGrad(g.y(), g.dy())}; }
Grads ExpGradient(GradContext& g) { return {g.dy() * Conj(g.y())}; }
Grads Expm1Gradient(GradContext& g) { return {g.dy() * Exp(Conj(g.x()))}; }
Grads LogGradient(GradContext& g) { return {g.dy() * Reciprocal(Conj(g.x()))}; }
Grads Log1pGradient(GradContext& g) { return {g.dy() * Reciprocal(1 + Conj(g.x()))}; }
Grads SinGradient(GradContext& g) { return {g.dy() * Cos(Conj(g.x()))}; }
Grads CosGradient(GradContext& g) {
  const Output minus_dy = Negative(g.dy());
  return {minus_dy * Sin(Conj(g.x()))};
}
Grads TanGradient(GradContext& g) { return {Square(Reciprocal(Cos(Conj(g.x())))) * g.dy()}; }
Grads SinhGradient(GradContext& g) { return {g.dy() * Cosh(Conj(g.x()))}; }
Grads CoshGradient(GradContext& g) { return {g.dy() * Sinh(Conj(g.x()))}; }
Grads TanhGradient(GradContext& g) { return {TanhGrad(Conj(g.y()), g.dy())}; }
Grads AsinhGradient(GradContext& g) { return {g.dy() / Cosh(Conj(g.y()))}; }
Grads AcoshGradient(GradContext& g) { return {g.dy() / Sinh(Conj(g.y()))}; }
Grads SigmoidGradient(GradContext& g) { return {SigmoidGrad(Conj(g.y()), g.dy())}; }

// 1 / sqrt(1 - x^2)
Output InverseRoot(Output x) {
  const Output square = Square(x);
  return Reciprocal(Sqrt(Subtract(ScalarConst(x, 1), square)));
}
Grads AsinGradient(GradContext& g) { return {g.dy() * InverseRoot(Conj(g.x()))}; }
Grads AcosGradient(GradContext& g) {
  const Output inverse = InverseRoot(Conj(g.x()));
  return {Negative(g.dy()) * inverse};
}
Grads AtanGradient(GradContext& g) {
  const Output square = Square(Conj(g.x()));
  return {g.dy() * Reciprocal(Add(ScalarConst(g.x(), 1), square))};
}
Grads AtanhGradient(GradContext& g) {
  const Output square = Square(Conj(g.x()));
  return {g.dy() * Reciprocal(Subtract(ScalarConst(g.x(), 1), square))};
}

constexpr double kTwoOverRootPi = 1.1283791670955126;
Grads ErfLike(GradContext& g, double factor) {
  const Output scaled = g.dy() * ScalarConst(g.dy(), factor);
  return {scaled * Exp(Negative(Square(g.x())))};
}
Grads ErfGradient(GradContext& g) { return ErfLike(g, kTwoOverRootPi); }
Grads ErfcGradient(GradContext& g) { return ErfLike(g, -kTwoOverRootPi); }
Grads ErfinvGradient(GradContext& g) {
  const Output scaled = g.dy() * ScalarConst(g.dy(), 1 / kTwoOverRootPi);
  return {scaled * Exp(Square(g.y()))};
}
Grads NdtriGradient(GradContext& g) {
  const Output scaled = g.dy() * ScalarConst(g.dy(), std::sqrt(2 * M_PI));
  return {scaled * Exp(Square(g.y()) / 2)};
}
Grads LgammaGradient(GradContext& g) { return {g.dy() * Digamma(g.x())}; }
Grads DigammaGradient(GradContext& g) { return {g.dy() * Polygamma(ScalarConst(g.x(), 1), g.x())}; }

// ---- second derivatives: gradients of the *Grad(y, dy) ops

Grads SigmoidGradGradient(GradContext& g) {
  const Output y = Conj(g.x(0)), dy = Conj(g.x(1));
  const Output product = g.dy() * dy;
  return {product - 2 * product * y, SigmoidGrad(y, g.dy())};
}
Grads TanhGradGradient(GradContext& g) {
  const Output y = Conj(g.x(0)), dy = Conj(g.x(1));
  return {g.dy() * -2 * dy * y, TanhGrad(y, g.dy())};
}
Grads SqrtGradGradient(GradContext& g) {
  const Output ratio = g.dy() / g.x(0);
  return {Negative(Conj(ratio)) * g.y(), 0.5 * ratio};
}
Grads RsqrtGradGradient(GradContext& g) {
  const Output y = Conj(g.x(0)), ddy = Conj(g.dy());
  const Output first = -1.5 * ddy * g.x(1) * Square(y);
  return {first, RsqrtGrad(y, g.dy())};
}
Grads ReciprocalGradGradient(GradContext& g) {
  const Output y = Conj(g.x(0)), ddy = Conj(g.dy());
  return {ddy * -2 * g.x(1) * y, ReciprocalGrad(y, g.dy())};
}

constexpr char kSignedTypes[] = "T: {bfloat16, half, float, double, int8, int16, int32, int64}";

constexpr char kSignedComplexTypes[] =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";

OpSpec UnarySpec(absl::string_view op, absl::string_view types) {
  return OpSpec(op).In("x: T").Out("y: T").Attr(types).Elementwise().InferShape(SameShape);
}

void AddFloatFunctions(OpRegistry* ops) {
  const auto add = [ops](absl::string_view op, absl::string_view types, GradientFn gradient,
                         absl::string_view doc) {
    ops->Add(UnarySpec(op, types).Gradient(std::move(gradient)).Doc(doc));
  };
  const char* const all = kFloatComplexTypes;
  add("Sqrt", all, SqrtGradient, "Computes the square root of x elementwise.");
  add("Rsqrt", all, RsqrtGradient, "Computes 1 / sqrt(x) elementwise.");
  add("Exp", all, ExpGradient, "Computes exp(x) elementwise.");
  add("Expm1", all, Expm1Gradient, "Computes exp(x) - 1 elementwise. Accurate near 0.");
  add("Log", all, LogGradient, "Computes the natural logarithm of x elementwise.");
  add("Log1p", all, Log1pGradient, "Computes log(1 + x) elementwise. Accurate near 0.");
  add("Sin", all, SinGradient, "Computes the sine of x, in radians, elementwise.");
  add("Cos", all, CosGradient, "Computes the cosine of x, in radians, elementwise.");
  add("Tan", all, TanGradient, "Computes the tangent of x, in radians, elementwise.");
  add("Asin", all, AsinGradient, "Computes the arcsine of x, in [-pi/2, pi/2], elementwise.");
  add("Acos", all, AcosGradient, "Computes the arccosine of x, in [0, pi], elementwise.");
  add("Atan", all, AtanGradient, "Computes the arctangent of x, in (-pi/2, pi/2), elementwise.");
  add("Sinh", all, SinhGradient,
      "Computes the hyperbolic sine, (exp(x) - exp(-x)) / 2, elementwise.");
  add("Cosh", all, CoshGradient,
      "Computes the hyperbolic cosine, (exp(x) + exp(-x)) / 2, elementwise.");
  add("Tanh", all, TanhGradient,
      "Computes the hyperbolic tangent, sinh(x) / cosh(x), elementwise.");
  add("Asinh", all, AsinhGradient, "Computes the inverse hyperbolic sine elementwise.");
  add("Acosh", all, AcoshGradient,
      "Computes the inverse hyperbolic cosine elementwise. NaN below 1.");
  add("Atanh", all, AtanhGradient,
      "Computes the inverse hyperbolic tangent elementwise. NaN outside [-1, 1].");
  add("Sigmoid", all, SigmoidGradient, "Computes 1 / (1 + exp(-x)) elementwise.");
  add("Erf", kFloatTypes, ErfGradient, "Computes the error function elementwise.");
  add("Erfc", kFloatTypes, ErfcGradient, "Computes 1 - erf(x) elementwise. Accurate for large x.");
  add("Erfinv", kFloatTypes, ErfinvGradient, "Computes the inverse of erf elementwise.");
  add("Ndtri", kFloatTypes, NdtriGradient,
      "Computes the quantile of the standard normal distribution, the inverse of its cumulative "
      "distribution function, elementwise.");
  add("Lgamma", kFloatTypes, LgammaGradient, "log |gamma(x)|.");
  add("Digamma", kFloatTypes, DigammaGradient, "Computes the derivative of lgamma elementwise.");
}

void AddNumberFunctions(OpRegistry* ops) {
  ops->Add(UnarySpec("Abs", kSignedTypes).Gradient(AbsGradient).Doc("Computes |x| elementwise."));
  ops->Add(UnarySpec("Neg", kSignedComplexTypes)
               .Involution()
               .Gradient(NegGradient)
               .Doc("Computes -x elementwise."));
  ops->Add(UnarySpec("Sign", kSignedComplexTypes)
               .Gradient(SignGradient)
               .Doc("Returns the sign of x: -1, 0 or 1 if x is negative, 0 or positive; x / |x| "
                    "for complex x."));
  ops->Add(UnarySpec("Reciprocal", kSignedComplexTypes)
               .Gradient(ReciprocalGradient)
               .Doc("Computes 1 / x elementwise."));
  ops->Add(UnarySpec("Inv", kSignedComplexTypes)
               .Gradient(ReciprocalGradient)
               .Doc("Computes 1 / x elementwise: the old name of Reciprocal."));
  ops->Add(
      UnarySpec(
          "Square",
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, "
          "uint64, complex64, complex128}")
          .Gradient(SquareGradient)
          .Doc("Computes x * x elementwise."));
  ops->Add(UnarySpec("Floor", kFloatTypes)
               .NotDifferentiable()
               .Doc("Returns the largest integer that is not greater than x, elementwise."));
  ops->Add(UnarySpec("Ceil", kFloatTypes)
               .NotDifferentiable()
               .Doc("Returns the smallest integer that is not less than x, elementwise."));
  ops->Add(UnarySpec("Round", kSignedComplexTypes)
               .NotDifferentiable()
               .Doc("Rounds x to the nearest integer, elementwise. Halves are rounded to the even "
                    "integer."));
  ops->Add(UnarySpec("Rint", kFloatTypes)
               .NotDifferentiable()
               .Doc("Rounds x to the nearest integer, elementwise. Halves are rounded to the even "
                    "integer."));
  ops->Add(UnarySpec("Invert", kIntegerTypes)
               .Involution()
               .NotDifferentiable()
               .Doc("Inverts all bits of x, elementwise."));
  ops->Add(OpSpec("PopulationCount")
               .In("x: T")
               .Out("y: uint8")
               .Attr(kIntegerTypes)
               .Elementwise()
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("Returns the number of set bits of x, elementwise."));
  ops->Add(OpSpec("LogicalNot")
               .In("x: bool")
               .Out("y: bool")
               .Elementwise()
               .Involution()
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("Computes the logical negation of x, elementwise."));
  for (const auto& [op, doc] :
       {std::pair<const char*, const char*>{"IsNan", "Returns whether x is NaN, elementwise."},
        {"IsInf", "Returns whether x is infinite, elementwise."},
        {"IsFinite", "Returns whether x is neither infinite nor NaN, elementwise."}}) {
    ops->Add(OpSpec(op)
                 .In("x: T")
                 .Out("y: bool")
                 .Attr(kFloatTypes)
                 .Elementwise()
                 .InferShape(SameShape)
                 .NotDifferentiable()
                 .Doc(doc));
  }
}

void AddGradientFunctions(OpRegistry* ops) {
  const auto add = [ops](absl::string_view op, GradientFn gradient, absl::string_view doc) {
    ops->Add(OpSpec(op)
                 .In("y: T, dy: T")
                 .Out("z: T")
                 .Attr(kFloatComplexTypes)
                 .Elementwise()
                 .InferShape(MergedShape)
                 .Gradient(std::move(gradient))
                 .Doc(doc));
  };
  add("SigmoidGrad", SigmoidGradGradient,
      "Computes the gradient of y = sigmoid(x): dy * y * (1 - y).");
  add("TanhGrad", TanhGradGradient, "Computes the gradient of y = tanh(x): dy * (1 - y * y).");
  add("SqrtGrad", SqrtGradGradient, "Computes the gradient of y = sqrt(x): dy * 0.5 / y.");
  add("RsqrtGrad", RsqrtGradGradient,
      "Computes the gradient of y = 1 / sqrt(x): dy * -0.5 * y * y * y.");
  add("ReciprocalGrad", ReciprocalGradGradient, "Computes the gradient of y = 1 / x: -dy * y * y.");
  add("InvGrad", ReciprocalGradGradient, "Computes -dy * y * y: the old name of ReciprocalGrad.");
}

}  // namespace

void AddUnaryMathOps(OpRegistry* ops) {
  AddFloatFunctions(ops);
  AddNumberFunctions(ops);
  AddGradientFunctions(ops);
}

Output Abs(Output x, absl::string_view name) {
  if (!IsComplex(x.dtype())) return Unary("Abs", x, name);
  return AddOp("ComplexAbs", {x}, {{"Tout", x.dtype() == DT_COMPLEX64 ? DT_FLOAT : DT_DOUBLE}},
               name.empty() ? "Abs" : name);
}
Output Negative(Output x, absl::string_view name) { return Unary("Neg", x, name); }
Output Sign(Output x, absl::string_view name) { return Unary("Sign", x, name); }
Output Reciprocal(Output x, absl::string_view name) { return Unary("Reciprocal", x, name); }
Output Square(Output x, absl::string_view name) { return Unary("Square", x, name); }
Output Sqrt(Output x, absl::string_view name) { return Unary("Sqrt", x, name); }
Output Rsqrt(Output x, absl::string_view name) { return Unary("Rsqrt", x, name); }
Output Exp(Output x, absl::string_view name) { return Unary("Exp", x, name); }
Output Expm1(Output x, absl::string_view name) { return Unary("Expm1", x, name); }
Output Log(Output x, absl::string_view name) { return Unary("Log", x, name); }
Output Log1p(Output x, absl::string_view name) { return Unary("Log1p", x, name); }
Output Sin(Output x, absl::string_view name) { return Unary("Sin", x, name); }
Output Cos(Output x, absl::string_view name) { return Unary("Cos", x, name); }
Output Tan(Output x, absl::string_view name) { return Unary("Tan", x, name); }
Output Asin(Output x, absl::string_view name) { return Unary("Asin", x, name); }
Output Acos(Output x, absl::string_view name) { return Unary("Acos", x, name); }
Output Atan(Output x, absl::string_view name) { return Unary("Atan", x, name); }
Output Sinh(Output x, absl::string_view name) { return Unary("Sinh", x, name); }
Output Cosh(Output x, absl::string_view name) { return Unary("Cosh", x, name); }
Output Tanh(Output x, absl::string_view name) { return Unary("Tanh", x, name); }
Output Asinh(Output x, absl::string_view name) { return Unary("Asinh", x, name); }
Output Acosh(Output x, absl::string_view name) { return Unary("Acosh", x, name); }
Output Atanh(Output x, absl::string_view name) { return Unary("Atanh", x, name); }
Output Sigmoid(Output x, absl::string_view name) { return Unary("Sigmoid", x, name); }
Output LogSigmoid(Output x, absl::string_view name) {
  if (!x.valid()) return {};
  NameScope scope(x.graph(), name);
  return Unary("Neg", Unary("Softplus", Negative(x), {}), scope.name());
}
Output Erf(Output x, absl::string_view name) { return Unary("Erf", x, name); }
Output Erfc(Output x, absl::string_view name) { return Unary("Erfc", x, name); }
Output Erfinv(Output x, absl::string_view name) { return Unary("Erfinv", x, name); }
Output Ndtri(Output x, absl::string_view name) { return Unary("Ndtri", x, name); }
Output Lgamma(Output x, absl::string_view name) { return Unary("Lgamma", x, name); }
Output Digamma(Output x, absl::string_view name) { return Unary("Digamma", x, name); }
Output Floor(Output x, absl::string_view name) { return Unary("Floor", x, name); }
Output Ceil(Output x, absl::string_view name) { return Unary("Ceil", x, name); }
Output Round(Output x, absl::string_view name) { return Unary("Round", x, name); }
Output Rint(Output x, absl::string_view name) { return Unary("Rint", x, name); }
Output IsNan(Output x, absl::string_view name) { return Unary("IsNan", x, name); }
Output IsInf(Output x, absl::string_view name) { return Unary("IsInf", x, name); }
Output IsFinite(Output x, absl::string_view name) { return Unary("IsFinite", x, name); }

Output LogicalNot(Output x, absl::string_view name) { return Unary("LogicalNot", x, name); }

Output Invert(Output x, absl::string_view name) { return Unary("Invert", x, name); }

Output SigmoidGrad(Output y, Output dy, absl::string_view name) {
  return AddOp("SigmoidGrad", {y, dy}, {}, name);
}
Output TanhGrad(Output y, Output dy, absl::string_view name) {
  return AddOp("TanhGrad", {y, dy}, {}, name);
}
Output SqrtGrad(Output y, Output dy, absl::string_view name) {
  return AddOp("SqrtGrad", {y, dy}, {}, name);
}
Output RsqrtGrad(Output y, Output dy, absl::string_view name) {
  return AddOp("RsqrtGrad", {y, dy}, {}, name);
}
Output ReciprocalGrad(Output y, Output dy, absl::string_view name) {
  return AddOp("ReciprocalGrad", {y, dy}, {}, name);
}

}  // namespace weir
