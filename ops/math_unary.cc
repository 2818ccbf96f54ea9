#include <cmath>

#include "weir/core/scope.h"
#include "weir/ops/math_internal.h"
#include "weir/ops/registry.h"

namespace weir {

Output ScalarConst(const Output& like, const Literal& value) {
  return ConstLike(like, value, "Const");
}
Output ZerosOf(const Output& x) { return ZerosLike(x); }
Output OnesOf(const Output& x) { return OnesLike(x); }
Output ShapeVector(const Output& x) { return ShapeTensor(x, DT_INT32, "Shape"); }

namespace {

// dy * f'(x), with x conjugated where it is complex.
Grads AbsGradient(GradContext& g) { return {g.dy() * Sign(g.x())}; }
Grads NegGradient(GradContext& g) { return {Negative(g.dy())}; }
Grads SignGradient(GradContext& g) { return {ZerosOf(g.x())}; }
Grads ReciprocalGradient(GradContext& g) { return {ReciprocalGrad(g.y(), g.dy())}; }
Grads SquareGradient(GradContext& g) {
  // 2 x is not computed before it is needed.
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

// ---- complex numbers

Grads ComplexAbsGradient(GradContext& g) {
  const Output numerator = Complex(g.dy(), ZerosOf(g.dy())) * g.x();
  return {DivNoNan(numerator, Complex(g.y(), ZerosOf(g.y())))};
}
Grads ConjGradient(GradContext& g) { return {Conj(g.dy())}; }
Grads RealGradient(GradContext& g) { return {Complex(g.dy(), ScalarConst(g.dy(), 0))}; }
Grads ImagGradient(GradContext& g) { return {Complex(ScalarConst(g.dy(), 0), g.dy())}; }
Grads AngleGradient(GradContext& g) {
  const Output re = Real(g.x()), im = Imag(g.x());
  const Output inverse = Reciprocal(Complex(im, re));
  const Output dy = Complex(g.dy(), ScalarConst(g.dy(), 0));
  return {Negative(dy) * inverse};
}

Grads CastGradient(GradContext& g) {
  const DataType from = g.x().dtype(), to = g.y().dtype();
  const auto differentiable = [](DataType t) { return IsFloating(t) || IsComplex(t); };
  if (!differentiable(from) || !differentiable(to)) return {};
  return {AddOp("Cast", {g.dy()}, {{"DstT", from}})};
}

constexpr char kSignedTypes[] = "T: {bfloat16, half, float, double, int8, int16, int32, int64}";
constexpr char kSignedComplexTypes[] =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";
constexpr char kIntegerTypes[] = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

OpSpec UnarySpec(absl::string_view op, absl::string_view types) {
  return OpSpec(op).In("x: T").Out("y: T").Attr(types).InferShape(SameShape);
}

void AddFloatFunctions(OpRegistry* ops) {
  const auto add = [ops](absl::string_view op, absl::string_view types, GradientFn gradient,
                         absl::string_view doc) {
    ops->Add(UnarySpec(op, types).Gradient(std::move(gradient)).Doc(doc));
  };
  const char* const all = kFloatComplexTypes;
  add("Sqrt", all, SqrtGradient, "The square root of x.");
  add("Rsqrt", all, RsqrtGradient, "1 / sqrt(x).");
  add("Exp", all, ExpGradient, "e to the power x.");
  add("Expm1", all, Expm1Gradient, "exp(x) - 1, accurate near 0.");
  add("Log", all, LogGradient, "The natural logarithm of x.");
  add("Log1p", all, Log1pGradient, "log(1 + x), accurate near 0.");
  add("Sin", all, SinGradient, "The sine of x in radians.");
  add("Cos", all, CosGradient, "The cosine of x in radians.");
  add("Tan", all, TanGradient, "The tangent of x in radians.");
  add("Asin", all, AsinGradient, "The angle in [-pi/2, pi/2] whose sine is x.");
  add("Acos", all, AcosGradient, "The angle in [0, pi] whose cosine is x.");
  add("Atan", all, AtanGradient, "The angle in (-pi/2, pi/2) whose tangent is x.");
  add("Sinh", all, SinhGradient, "(exp(x) - exp(-x)) / 2.");
  add("Cosh", all, CoshGradient, "(exp(x) + exp(-x)) / 2.");
  add("Tanh", all, TanhGradient, "sinh(x) / cosh(x).");
  add("Asinh", all, AsinhGradient, "The inverse of sinh.");
  add("Acosh", all, AcoshGradient, "The inverse of cosh; NaN below 1.");
  add("Atanh", all, AtanhGradient, "The inverse of tanh; NaN outside [-1, 1].");
  add("Sigmoid", all, SigmoidGradient, "1 / (1 + exp(-x)).");
  add("Erf", kFloatTypes, ErfGradient, "The error function.");
  add("Erfc", kFloatTypes, ErfcGradient, "1 - erf(x), accurate for large x.");
  add("Erfinv", kFloatTypes, ErfinvGradient, "The inverse of erf.");
  add("Ndtri", kFloatTypes, NdtriGradient,
      "The x at which the standard normal distribution function has this value.");
  add("Lgamma", kFloatTypes, LgammaGradient, "log |gamma(x)|.");
  add("Digamma", kFloatTypes, DigammaGradient, "The derivative of lgamma.");
}

void AddNumberFunctions(OpRegistry* ops) {
  ops->Add(UnarySpec("Abs", kSignedTypes).Gradient(AbsGradient).Doc("|x|."));
  ops->Add(UnarySpec("Neg", kSignedComplexTypes).Gradient(NegGradient).Doc("-x."));
  ops->Add(UnarySpec("Sign", kSignedComplexTypes)
               .Gradient(SignGradient)
               .Doc("-1, 0 or 1 as x is negative, 0 or positive; x / |x| for complex x."));
  ops->Add(UnarySpec("Reciprocal", kSignedComplexTypes).Gradient(ReciprocalGradient).Doc("1 / x."));
  ops->Add(UnarySpec("Inv", kSignedComplexTypes)
               .Gradient(ReciprocalGradient)
               .Doc("1 / x: the old name of Reciprocal."));
  ops->Add(
      UnarySpec(
          "Square",
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, "
          "uint64, complex64, complex128}")
          .Gradient(SquareGradient)
          .Doc("x * x."));
  ops->Add(UnarySpec("Floor", kFloatTypes)
               .NotDifferentiable()
               .Doc("The largest whole number not above x."));
  ops->Add(UnarySpec("Ceil", kFloatTypes)
               .NotDifferentiable()
               .Doc("The smallest whole number not below x."));
  ops->Add(UnarySpec("Round", kSignedComplexTypes)
               .NotDifferentiable()
               .Doc("The whole number nearest to x; halves go to the even one."));
  ops->Add(UnarySpec("Rint", kFloatTypes)
               .NotDifferentiable()
               .Doc("The whole number nearest to x; halves go to the even one."));
  ops->Add(UnarySpec("Invert", kIntegerTypes).NotDifferentiable().Doc("Every bit of x flipped."));
  ops->Add(OpSpec("PopulationCount")
               .In("x: T")
               .Out("y: uint8")
               .Attr(kIntegerTypes)
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("How many bits of x are 1."));
  ops->Add(OpSpec("LogicalNot")
               .In("x: bool")
               .Out("y: bool")
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("not x."));
  for (const auto& [op, doc] :
       {std::pair<const char*, const char*>{"IsNan", "Whether x is not a number."},
        {"IsInf", "Whether x is an infinity."},
        {"IsFinite", "Whether x is neither infinite nor NaN."}}) {
    ops->Add(OpSpec(op)
                 .In("x: T")
                 .Out("y: bool")
                 .Attr(kFloatTypes)
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
                 .InferShape(MergedShape)
                 .Gradient(std::move(gradient))
                 .Doc(doc));
  };
  add("SigmoidGrad", SigmoidGradGradient, "dy * y * (1 - y): the gradient of y = sigmoid(x).");
  add("TanhGrad", TanhGradGradient, "dy * (1 - y * y): the gradient of y = tanh(x).");
  add("SqrtGrad", SqrtGradGradient, "dy * 0.5 / y: the gradient of y = sqrt(x).");
  add("RsqrtGrad", RsqrtGradGradient, "dy * -0.5 * y * y * y: the gradient of y = 1 / sqrt(x).");
  add("ReciprocalGrad", ReciprocalGradGradient, "-dy * y * y: the gradient of y = 1 / x.");
  add("InvGrad", ReciprocalGradGradient, "-dy * y * y: the old name of ReciprocalGrad.");
}

void AddComplexFunctions(OpRegistry* ops) {
  const auto part = [ops](absl::string_view op, absl::string_view in, absl::string_view out,
                          GradientFn gradient, absl::string_view doc) {
    ops->Add(OpSpec(op)
                 .In(in)
                 .Out(out)
                 .Attr("T: {complex64, complex128} = DT_COMPLEX64")
                 .Attr("Tout: {float, double} = DT_FLOAT")
                 .InferShape(SameShape)
                 .Gradient(std::move(gradient))
                 .Doc(doc));
  };
  part("ComplexAbs", "x: T", "y: Tout", ComplexAbsGradient,
       "The absolute value of complex numbers.");
  part("Real", "input: T", "output: Tout", RealGradient, "The real part.");
  part("Imag", "input: T", "output: Tout", ImagGradient, "The imaginary part.");
  part("Angle", "input: T", "output: Tout", AngleGradient, "The argument, in (-pi, pi].");
  ops->Add(OpSpec("Conj")
               .In("input: T")
               .Out("output: T")
               .Attr("T: {complex64, complex128, variant} = DT_COMPLEX64")
               .InferShape(SameShape)
               .Gradient(ConjGradient)
               .Doc("The complex conjugate."));
}

}  // namespace

void AddUnaryMathOps(OpRegistry* ops) {
  AddFloatFunctions(ops);
  AddNumberFunctions(ops);
  AddGradientFunctions(ops);
  AddComplexFunctions(ops);
  ops->Add(
      OpSpec("Cast")
          .In("x: SrcT")
          .Out("y: DstT")
          .Attr("SrcT: type")
          .Attr("DstT: type")
          .Attr("Truncate: bool = false")
          .InferShape(SameShape)
          .Gradient(CastGradient)
          .Doc("x converted to another type. Floating-point numbers become integers by dropping "
               "the fraction; with "
               "Truncate, narrower floating-point types drop mantissa bits instead of rounding."));
  ops->Add(OpSpec("Bucketize")
               .In("input: T")
               .Out("output: int32")
               .Attr("T: {int32, int64, float, double}")
               .Attr("boundaries: list(float)")
               .InferShape(SameShape)
               .Doc("How many boundaries (in ascending order) are not above each element."));
}

}  // namespace weir
