#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "weir/core/scope.h"
#include "weir/ops/math_internal.h"
#include "weir/ops/op_costs.h"
#include "weir/ops/registry.h"
#include "weir/ops/shape_values.h"

namespace weir {

// Gradients of a broadcasting op have the shape of its result. Each is summed over the dimensions
// along which its input was broadcast, and reshaped to the input's shape. If the static shapes
// determine these dimensions, they are constants, and an input that was not broadcast costs
// nothing; otherwise BroadcastGradientArgs computes them at run time. If one of two dimensions is
// 1, the other is assumed to broadcast even if it is unknown: if it is 1 too, the sum is over one
// element.
namespace {

bool StaticAndEqual(const Shape& a, const Shape& b) {
  return a.IsFullyDefined() && b.IsFullyDefined() && a == b;
}

using Dims = std::vector<int64_t>;

// Returns the dimensions of the result along which x is broadcast, and those along which y is.
// Returns nullopt if they are known only at run time.
std::optional<std::pair<Dims, Dims>> RepeatedDims(const Shape& x, const Shape& y) {
  if (!x.has_rank() || !y.has_rank()) return std::nullopt;
  const int rank = std::max(x.rank(), y.rank());
  const auto dim = [rank](const Shape& s, int i) {
    const int skip = rank - s.rank();
    return i < skip ? 1 : s.dim(i - skip);
  };
  std::pair<Dims, Dims> dims;
  for (int i = 0; i < rank; ++i) {
    const int64_t dx = dim(x, i), dy = dim(y, i);
    if (dx == 1 && dy != 1) {
      dims.first.push_back(i);
    } else if (dy == 1 && dx != 1) {
      dims.second.push_back(i);
    } else if (dx < 0 || dy < 0) {
      return std::nullopt;
    }
  }
  return dims;
}

Output SumToStatic(Output gradient, const Dims& dims, bool same_rank, Output shape) {
  if (dims.empty() && same_rank) return gradient;
  return Reshape(ReduceSum(gradient, Ints(dims), /*keep_dims=*/true), shape);
}

}  // namespace

Grads ReduceGradientArgs(GradContext& g, Output gx, Output gy, bool shortcut) {
  const Output x = g.x(0), y = g.x(1);
  const bool equal = StaticAndEqual(x.shape(), y.shape());
  if (equal && shortcut) return {gx, gy};
  const Output sx = ShapeVector(x), sy = ShapeVector(y);
  if (equal) return {gx, gy};
  if (const auto dims = RepeatedDims(x.shape(), y.shape())) {
    const int rank_x = x.shape().rank(), rank_y = y.shape().rank();
    const Output to_x = SumToStatic(gx, dims->first, rank_x >= rank_y, sx);
    return {to_x, SumToStatic(gy, dims->second, rank_y >= rank_x, sy)};
  }
  const BroadcastReductions axes = BroadcastGradientArgs(sx, sy);
  const Output to_x = Reshape(ReduceSum(gx, axes.r0, /*keep_dims=*/true), sx);
  return {to_x, Reshape(ReduceSum(gy, axes.r1, /*keep_dims=*/true), sy)};
}

BroadcastAxes AxesOfBroadcast(const Output& x, const Output& y) {
  const Output sx = ShapeVector(x), sy = ShapeVector(y);
  const BroadcastReductions axes = BroadcastGradientArgs(sx, sy);
  return {sx, sy, axes.r0, axes.r1};
}

Output SumTo(Output gradient, Output axes, Output shape) {
  return Reshape(ReduceSum(gradient, axes), shape);
}

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

Grads ComplexGradient(GradContext& g) {
  const Output re = Real(g.dy());
  return ReduceGradientArgs(g, re, Imag(g.dy()), /*shortcut=*/false);
}

// ---- selection

Grads SelectGradient(GradContext& g) {
  const Output condition = g.x(0), zeros = ZerosOf(g.x(1));
  const Output gt = Select(condition, g.dy(), zeros);
  return {Grad(), gt, Select(condition, zeros, g.dy())};
}

Output SumToInput(Output gradient, const Output& input, const Output& result) {
  const Output shape = ShapeVector(input), full = ShapeVector(result);
  if (StaticAndEqual(input.shape(), result.shape())) return gradient;
  const BroadcastReductions axes = BroadcastGradientArgs(shape, full);
  return Reshape(ReduceSum(gradient, axes.r0, /*keep_dims=*/true), shape);
}

Grads SelectV2Gradient(GradContext& g) {
  const Output condition = g.x(0), zeros = Zeros(g.graph(), Shape(), g.dy().dtype());
  const Output gt = AddOp("SelectV2", {condition, g.dy(), zeros});
  const Output ge = AddOp("SelectV2", {condition, zeros, g.dy()});
  const Output to_t = SumToInput(gt, g.x(1), g.y());
  return {Grad(), to_t, SumToInput(ge, g.x(2), g.y())};
}

Grads ClipByValueGradient(GradContext& g) {
  const Output x = g.x(0), low = g.x(1), high = g.x(2), dy = g.dy();
  const Output sx = ShapeVector(x), s_low = ShapeVector(low), s_high = ShapeVector(high),
               s_dy = ShapeVector(dy);
  const Output zeros = Zeros(g.graph(), s_dy, dy.dtype());
  const Output below = Less(x, low), above = Greater(x, high);
  const Output low_axes = BroadcastGradientArgs(sx, s_low).r1,
               high_axes = BroadcastGradientArgs(sx, s_high).r1;
  const Output gx = Select(LogicalOr(below, above), zeros, dy);
  const Output g_low = Select(below, dy, zeros), g_high = Select(above, dy, zeros);
  const Output to_low = SumTo(g_low, low_axes, s_low);
  return {gx, to_low, SumTo(g_high, high_axes, s_high)};
}

Grads AddNGradient(GradContext& g) { return Grads(g.num_inputs(), Grad(g.dy())); }

// ---- shape functions

// Equal and NotEqual: shapes that do not broadcast are an error, unless the node's attribute says
// that they yield a scalar.
absl::Status EqualityShape(ShapeContext& c) {
  absl::StatusOr<Shape> shape = BroadcastShapes(c.input(0), c.input(1));
  if (c.attr<bool>("incompatible_shape_error")) {
    WEIR_RETURN_IF_ERROR(shape.status());
    c.set_output(0, *std::move(shape));
  } else if (!shape.ok()) {
    c.set_output(0, Shape());
  } else if (shape->IsFullyDefined()) {
    c.set_output(0, *std::move(shape));
  }
  return absl::OkStatus();
}

// Select: `t` and `e` have the same shape. The condition has that shape too, is a scalar, or is a
// vector with the length of their first dimension.
absl::Status SelectShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, c.input(1).MergeWith(c.input(2)));
  const Shape& condition = c.input(0);
  if (condition.has_rank() && shape.has_rank() && condition.rank() != 0) {
    if (condition.rank() == 1 && shape.rank() != 1) {
      if (shape.rank() == 0) {
        return InvalidArgument("Select: the condition of shape ", condition.ToString(),
                               " selects rows, but t and e are scalars");
      }
      WEIR_ASSIGN_OR_RETURN(const int64_t rows, MergeDims(condition.dim(0), shape.dim(0)));
      shape.set_dim(0, rows);
    } else {
      WEIR_ASSIGN_OR_RETURN(shape, shape.MergeWith(condition));
    }
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status SelectV2Shape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape values, BroadcastShapes(c.input(1), c.input(2)));
  WEIR_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(c.input(0), values));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// As in TensorFlow, the inputs need only agree with each other; the attribute `shape` is not
