#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"

// Arithmetic, comparisons, logic and bits, element by element. Arguments broadcast as in NumPy,
// since version 7 of the operator set.
namespace weir::onnx {

namespace {

using Unary = Output (*)(Output, absl::string_view);
using Binary = Output (*)(const TensorArg&, const TensorArg&, absl::string_view);
using BinaryOfOutputs = Output (*)(Output, Output, absl::string_view);

template <Unary kMake>
absl::Status ImportUnary(NodeContext& c) {
  return c.Return(kMake(c.in(0), {}));
}

template <Binary kMake>
absl::Status ImportBinary(NodeContext& c) {
  return c.Return(kMake(c.in(0), c.in(1), {}));
}

template <BinaryOfOutputs kMake>
absl::Status ImportLogical(NodeContext& c) {
  return c.Return(kMake(c.in(0), c.in(1), {}));
}

// Integers are divided and rounded toward zero.
absl::Status ImportDiv(NodeContext& c) {
  const bool is_integer = IsInteger(c.dtype(0));
  return c.Return(is_integer ? TruncateDiv(c.in(0), c.in(1)) : RealDiv(c.in(0), c.in(1)));
}

// The remainder has the sign of the divisor, as Python's %, or with fmod that of the dividend.
absl::Status ImportMod(NodeContext& c) {
  const bool is_c = c.Int("fmod", 0) != 0;
  return c.Return(is_c ? TruncateMod(c.in(0), c.in(1)) : FloorMod(c.in(0), c.in(1)));
}

// The exponent may have another type: the result has that of the base.
absl::Status ImportPow(NodeContext& c) {
  const Output base = c.in(0), exponent = c.in(1);
  if (base.dtype() == exponent.dtype()) return c.Return(Pow(base, exponent));
  if (IsInteger(base.dtype()) && IsFloating(exponent.dtype())) {
    const Output power = Pow(Cast(base, DT_DOUBLE), Cast(exponent, DT_DOUBLE));
    return c.Return(Cast(power, base.dtype()));
  }
  return c.Return(Pow(base, Cast(exponent, base.dtype())));
}

// Max, Min, Sum and Mean of any number of tensors.
template <Binary kMake>
absl::Status ImportVariadic(NodeContext& c) {
  Output result = c.in(0);
  for (int i = 1; i < c.num_inputs(); ++i) result = kMake(result, c.in(i), {});
  if (c.op() == "Mean" && c.num_inputs() > 1)
    result = RealDiv(result, ScalarLike(result, c.num_inputs()));
  return c.Return(result);
}

absl::Status ImportClip(NodeContext& c) {
  Output x = c.in(0);
  const bool has_attributes = c.version() < 11;
  const bool has_low = has_attributes ? c.HasAttr("min") : c.has(1);
  const bool has_high = has_attributes ? c.HasAttr("max") : c.has(2);
  if (has_low) x = Maximum(x, has_attributes ? ScalarLike(x, c.Float("min", 0)) : c.in(1));
  if (has_high) x = Minimum(x, has_attributes ? ScalarLike(x, c.Float("max", 0)) : c.in(2));
  return c.Return(x);
}

// A shift by the width or more, or by a negative number, moves all bits out: only the signs stay,
// of negative numbers that are shifted right.
absl::Status ImportBitShift(NodeContext& c) {
  const std::string direction = c.String("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return InvalidArgument("direction is '", direction, "'; expected LEFT or RIGHT");
  const Output x = c.in(0), count = c.in(1), zero = ScalarLike(x, 0);
  if (!x.valid() || !count.valid()) return absl::OkStatus();  // the graph has the error
  const Output last = ScalarLike(x, 8.0 * static_cast<double>(ElementSize(x.dtype())) - 1);
  const Output is_inside = LogicalAnd(GreaterEqual(count, zero), LessEqual(count, last));
  const bool is_left = direction == "LEFT";
  const Output shifted = is_left ? LeftShift(x, SelectV2(is_inside, count, zero))
                                 : RightShift(x, SelectV2(is_inside, count, last));
  const Output signs = is_left ? zero : SelectV2(Less(x, zero), shifted, zero);
  return c.Return(SelectV2(is_inside, shifted, signs));
}

absl::Status ImportIsInf(NodeContext& c) {
  const Output x = IsFloating(c.dtype(0)) ? c.in(0) : Cast(c.in(0), DT_FLOAT);
  const bool negative = c.Int("detect_negative", 1) != 0;
  const bool positive = c.Int("detect_positive", 1) != 0;
  Output is_infinite = IsInf(x);
  const Output zero = ScalarLike(x, 0);
  if (!negative) is_infinite = LogicalAnd(is_infinite, Greater(x, zero));
  if (!positive) is_infinite = LogicalAnd(is_infinite, Less(x, zero));
  return c.Return(is_infinite);
}

absl::Status ImportIsNaN(NodeContext& c) {
  return c.Return(IsNan(IsFloating(c.dtype(0)) ? c.in(0) : Cast(c.in(0), DT_FLOAT)));
}

absl::Status ImportXor(NodeContext& c) { return c.Return(NotEqual(c.in(0), c.in(1))); }

absl::Status ImportEqual(NodeContext& c) { return c.Return(Equal(c.in(0), c.in(1))); }

absl::Status ImportWhere(NodeContext& c) { return c.Return(SelectV2(c.in(0), c.in(1), c.in(2))); }

// Integers have no halves, and are themselves.
template <Unary kMake>
absl::Status ImportRounding(NodeContext& c) {
  return c.Return(IsInteger(c.dtype(0)) ? c.in(0) : kMake(c.in(0), {}));
}

constexpr Importer kImporters[] = {
    {"Abs", 7, 1, 1, ImportUnary<Abs>},
    {"Acos", 7, 1, 1, ImportUnary<Acos>},
    {"Acosh", 9, 1, 1, ImportUnary<Acosh>},
    {"Add", 7, 2, 2, ImportBinary<Add>},
    {"And", 7, 2, 2, ImportLogical<LogicalAnd>},
    {"Asin", 7, 1, 1, ImportUnary<Asin>},
    {"Asinh", 9, 1, 1, ImportUnary<Asinh>},
    {"Atan", 7, 1, 1, ImportUnary<Atan>},
    {"Atanh", 9, 1, 1, ImportUnary<Atanh>},
    {"BitShift", 11, 2, 2, ImportBitShift},
    {"BitwiseAnd", 18, 2, 2, ImportBinary<BitwiseAnd>},
    {"BitwiseNot", 18, 1, 1, ImportUnary<Invert>},
    {"BitwiseOr", 18, 2, 2, ImportBinary<BitwiseOr>},
    {"BitwiseXor", 18, 2, 2, ImportBinary<BitwiseXor>},
    {"Ceil", 7, 1, 1, ImportUnary<Ceil>},
    {"Clip", 7, 1, 3, ImportClip},
    {"Cos", 7, 1, 1, ImportUnary<Cos>},
    {"Cosh", 9, 1, 1, ImportUnary<Cosh>},
    {"Div", 7, 2, 2, ImportDiv},
    {"Equal", 7, 2, 2, ImportEqual},
    {"Erf", 9, 1, 1, ImportUnary<Erf>},
    {"Exp", 7, 1, 1, ImportUnary<Exp>},
    {"Floor", 7, 1, 1, ImportUnary<Floor>},
    {"Greater", 7, 2, 2, ImportBinary<Greater>},
    {"GreaterOrEqual", 12, 2, 2, ImportBinary<GreaterEqual>},
    {"IsInf", 10, 1, 1, ImportIsInf},
    {"IsNaN", 9, 1, 1, ImportIsNaN},
    {"Less", 7, 2, 2, ImportBinary<Less>},
    {"LessOrEqual", 12, 2, 2, ImportBinary<LessEqual>},
    {"Log", 7, 1, 1, ImportUnary<Log>},
    {"Max", 7, 1, kAnyNumber, ImportVariadic<Maximum>},
    {"Mean", 7, 1, kAnyNumber, ImportVariadic<Add>},
    {"Min", 7, 1, kAnyNumber, ImportVariadic<Minimum>},
    {"Mod", 10, 2, 2, ImportMod},
    {"Mul", 7, 2, 2, ImportBinary<Multiply>},
    {"Neg", 7, 1, 1, ImportUnary<Negative>},
    {"Not", 7, 1, 1, ImportUnary<LogicalNot>},
    {"Or", 7, 2, 2, ImportLogical<LogicalOr>},
    {"Pow", 7, 2, 2, ImportPow},
    {"Reciprocal", 7, 1, 1, ImportUnary<Reciprocal>},
    {"Round", 11, 1, 1, ImportRounding<Round>},
    {"Sign", 9, 1, 1, ImportUnary<Sign>},
    {"Sin", 7, 1, 1, ImportUnary<Sin>},
    {"Sinh", 9, 1, 1, ImportUnary<Sinh>},
    {"Sqrt", 7, 1, 1, ImportUnary<Sqrt>},
    {"Sub", 7, 2, 2, ImportBinary<Subtract>},
    {"Sum", 7, 1, kAnyNumber, ImportVariadic<Add>},
    {"Tan", 7, 1, 1, ImportUnary<Tan>},
    {"Tanh", 7, 1, 1, ImportUnary<Tanh>},
    {"Where", 9, 3, 3, ImportWhere},
    {"Xor", 7, 2, 2, ImportXor},
};

}  // namespace

absl::Span<const Importer> ElementwiseImporters() { return kImporters; }

}  // namespace weir::onnx
