#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/shape_values.h"

// Arithmetic and other functions of two tensors, which broadcast.
namespace weir {

namespace {

Grads AddGradient(GradContext& g) { return ReduceGradientArgs(g, g.dy(), g.dy()); }
Grads SubGradient(GradContext& g) { return ReduceGradientArgs(g, g.dy(), Negative(g.dy())); }

Grads MulGradient(GradContext& g) {
  const Output x = Conj(g.x(0)), y = Conj(g.x(1));
  if (StaticAndEqual(x.shape(), y.shape())) {
    const Output gx = Multiply(g.dy(), y);
    return {gx, Multiply(g.dy(), x)};
  }
  const Output gx = Multiply(g.dy(), y);
  return ReduceGradientArgs(g, gx, Multiply(x, g.dy()));
}

Grads MulNoNanGradient(GradContext& g) {
  const Output x = g.x(0), y = g.x(1);
  const Output gx = MulNoNan(g.dy(), y);
  return ReduceGradientArgs(g, gx, MulNoNan(x, g.dy()));
}

// `divide` is the op's own division, which determines the node names.
template <class Divide>
Grads QuotientGradient(GradContext& g, Divide divide) {
  const Output x = Conj(g.x(0)), y = Conj(g.x(1));
  const Output gx = divide(g.dy(), y);
  const Output slope = divide(divide(Negative(x), y), y);
  return ReduceGradientArgs(g, gx, g.dy() * slope, /*shortcut=*/false);
}
Grads DivGradient(GradContext& g) {
  return QuotientGradient(g, [](Output a, Output b) { return Divide(a, b); });
}
Grads RealDivGradient(GradContext& g) {
  return QuotientGradient(g, [](Output a, Output b) { return RealDiv(a, b); });
}
Grads DivNoNanGradient(GradContext& g) {
  return QuotientGradient(g, [](Output a, Output b) { return DivNoNan(a, b); });
}

Grads FloorModGradient(GradContext& g) {
  const Output slope = Negative(FloorDiv(g.x(0), g.x(1)));
  return ReduceGradientArgs(g, g.dy(), g.dy() * slope, /*shortcut=*/false);
}

// The gradients of x^y: dy y x^(y-1), and dy x^y log(x) where that is real (0 elsewhere).
Grads PowGradient(GradContext& g) {
  const Output x = Conj(g.x(0)), y = Conj(g.x(1)), z = Conj(g.y()), dy = g.dy();
  const Output gx = dy * y * Pow(x, y - 1, "Pow");
  const Output usable = IsComplex(x.dtype()) ? NotEqual(x, 0) : x > 0;
  const Output safe = Select(usable, x, OnesOf(x));
  const Output log = Log(safe);
  const Output log_or_zero = Select(usable, log, ZerosOf(x));
  return ReduceGradientArgs(g, gx, dy * z * log_or_zero, /*shortcut=*/false);
}

Grads ExtremeGradient(GradContext& g, bool maximum) {
  const Output zeros = ZerosOf(g.dy());
  const Output x_wins = maximum ? GreaterEqual(g.x(0), g.x(1)) : LessEqual(g.x(0), g.x(1));
  const Output gx = SelectV2(x_wins, g.dy(), zeros);
  return ReduceGradientArgs(g, gx, SelectV2(x_wins, zeros, g.dy()), /*shortcut=*/false);
}
Grads MaximumGradient(GradContext& g) { return ExtremeGradient(g, true); }
Grads MinimumGradient(GradContext& g) { return ExtremeGradient(g, false); }

Grads SquaredDifferenceGradient(GradContext& g) {
  const Output gx = ScalarMul(2, g.dy()) * (g.x(0) - g.x(1));
  return ReduceGradientArgs(g, gx, Negative(gx));
}

Grads Atan2Gradient(GradContext& g) {
  const Output y = g.x(0), x = g.x(1);
  const Output y_squared = Square(y);
  const Output inverse = g.dy() / (y_squared + Square(x));
  const Output gy = x * inverse;
  return ReduceGradientArgs(g, gy, Negative(y) * inverse, /*shortcut=*/false);
}

// Returns 1 where x is nonzero and 0 elsewhere; a factor in the gradients of Xlogy and similar ops.
Output NotZero(const Output& x) {
  Output zero;
  {
    NameScope scope(x.graph(), "Cast");
    zero = ConstLike(x, 0, "x");
  }
  return Cast(NotEqual(x, zero), x.dtype());
}

Grads XFunctionGradient(GradContext& g, const std::function<Output(Output)>& dx,
                        const std::function<Output()>& dy) {
  const BroadcastAxes axes = AxesOfBroadcast(g.x(0), g.x(1));
  const Output slope_x = dx(NotZero(g.x(0)));
  const Output slope_y = dy();
  const Output gx = SumTo(slope_x * g.dy(), axes.rx, axes.sx);
  return {gx, SumTo(slope_y * g.dy(), axes.ry, axes.sy)};
}
Grads XdivyGradient(GradContext& g) {
  const Output x = g.x(0), y = g.x(1);
  return XFunctionGradient(
      g, [&](Output one) { return Xdivy(one, y); },
      [&] {
        const Output minus = Negative(x);
        return Xdivy(minus, Pow(y, 2, "pow"));
      });
}
Grads XlogyGradient(GradContext& g) {
  const Output x = g.x(0), y = g.x(1);
  return XFunctionGradient(
      g, [&](Output one) { return Xlogy(one, y); }, [&] { return Xdivy(x, y); });
}
Grads Xlog1pyGradient(GradContext& g) {
  const Output x = g.x(0), y = g.x(1);
  return XFunctionGradient(
      g, [&](Output one) { return Xlog1py(one, y); }, [&] { return Xdivy(x, y + 1); });
}

// The derivative of P(a, x) with respect to x is exp(-x) x^(a-1) / gamma(a).
Grads IgammaGradient(GradContext& g) {
  const Output a = g.x(0), x = g.x(1);
  const BroadcastAxes axes = AxesOfBroadcast(a, x);
  const Output partial_a = AddOp("IgammaGradA", {a, x});
  const Output minus_x = Negative(x);
  const Output power = (a - 1) * Log(x);
  const Output partial_x = Exp(minus_x + power - Lgamma(a));
  const Output ga = SumTo(partial_a * g.dy(), axes.rx, axes.sx);
  return {ga, SumTo(partial_x * g.dy(), axes.ry, axes.sy)};
}
Grads IgammacGradient(GradContext& g) {
  const Grads of_igamma = IgammaGradient(g);
  const Output ga = Negative(of_igamma[0].dense());
  return {ga, Negative(of_igamma[1].dense())};
}
Grads ZetaGradient(GradContext& g) {
  const Output x = g.x(0), q = g.x(1);
  const BroadcastAxes axes = AxesOfBroadcast(x, q);
  const Output minus_x = Negative(x);
  const Output slope = minus_x * Zeta(x + 1, q);
  return {Grad(), SumTo(slope * g.dy(), axes.ry, axes.sy)};
}
Grads PolygammaGradient(GradContext& g) {
  const Output n = g.x(0), x = g.x(1);
  const BroadcastAxes axes = AxesOfBroadcast(n, x);
  const Output slope = Polygamma(n + 1, x);
  return {Grad(), SumTo(slope * g.dy(), axes.ry, axes.sy)};
}

constexpr char kDivisionTypes[] =
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
    "complex64, complex128}";

constexpr char kExtremeTypes[] =
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}";

constexpr char kXTypes[] = "T: {half, bfloat16, float, double, complex64, complex128}";

void AddArithmetic(OpRegistry* ops) {
  ops->Add(
      BinarySpec("Add",
                 "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
                 "complex128, string}")
          .ShapeValue(CombinedShapeValue<AddShapeValues>)
          .Neutral({.value = 0, .either_side = true})
          .Gradient(AddGradient)
          .Doc("Returns x + y. Strings are concatenated."));
  ops->Add(
      BinarySpec(
          "AddV2",
          "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, "
          "int64, complex64, complex128}")
          .ShapeValue(CombinedShapeValue<AddShapeValues>)
          .Neutral({.value = 0, .either_side = true})
          .Commutative()
          .Aggregate()
          .Gradient(AddGradient)
          .Doc("Returns x + y."));
  ops->Add(
      BinarySpec(
          "Sub",
          "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, "
          "complex128, uint32, uint64}")
          .ShapeValue(CombinedShapeValue<SubtractShapeValues>)
          .Neutral({.value = 0, .in_floating_point = true})
          .Gradient(SubGradient)
          .Doc("Returns x - y."));
  ops->Add(BinarySpec("Mul", kDivisionTypes)
               .ShapeValue(CombinedShapeValue<MultiplyShapeValues>)
               .Neutral({.value = 1, .either_side = true, .in_floating_point = true})
               .Commutative()
               .Gradient(MulGradient)
               .Doc("Returns x * y."));
  ops->Add(BinarySpec("Div", kDivisionTypes)
               .Neutral({.value = 1, .in_floating_point = true})
               .Gradient(DivGradient)
               .Doc("Returns x / y. Integers are rounded toward zero."));
  ops->Add(BinarySpec("RealDiv", kDivisionTypes)
               .Neutral({.value = 1, .in_floating_point = true})
               .Gradient(RealDivGradient)
               .Doc("Returns x / y."));
  ops->Add(BinarySpec("FloorDiv", kDivisionTypes)
               .ShapeValue(CombinedShapeValue<DivideShapeValues>)
               .Neutral({.value = 1})
               .NotDifferentiable()
               .Doc("Returns x / y, rounded toward minus infinity."));
  ops->Add(BinarySpec("TruncateDiv", kDivisionTypes)
               .NotDifferentiable()
               .Doc("Returns x / y, rounded toward zero."));
  ops->Add(BinarySpec("DivNoNan", "T: {half, float, bfloat16, double, complex64, complex128}")
               .Gradient(DivNoNanGradient)
               .Doc("Returns x / y, or 0 where y is 0."));
  ops->Add(BinarySpec("MulNoNan", kFloatComplexTypes)
               .Gradient(MulNoNanGradient)
               .Doc("Returns x * y, or 0 where y is 0, even if x is infinite or NaN."));
  ops->Add(
      BinarySpec(
          "FloorMod",
          "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, "
          "double}")
          .Gradient(FloorModGradient)
          .Doc("Returns x - floor(x / y) * y: the remainder with the sign of y."));
  ops->Add(BinarySpec("Mod", "T: {int32, int64, half, half, bfloat16, float, double}")
               .Doc("Returns x - trunc(x / y) * y: the remainder with the sign of x."));
  ops->Add(BinarySpec("TruncateMod", "T: {int32, int64, bfloat16, half, float, double}")
               .Doc("Returns x - trunc(x / y) * y: the remainder with the sign of x."));
  ops->Add(
      BinarySpec(
          "Pow",
          "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}")
          .Neutral({.value = 1, .in_floating_point = true})
          .Gradient(PowGradient)
          .Doc("Returns x to the power y. For integers y must not be negative."));
  ops->Add(BinarySpec("Maximum", kExtremeTypes)
               .ShapeValue(CombinedShapeValue<MaximumOfShapeValues>)
               .Gradient(MaximumGradient)
               .Doc("Returns the larger of x and y, or NaN if either is NaN."));
  ops->Add(BinarySpec("Minimum", kExtremeTypes)
               .ShapeValue(CombinedShapeValue<MinimumOfShapeValues>)
               .Gradient(MinimumGradient)
               .Doc("Returns the smaller of x and y, or NaN if either is NaN."));
  ops->Add(BinarySpec("SquaredDifference",
                      "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
               .Commutative()
               .Gradient(SquaredDifferenceGradient)
               .Doc("Returns (x - y)^2, or |x - y|^2 for complex numbers."));
}

void AddFunctionsOfTwo(OpRegistry* ops) {
  ops->Add(BinarySpec("Atan2", kFloatTypes, "y: T, x: T")
               .Gradient(Atan2Gradient)
               .Doc("Returns the angle of the point (x, y), in [-pi, pi]."));
  ops->Add(BinarySpec("Xdivy", kXTypes)
               .Gradient(XdivyGradient)
               .Doc("Returns x / y, or 0 where x is 0."));
  ops->Add(BinarySpec("Xlogy", kXTypes)
               .Gradient(XlogyGradient)
               .Doc("Returns x log(y), or 0 where x is 0."));
  ops->Add(BinarySpec("Xlog1py", kXTypes)
               .Gradient(Xlog1pyGradient)
               .Doc("Returns x log(1 + y), or 0 where x is 0."));
  ops->Add(BinarySpec("Igamma", kFloatTypes, "a: T, x: T")
               .Gradient(IgammaGradient)
               .Doc("Computes the lower regularized incomplete gamma function P(a, x)."));
  ops->Add(
      BinarySpec("Igammac", kFloatTypes, "a: T, x: T")
          .Gradient(IgammacGradient)
          .Doc("Computes the upper regularized incomplete gamma function Q(a, x) = 1 - P(a, x)."));
  ops->Add(BinarySpec("IgammaGradA", "T: {float, double}", "a: T, x: T")
               .Doc("Computes the derivative of P(a, x) with respect to a."));
  ops->Add(BinarySpec("Zeta", "T: {float, double}", "x: T, q: T")
               .Gradient(ZetaGradient)
               .Doc("Computes the Hurwitz zeta function: the sum of (q + n)^-x over n >= 0."));
  ops->Add(BinarySpec("Polygamma", "T: {float, double}", "a: T, x: T")
               .Gradient(PolygammaGradient)
               .Doc("Computes the a-th derivative of the digamma function."));
}

}  // namespace

void AddBinaryMathOps(OpRegistry* ops) {
  AddArithmetic(ops);
  AddFunctionsOfTwo(ops);
}

namespace {

// Returns the dtype in which Python's true division computes.
DataType TrueDivisionType(DataType t) {
  switch (t) {
    case DT_INT8:
    case DT_UINT8:
    case DT_INT16:
    case DT_UINT16:
      return DT_FLOAT;
    case DT_INT32:
    case DT_INT64:
    case DT_UINT32:
    case DT_UINT64:
      return DT_DOUBLE;
    default:
      return t;
  }
}

}  // namespace

// AddV2 does not support strings.
Output Add(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  const bool joins = (x.is_literal() ? y : x).output().dtype() == DT_STRING;
  return Binary(joins ? "Add" : "AddV2", x, y, name.empty() ? "Add" : name);
}
Output Subtract(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Sub", x, y, name);
}
Output Multiply(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Mul", x, y, name);
}

Output Divide(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  const absl::string_view label = name.empty() ? "truediv" : name;
  const Output tensor = x.is_literal() ? y.output() : x.output();
  if (!tensor.valid()) return {};
  const DataType type = TrueDivisionType(tensor.dtype());
  if (type == tensor.dtype()) return Binary("RealDiv", x, y, label);
  Graph& g = tensor.graph();
  NameScope scope(g, label);
  const Output a = x.is_literal() ? x.In(g, tensor.dtype(), "x") : x.output();
  const Output b = y.is_literal() ? y.In(g, tensor.dtype(), "y") : y.output();
  const Output wide_a = Cast(a, type), wide_b = Cast(b, type);
  return AddOp("RealDiv", {wide_a, wide_b}, {}, scope.name());
}

Output RealDiv(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("RealDiv", x, y, name);
}
Output FloorDiv(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("FloorDiv", x, y, name);
}
Output TruncateDiv(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("TruncateDiv", x, y, name);
}
Output DivNoNan(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("DivNoNan", x, y, name.empty() ? "div_no_nan" : name);
}
Output MulNoNan(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("MulNoNan", x, y, name);
}
Output FloorMod(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("FloorMod", x, y, name);
}
Output TruncateMod(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("TruncateMod", x, y, name);
}
Output Pow(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Pow", x, y, name);
}
Output Maximum(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Maximum", x, y, name);
}
Output Minimum(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Minimum", x, y, name);
}
Output SquaredDifference(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("SquaredDifference", x, y, name);
}
Output Atan2(const TensorArg& y, const TensorArg& x, absl::string_view name) {
  return Binary("Atan2", y, x, name, "y", "x");
}
Output Xdivy(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Xdivy", x, y, name);
}
Output Xlogy(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Xlogy", x, y, name);
}
Output Xlog1py(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Xlog1py", x, y, name);
}
Output Igamma(const TensorArg& a, const TensorArg& x, absl::string_view name) {
  return Binary("Igamma", a, x, name, "a", "x");
}
Output Igammac(const TensorArg& a, const TensorArg& x, absl::string_view name) {
  return Binary("Igammac", a, x, name, "a", "x");
}
Output Zeta(const TensorArg& x, const TensorArg& q, absl::string_view name) {
  return Binary("Zeta", x, q, name, "x", "q");
}
Output Polygamma(const TensorArg& a, const TensorArg& x, absl::string_view name) {
  return Binary("Polygamma", a, x, name, "a", "x");
}

Output ScalarMul(const TensorArg& scalar, Output x, absl::string_view name) {
  if (!x.valid()) return {};
  const Output factor = scalar.In(x.graph(), x.dtype(), "scalar");
  if (factor.valid() && factor.shape().rank() > 0) {
    x.graph().Fail(InvalidArgument("The input scalar must be a 0-D value, but ", factor.name(),
                                   " has shape ", factor.shape().ToString()));
    return {};
  }
  return AddOp("Mul", {factor, x}, {}, name);
}

// ---- C++ operators

Output operator-(const Output& x) {
  internal::ReadHere(x);
  return Negative(x);
}

namespace internal {

namespace {

void ReadFirstHere(const TensorArg& x, const TensorArg& y) {
  ReadHere(x.is_literal() ? y.output() : x.output());
}

}  // namespace

Output BinaryOperator(const char* op, const char* name, const TensorArg& x, const TensorArg& y) {
  ReadFirstHere(x, y);
  return Binary(op, x, y, name);
}

Output FunctionOperator(Output (*fn)(const TensorArg&, const TensorArg&, absl::string_view),
                        const char* name, const TensorArg& x, const TensorArg& y) {
  ReadFirstHere(x, y);
  return fn(x, y, name);
}

}  // namespace internal

}  // namespace weir