// checked.
absl::Status AccumulateShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(MergedShape(c));
  absl::StatusOr<Shape> shape = c.outputs()[0].MergeWith(c.attr<Shape>("shape"));
  if (shape.ok()) c.set_output(0, *std::move(shape));
  return absl::OkStatus();
}

// ---- op definitions

constexpr char kDivisionTypes[] =
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
    "complex64, complex128}";
constexpr char kRealTypes[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";
constexpr char kExtremeTypes[] =
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}";
constexpr char kIntegerTypes[] = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";
constexpr char kXTypes[] = "T: {half, bfloat16, float, double, complex64, complex128}";

OpSpec BinarySpec(absl::string_view op, absl::string_view types,
                  absl::string_view in = "x: T, y: T") {
  return OpSpec(op).In(in).Out("z: T").Attr(types).Elementwise().InferShape(BroadcastShape);
}

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
          .Neutral({.value = 1})
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
  ops->Add(OpSpec("Complex")
               .In("real: T, imag: T")
               .Out("out: Tout")
               .Attr("T: {float, double} = DT_FLOAT")
               .Attr("Tout: {complex64, complex128} = DT_COMPLEX64")
               .Elementwise()
               .InferShape(BroadcastShape)
               .Gradient(ComplexGradient)
               .Doc("Returns complex numbers with the given real and imaginary parts."));
}

