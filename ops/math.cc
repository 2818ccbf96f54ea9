#include "weir/ops/math.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "weir/core/scope.h"
#include "weir/ops/math_internal.h"

namespace weir {

namespace {

Output Unary(absl::string_view op, Output x, absl::string_view name) {
  return AddOp(op, {x}, {}, name);
}

// Adds a node of `op` whose arguments may be literals. Literals become constants inside the scope
// that the node is named after.
Output Binary(absl::string_view op, const TensorArg& x, const TensorArg& y, absl::string_view name,
              const char* x_name = "x", const char* y_name = "y", Attrs attrs = {}) {
  if (!x.is_literal() && !y.is_literal()) return AddOp(op, {x.output(), y.output()}, attrs, name);
  const Output& tensor = x.is_literal() ? y.output() : x.output();
  if (!tensor.valid()) return {};
  Graph& g = tensor.graph();
  NameScope scope(g, name.empty() ? op : name);
  const Output a = x.is_literal() ? x.In(g, tensor.dtype(), x_name) : tensor;
  const Output b = y.is_literal() ? y.In(g, tensor.dtype(), y_name) : tensor;
  return AddOp(op, {a, b}, attrs, scope.name());
}

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

namespace internal {

namespace {
void ReadHere(const Output& first) {
  if (first.valid()) first.graph().NameHere(first);
}
void ReadHere(const TensorArg& x, const TensorArg& y) {
  ReadHere(x.is_literal() ? y.output() : x.output());
}
}  // namespace

Output BinaryOperator(const char* op, const char* name, const TensorArg& x, const TensorArg& y) {
  ReadHere(x, y);
  return Binary(op, x, y, name);
}

Output FunctionOperator(Output (*fn)(const TensorArg&, const TensorArg&, absl::string_view),
                        const char* name, const TensorArg& x, const TensorArg& y) {
  ReadHere(x, y);
  return fn(x, y, name);
}

}  // namespace internal

// ---- binary ops

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

// ---- comparison, logic, bits

Output Equal(const TensorArg& x, const TensorArg& y, absl::string_view name,
             bool incompatible_shape_error) {
  return Binary("Equal", x, y, name, "x", "y",
                {{"incompatible_shape_error", incompatible_shape_error}});
}
Output NotEqual(const TensorArg& x, const TensorArg& y, absl::string_view name,
                bool incompatible_shape_error) {
  return Binary("NotEqual", x, y, name, "x", "y",
                {{"incompatible_shape_error", incompatible_shape_error}});
}
Output Less(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Less", x, y, name);
}
Output LessEqual(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("LessEqual", x, y, name);
}
Output Greater(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Greater", x, y, name);
}
Output GreaterEqual(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("GreaterEqual", x, y, name);
}
Output ApproximateEqual(Output x, Output y, float tolerance, absl::string_view name) {
  return AddOp("ApproximateEqual", {x, y}, {{"tolerance", tolerance}}, name);
}
Output LogicalAnd(Output x, Output y, absl::string_view name) {
  return AddOp("LogicalAnd", {x, y}, {}, name);
}
Output LogicalOr(Output x, Output y, absl::string_view name) {
  return AddOp("LogicalOr", {x, y}, {}, name);
}
Output LogicalXor(Output x, Output y, absl::string_view name) {
  const Output any = LogicalOr(x, y);
  const Output not_both = LogicalNot(LogicalAnd(x, y));
  return LogicalAnd(any, not_both, name);
}
Output LogicalNot(Output x, absl::string_view name) { return Unary("LogicalNot", x, name); }
Output BitwiseAnd(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("BitwiseAnd", x, y, name);
}
Output BitwiseOr(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("BitwiseOr", x, y, name);
}
Output BitwiseXor(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("BitwiseXor", x, y, name);
}
Output Invert(Output x, absl::string_view name) { return Unary("Invert", x, name); }
Output LeftShift(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("LeftShift", x, y, name);
}
Output RightShift(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("RightShift", x, y, name);
}

Output operator-(const Output& x) {
  internal::ReadHere(x);
  return Negative(x);
}

Output operator&(const Output& x, const Output& y) {
  internal::ReadHere(x);
  if (x.dtype() == DT_BOOL || !x.valid()) return LogicalAnd(x, y, "and");
  NameScope scope(x.graph(), "and");
  return BitwiseAnd(x, y);
}
Output operator|(const Output& x, const Output& y) {
  internal::ReadHere(x);
  if (x.dtype() == DT_BOOL || !x.valid()) return LogicalOr(x, y, "or");
  NameScope scope(x.graph(), "or");
  return BitwiseOr(x, y);
}
Output operator^(const Output& x, const Output& y) {
  internal::ReadHere(x);
  if (!x.valid() || !y.valid()) return {};
  NameScope scope(x.graph(), "xor");
  return x.dtype() == DT_BOOL ? LogicalXor(x, y, scope.name()) : BitwiseXor(x, y);
}

// ---- unary ops

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

Output Conj(Output x, absl::string_view name) {
  return IsComplex(x.dtype()) ? Unary("Conj", x, name) : x;
}

namespace {
Output ComplexPart(absl::string_view op, Output x, absl::string_view name) {
  return AddOp(op, {x}, {{"Tout", x.dtype() == DT_COMPLEX64 ? DT_FLOAT : DT_DOUBLE}}, name);
}
}  // namespace

Output Real(Output x, absl::string_view name) {
  return IsComplex(x.dtype()) ? ComplexPart("Real", x, name) : x;
}
Output Imag(Output x, absl::string_view name) {
  return IsComplex(x.dtype()) ? ComplexPart("Imag", x, name) : ZerosOf(x);
}
Output Angle(Output x, absl::string_view name) {
  return IsComplex(x.dtype()) ? ComplexPart("Angle", x, name) : ZerosOf(x);
}
Output Complex(Output real, Output imag, absl::string_view name) {
  return AddOp("Complex", {real, imag},
               {{"Tout", real.dtype() == DT_FLOAT ? DT_COMPLEX64 : DT_COMPLEX128}}, name);
}

Output Cast(Output x, DataType dtype, absl::string_view name) {
  if (!x.valid() || x.dtype() == dtype) return x;
  return AddOp("Cast", {x}, {{"DstT", dtype}}, name);
}

namespace {
// The range of a dtype as doubles. The ranges of floating-point types and 64-bit integers are not
// exact, and need not be.
std::pair<double, double> RangeOf(DataType t) {
  std::pair<double, double> range{0, 0};
  DispatchType(t,
               List<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                    uint64_t>{},
               [&]<class T>() {
                 range = {static_cast<double>(std::numeric_limits<T>::lowest()),
                          static_cast<double>(std::numeric_limits<T>::max())};
               });
  if (t == DT_HALF) range = {-65504, 65504};
  if (t == DT_BFLOAT16) range = {-3.3895313892515355e38, 3.3895313892515355e38};
  return range;
}
}  // namespace

Output SaturateCast(Output x, DataType dtype, absl::string_view name) {
  if (!x.valid()) return {};
  NameScope scope(x.graph(), name);
  const auto [in_low, in_high] = RangeOf(x.dtype());
  const auto [out_low, out_high] = RangeOf(dtype);
  Output value = x;
  if (in_low < out_low || in_high > out_high) {
    value = ClipByValue(value, std::max(in_low, out_low), std::min(in_high, out_high), "clamp");
  }
  return Cast(value, dtype, scope.name());
}

Output Bucketize(Output x, std::vector<float> boundaries, absl::string_view name) {
  return AddOp("Bucketize", {x}, {{"boundaries", std::move(boundaries)}}, name);
}

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

// ---- selection

Output Select(Output condition, Output t, Output e, absl::string_view name) {
  return AddOp("Select", {condition, t, e}, {}, name);
}

Output SelectV2(Output condition, const TensorArg& t, const TensorArg& e, absl::string_view name) {
  if (!t.is_literal() && !e.is_literal())
    return AddOp("SelectV2", {condition, t.output(), e.output()}, {}, name);
  if (!condition.valid()) return {};
  Graph& g = condition.graph();
  NameScope scope(g, name.empty() ? "SelectV2" : name);
  // If both arguments are literals, the first determines the dtype.
  const Output a = t.is_literal() ? t.In(g, e.output().dtype(), "t") : t.output();
  const Output b = e.is_literal() ? e.In(g, a.dtype(), "e") : e.output();
  return AddOp("SelectV2", {condition, a, b}, {}, scope.name());
}

Output ClipByValue(Output x, const TensorArg& low, const TensorArg& high, absl::string_view name) {
  if (!x.valid()) return {};
  NameScope scope(x.graph(), name);
  const Output below = Minimum(x, high);
  const Output bound = low.is_literal() ? low.In(x.graph(), x.dtype(), "y") : low.output();
  return AddOp("Maximum", {below, bound}, {}, scope.name());
}

// ---- sums of several tensors

Output AddN(const Outputs& inputs, absl::string_view name) {
  for (const Output& input : inputs) internal::ReadHere(input);  // TensorFlow's text
  if (inputs.size() == 1) return name.empty() ? inputs[0] : Identity(inputs[0], name);
  return AddOp("AddN", {inputs}, {}, name);
}

Output AccumulateN(const Outputs& inputs, absl::string_view name) {
  if (inputs.size() == 1) return name.empty() ? inputs[0] : Identity(inputs[0], name);
  Shape shape = Shape::UnknownRank();
  for (const Output& input : inputs) {
    if (absl::StatusOr<Shape> merged = shape.MergeWith(input.shape()); merged.ok())
      shape = *std::move(merged);
  }
  return AddOp("AccumulateNV2", {inputs}, {{"shape", shape}}, name);
}

// ---- reductions

Output AllAxes(Output x) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  if (x.shape().rank() < 1) return Range(g, 0, Rank(x), 1);
  std::vector<int64_t> axes(x.shape().rank());
  std::iota(axes.begin(), axes.end(), 0);
  return Ints(axes).In(g, "Const", DT_INT32);
}

namespace {

// Reduces over all axes to a scalar, even if the rank is unknown.
Output Reduce(const char* op, Output x) {
  if (!x.valid()) return {};
  const Output y = AddOp(op, {x, AllAxes(x)});
  if (y.valid()) x.graph().Fail(x.graph().RefineShape(y, Shape()));
  return y;
}

Output Reduce(const char* op, Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  if (!x.valid()) return {};
  if (axes.is_tensor()) return AddOp(op, {x, axes.tensor()}, {{"keep_dims", keep_dims}}, name);
  NameScope scope(x.graph(), name.empty() ? op : name);
  const Output indices = axes.In(x.graph(), "reduction_indices");
  return AddOp(op, {x, indices}, {{"keep_dims", keep_dims}}, scope.name());
}

}  // namespace

Output ReduceSum(Output x) { return Reduce("Sum", x); }
Output ReduceSum(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  return Reduce("Sum", x, axes, keep_dims, name);
}
Output ReduceMean(Output x) { return Reduce("Mean", x); }
Output ReduceMean(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  return Reduce("Mean", x, axes, keep_dims, name);
}
Output ReduceProd(Output x) { return Reduce("Prod", x); }
Output ReduceProd(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  return Reduce("Prod", x, axes, keep_dims, name);
}
Output ReduceMax(Output x) { return Reduce("Max", x); }
Output ReduceMax(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  return Reduce("Max", x, axes, keep_dims, name);
}
Output ReduceMin(Output x) { return Reduce("Min", x); }
Output ReduceMin(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  return Reduce("Min", x, axes, keep_dims, name);
}
Output ReduceAll(Output x) { return Reduce("All", x); }
Output ReduceAll(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  return Reduce("All", x, axes, keep_dims, name);
}
Output ReduceAny(Output x) { return Reduce("Any", x); }
Output ReduceAny(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  return Reduce("Any", x, axes, keep_dims, name);
}
Output ReduceEuclideanNorm(Output x) { return Reduce("EuclideanNorm", x); }
Output ReduceEuclideanNorm(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  return Reduce("EuclideanNorm", x, axes, keep_dims, name);
}

Output ReduceLogsumexp(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  if (!x.valid()) return {};
  NameScope scope(x.graph(), name);
  const Output largest = ReduceMax(x, axes, /*keep_dims=*/true);
  const Output finite = StopGradient(SelectV2(IsFinite(largest), largest, 0.0));
  const Output log = Log(ReduceSum(Exp(Subtract(x, finite)), axes, keep_dims));
  if (keep_dims) return Add(log, finite, scope.name());
  const Output shift = Reshape(finite, AddOp("Shape", {log}));
  return Add(log, shift, scope.name());
}

Output ReduceVariance(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  if (!x.valid()) return {};
  NameScope scope(x.graph(), name);
  const Output mean = ReduceMean(x, axes, /*keep_dims=*/true);
  return ReduceMean(Square(x - mean), axes, keep_dims);
}

Output ReduceStd(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  if (!x.valid()) return {};
  NameScope scope(x.graph(), name);
  return Sqrt(ReduceVariance(x, axes, keep_dims));
}

Output CountNonzero(Output x, const Ints& axes, bool keep_dims, absl::string_view name) {
  if (!x.valid()) return {};
  NameScope scope(x.graph(), name);
  const Output nonzero = NotEqual(x, Const(x.graph(), Tensor::Zeros(x.dtype(), Shape()), "zeros"));
  return ReduceSum(Cast(nonzero, DT_INT64), axes, keep_dims);
}

namespace {

Output WithAxis(const char* op, Output x, const Ints& axis, const char* axis_name, Attrs attrs,
                absl::string_view name) {
  if (!x.valid()) return {};
  if (axis.is_tensor()) return AddOp(op, {x, axis.tensor()}, attrs, name);
  NameScope scope(x.graph(), name.empty() ? op : name);
  const Output index = axis.In(x.graph(), axis_name);
  return AddOp(op, {x, index}, attrs, scope.name());
}

Output Cumulative(const char* op, Output x, const Ints& axis, const CumulativeOptions& options,
                  absl::string_view name) {
  return WithAxis(op, x, axis, "axis",
                  {{"exclusive", options.exclusive}, {"reverse", options.reverse}}, name);
}

}  // namespace

Output ArgMax(Output x, const Ints& axis, DataType output_type, absl::string_view name) {
  return WithAxis("ArgMax", x, axis, "dimension", {{"output_type", output_type}}, name);
}
Output ArgMin(Output x, const Ints& axis, DataType output_type, absl::string_view name) {
  return WithAxis("ArgMin", x, axis, "dimension", {{"output_type", output_type}}, name);
}
Output Cumsum(Output x, const Ints& axis, const CumulativeOptions& options,
              absl::string_view name) {
  return Cumulative("Cumsum", x, axis, options, name);
}
Output Cumprod(Output x, const Ints& axis, const CumulativeOptions& options,
               absl::string_view name) {
  return Cumulative("Cumprod", x, axis, options, name);
}
Output CumulativeLogsumexp(Output x, const Ints& axis, const CumulativeOptions& options,
                           absl::string_view name) {
  return Cumulative("CumulativeLogsumexp", x, axis, options, name);
}

Output Range(Graph& graph, const Ints& start, const Ints& limit, const Ints& delta,
             absl::string_view name) {
  NameScope scope(graph, name);
  const Output a = start.In(graph, "start"), b = limit.In(graph, "limit"),
               d = delta.In(graph, "delta");
  return AddOp("Range", {a, b, d}, {}, scope.name());
}
Output Range(Output start, Output limit, Output delta, absl::string_view name) {
  return AddOp("Range", {start, limit, delta}, {}, name);
}
Output LinSpace(Output start, Output stop, const Ints& num, absl::string_view name) {
  if (!start.valid()) return {};
  NameScope scope(start.graph(), name.empty() ? "LinSpace" : name);
  return AddOp("LinSpace", {start, stop, num.In(start.graph(), "num")}, {}, scope.name());
}

// ---- segments

Output SegmentSum(Output data, Output ids, absl::string_view name) {
  return AddOp("SegmentSum", {data, ids}, {}, name);
}
Output SegmentMean(Output data, Output ids, absl::string_view name) {
  return AddOp("SegmentMean", {data, ids}, {}, name);
}
Output SegmentProd(Output data, Output ids, absl::string_view name) {
  return AddOp("SegmentProd", {data, ids}, {}, name);
}
Output SegmentMin(Output data, Output ids, absl::string_view name) {
  return AddOp("SegmentMin", {data, ids}, {}, name);
}
Output SegmentMax(Output data, Output ids, absl::string_view name) {
  return AddOp("SegmentMax", {data, ids}, {}, name);
}

namespace {
Output UnsortedSegment(const char* op, Output data, Output ids, const Ints& num_segments,
                       absl::string_view name) {
  if (!data.valid()) return {};
  if (num_segments.is_tensor()) return AddOp(op, {data, ids, num_segments.tensor()}, {}, name);
  NameScope scope(data.graph(), name.empty() ? op : name);
  return AddOp(op, {data, ids, num_segments.In(data.graph(), "num_segments")}, {}, scope.name());
}
}  // namespace

Output UnsortedSegmentSum(Output data, Output ids, const Ints& num_segments,
                          absl::string_view name) {
  return UnsortedSegment("UnsortedSegmentSum", data, ids, num_segments, name);
}
Output UnsortedSegmentProd(Output data, Output ids, const Ints& num_segments,
                           absl::string_view name) {
  return UnsortedSegment("UnsortedSegmentProd", data, ids, num_segments, name);
}
Output UnsortedSegmentMin(Output data, Output ids, const Ints& num_segments,
                          absl::string_view name) {
  return UnsortedSegment("UnsortedSegmentMin", data, ids, num_segments, name);
}
Output UnsortedSegmentMax(Output data, Output ids, const Ints& num_segments,
                          absl::string_view name) {
  return UnsortedSegment("UnsortedSegmentMax", data, ids, num_segments, name);
}
Output SparseSegmentSum(Output data, Output indices, Output ids, absl::string_view name) {
  return AddOp("SparseSegmentSum", {data, indices, ids}, {}, name);
}
Output SparseSegmentMean(Output data, Output indices, Output ids, absl::string_view name) {
  return AddOp("SparseSegmentMean", {data, indices, ids}, {}, name);
}
Output SparseSegmentSqrtN(Output data, Output indices, Output ids, absl::string_view name) {
  return AddOp("SparseSegmentSqrtN", {data, indices, ids}, {}, name);
}

Output Bincount(Output values, Output size, Output weights, absl::string_view name) {
  return AddOp("Bincount", {values, size, weights}, {}, name);
}
Output HistogramFixedWidth(Output values, Output value_range, const Ints& nbins, DataType dtype,
                           absl::string_view name) {
  if (!values.valid()) return {};
  NameScope scope(values.graph(), name.empty() ? "histogram_fixed_width" : name);
  return AddOp("HistogramFixedWidth", {values, value_range, nbins.In(values.graph(), "nbins")},
               {{"dtype", dtype}}, scope.name());
}

}  // namespace weir