void AddComparisons(OpRegistry* ops) {
  for (const auto& [op, doc] :
       {std::pair<const char*, const char*>{"Less", "Returns whether x < y."},
        {"LessEqual", "Returns whether x <= y."},
        {"Greater", "Returns whether x > y."},
        {"GreaterEqual", "Returns whether x >= y."}}) {
    ops->Add(OpSpec(op)
                 .In("x: T, y: T")
                 .Out("z: bool")
                 .Attr(kRealTypes)
                 .Elementwise()
                 .InferShape(BroadcastShape)
                 .NotDifferentiable()
                 .Doc(doc));
  }
  for (const auto& [op, doc] :
       {std::pair<const char*, const char*>{"Equal", "Returns whether x and y are equal."},
        {"NotEqual", "Returns whether x and y differ."}}) {
    ops->Add(OpSpec(op)
                 .In("x: T, y: T")
                 .Out("z: bool")
                 .Attr("T: type")
                 .Attr("incompatible_shape_error: bool = true")
                 .Commutative()
                 .Elementwise()
                 .InferShape(EqualityShape)
                 .NotDifferentiable()
                 .Doc(doc));
  }
  ops->Add(OpSpec("ApproximateEqual")
               .In("x: T, y: T")
               .Out("z: bool")
               .Attr("T: numbertype")
               .Attr("tolerance: float = 1e-05")
               .Commutative()
               .Elementwise()
               .InferShape(MergedShape)
               .NotDifferentiable()
               .Doc("Returns whether |x - y| < tolerance."));
  for (const auto& [op, doc] :
       {std::pair<const char*, const char*>{"LogicalAnd", "Returns the logical AND of x and y."},
        {"LogicalOr", "Returns the logical OR of x and y."}}) {
    ops->Add(OpSpec(op)
                 .In("x: bool, y: bool")
                 .Out("z: bool")
                 .Commutative()
                 .Elementwise()
                 .Neutral({.value = absl::string_view(op) == "LogicalAnd" ? 1. : 0.,
                           .either_side = true,
                           .in_floating_point = true})
                 .InferShape(BroadcastShape)
                 .NotDifferentiable()
                 .Doc(doc));
  }
  for (const auto& [op, doc] :
       {std::pair<const char*, const char*>{"BitwiseAnd", "Returns the bitwise AND of x and y."},
        {"BitwiseOr", "Returns the bitwise OR of x and y."},
        {"BitwiseXor", "Returns the bitwise XOR of x and y."}}) {
    OpSpec spec = BinarySpec(op, kIntegerTypes);
    if (absl::string_view(op) != "BitwiseAnd") spec.Neutral({.value = 0, .either_side = true});
    ops->Add(spec.Commutative().NotDifferentiable().Doc(doc));
  }
  ops->Add(BinarySpec("LeftShift", kIntegerTypes)
               .Neutral({.value = 0})
               .NotDifferentiable()
               .Doc("Shifts x left by y bits. A shift beyond the width of the type is clamped to "
                    "the largest shift within it."));
  ops->Add(BinarySpec("RightShift", kIntegerTypes)
               .Neutral({.value = 0})
               .NotDifferentiable()
               .Doc("Shifts x right by y bits; signed numbers keep their sign. A shift beyond the "
                    "width of the type is clamped to the largest shift within it."));
}

}  // namespace

void AddBinaryMathOps(OpRegistry* ops) {
  AddArithmetic(ops);
  AddFunctionsOfTwo(ops);
  AddComparisons(ops);
  ops->Add(OpSpec("Select")
               .In("condition: bool, t: T, e: T")
               .Out("output: T")
               .Attr("T: type")
               .Flops(ElementwiseFlops)
               .InferShape(SelectShape)
               .Gradient(SelectGradient)
               .Doc("Returns t where the condition is true, and e elsewhere. A vector of "
                    "conditions selects rows; a scalar selects everything."));
  ops->Add(OpSpec("SelectV2")
               .In("condition: bool, t: T, e: T")
               .Out("output: T")
               .Attr("T: type")
               .Elementwise()
               .InferShape(SelectV2Shape)
               .Gradient(SelectV2Gradient)
               .Doc("Returns t where the condition is true, and e elsewhere. All three arguments "
                    "broadcast."));
  ops->Add(OpSpec("ClipByValue")
               .In("t: T, clip_value_min: T, clip_value_max: T")
               .Out("output: T")
               .Attr("T: numbertype")
               .Elementwise()
               .InferShape(SameShape)
               .Gradient(ClipByValueGradient)
               .Doc("Clips t to [clip_value_min, clip_value_max]. The bounds are scalars or have "
                    "t's shape."));
  ops->Add(OpSpec("AddN")
               .In("inputs: N * T")
               .Out("sum: T")
               .Attr("N: int >= 1")
               .Attr("T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, "
                     "quint8, qint32, bfloat16, "
                     "qint16, quint16, uint16, complex128, half, uint32, uint64, variant}")
               .Commutative()
               .Aggregate()
               .Flops(AddNFlops)
               .InferShape(MergedShape)
               .Gradient(AddNGradient)
               .Doc("Returns the elementwise sum of all inputs."));
  ops->Add(
      OpSpec("AccumulateNV2")
          .In("inputs: N * T")
          .Out("sum: T")
          .Attr("N: int >= 1")
          .Attr("T: numbertype")
          .Attr("shape: shape")
          .Commutative()
          .Aggregate()
          .InferShape(AccumulateShape)
          .Gradient(AddNGradient)
          .Doc("Returns the elementwise sum of all inputs. `shape` is the shape of the inputs."));
}

}  // namespace weir
