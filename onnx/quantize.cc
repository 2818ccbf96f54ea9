#include <limits>
#include <utility>

#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/onnx/window.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"

// Quantized numbers: q = round(x / scale) + zero point, within the range of q's type. Products of
// integers are computed in double, which has every sum of 8-bit products that fits into memory.
namespace weir::onnx {

namespace {

struct Range {
  double low, high;
};

absl::StatusOr<Range> RangeOf(DataType dtype) {
  switch (dtype) {
    case DT_UINT8:
      return Range{0, 255};
    case DT_INT8:
      return Range{-128, 127};
    case DT_UINT16:
      return Range{0, 65535};
    case DT_INT16:
      return Range{-32768, 32767};
    default:
      return Unimplemented("quantized numbers of type ", DataTypeName(dtype), " are not supported");
  }
}

// Makes a scale or zero point broadcast to x: a scalar, a vector along the axis, or blocks of the
// axis, each of which has one.
absl::StatusOr<Output> Spread(NodeContext& c, const Output& v, const Output& x) {
  if (!v.shape().has_rank() || !x.shape().has_rank())
    return Unimplemented("the ranks of the input and its scale must be known");
  const int rank = x.shape().rank();
  if (v.shape().rank() == 0 || v.shape().num_elements() == 1)
    return Reshape(v, std::vector<int64_t>());
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", 1), rank));
  if (v.shape().rank() == 1) return AlongAxis(v, axis, rank);
  const int64_t block = c.Int("block_size", 0);
  if (v.shape().rank() != rank || block < 1)
    return InvalidArgument("a scale of the shape ", v.shape().ToString(),
                           " needs a block_size and the rank of the input");
  const Output positions =
      weir::Range(Const<int64_t>(c.graph(), 0), DimOf(x, axis), Const<int64_t>(c.graph(), 1));
  return Gather(v, FloorDiv(positions, Const<int64_t>(c.graph(), block)), {.axis = axis});
}

// Rounds halves to even, and saturates.
absl::StatusOr<Output> Quantized(const Output& scaled, const Output& zero_point, DataType dtype) {
  WEIR_ASSIGN_OR_RETURN(const Range range, RangeOf(dtype));
  Output y = Round(scaled);
  if (zero_point.valid()) y = Add(y, Cast(zero_point, y.dtype()));
  return Cast(ClipByValue(y, ScalarLike(y, range.low), ScalarLike(y, range.high)), dtype);
}

absl::Status ImportQuantizeLinear(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(DataType dtype, c.Type("output_dtype", DT_UINT8));
  if (c.has(2)) dtype = c.dtype(2);
  c.Ignore("saturate");   // of float8 only
  c.Ignore("precision");  // computed in float
  c.Ignore("axis");
  c.Ignore("block_size");
  const Output x = Cast(c.in(0), DT_FLOAT);
  WEIR_ASSIGN_OR_RETURN(const Output scale, Spread(c, c.in(1), x));
  Output zero_point;
  if (c.has(2)) {
    WEIR_ASSIGN_OR_RETURN(zero_point, Spread(c, c.in(2), x));
  }
  WEIR_ASSIGN_OR_RETURN(const Output y,
                        Quantized(RealDiv(x, Cast(scale, DT_FLOAT)), zero_point, dtype));
  return c.Return(y);
}

absl::Status ImportDequantizeLinear(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DataType dtype, c.Type("output_dtype", c.dtype(1)));
  c.Ignore("axis");
  c.Ignore("block_size");
  const Output x = c.in(0);
  if (!IsInteger(x.dtype()))
    return Unimplemented("quantized numbers of type ", DataTypeName(x.dtype()),
                         " are not supported");
  WEIR_ASSIGN_OR_RETURN(const Output scale, Spread(c, c.in(1), x));
  Output wide = Cast(x, DT_FLOAT);
  if (c.has(2)) {
    WEIR_ASSIGN_OR_RETURN(const Output zero_point, Spread(c, c.in(2), x));
    wide = Subtract(wide, Cast(zero_point, DT_FLOAT));
  }
  return c.Return(Cast(Multiply(wide, Cast(scale, DT_FLOAT)), dtype));
}

// A scale and a zero point for the whole tensor, whose range includes zero.
absl::Status ImportDynamicQuantizeLinear(NodeContext& c) {
  const Output x = Cast(c.in(0), DT_FLOAT), zero = ScalarLike(x, 0), top = ScalarLike(x, 255);
  const Output low = Minimum(zero, ReduceMin(x)), high = Maximum(zero, ReduceMax(x));
  const Output scale = RealDiv(Subtract(high, low), top);
  const Output shift = DivNoNan(Subtract(zero, low), scale);
  const Output zero_point = Cast(Round(ClipByValue(shift, zero, top)), DT_UINT8);
  WEIR_ASSIGN_OR_RETURN(const Output y, Quantized(DivNoNan(x, scale), zero_point, DT_UINT8));
  return c.Return({y, scale, zero_point});
}

// ---- products of integers

// Subtracts the zero point, one for all or one for each row of A or column of B.
Output Centered(NodeContext& c, int input, int zero_point, bool is_row) {
  const Output x = Cast(c.in(input), DT_DOUBLE);
  if (!c.has(zero_point)) return x;
  Output z = Cast(c.in(zero_point), DT_DOUBLE);
  if (is_row && z.shape().rank() == 1 && z.dim(0) != 1) z = ExpandDims(z, 1);
  return Subtract(x, z);
}

absl::Status ImportMatMulInteger(NodeContext& c) {
  const Output product = MatMul(Centered(c, 0, 2, true), Centered(c, 1, 3, false));
  return c.Return(Cast(product, DT_INT32));
}

absl::Status ImportQLinearMatMul(NodeContext& c) {
  const Output product = MatMul(Centered(c, 0, 2, true), Centered(c, 3, 5, false));
  Output a = Cast(c.in(1), DT_DOUBLE);
  if (a.shape().rank() == 1 && a.dim(0) != 1) a = ExpandDims(a, 1);
  const Output scale = RealDiv(Multiply(a, Cast(c.in(4), DT_DOUBLE)), Cast(c.in(6), DT_DOUBLE));
  WEIR_ASSIGN_OR_RETURN(const Output y, Quantized(Multiply(product, scale), c.in(7), c.dtype(7)));
  return c.Return(y);
}

// A convolution of two dimensions of integers, in double.
absl::StatusOr<Output> IntegerConv(NodeContext& c, const Output& x, const Output& w, int filter) {
  if (x.shape().rank() != 4 || !c.shape(filter).IsFullyDefined() || c.shape(filter).rank() != 4)
    return Unimplemented(
        "integer convolutions are supported over 2 dimensions, with filters of a "
        "known shape");
  const Shape& shape = c.shape(filter);
  if (const int64_t groups = c.Int("group", 1); groups < 1 || shape.dim(0) % groups != 0)
    return InvalidArgument("a filter of the shape ", shape.ToString(), " cannot have ", groups,
                           " groups");
  WEIR_ASSIGN_OR_RETURN(const Window window, WindowOf(c, {shape.dim(2), shape.dim(3)}));
  const Output padded = PadSpatial(x, window.pads_begin, window.pads_end, ScalarLike(x, 0));
  return Conv2D(padded, Transpose(w, {2, 3, 1, 0}),
                {.strides = WithBatchAndChannels(window.strides),
                 .padding = "VALID",
                 .data_format = "NCHW",
                 .dilations = WithBatchAndChannels(window.dilations)});
}

Output FilterMinusZero(const Output& w, const Output& zero_point) {
  const Output wide = Cast(w, DT_DOUBLE);
  if (!zero_point.valid()) return wide;
  const Output z = Cast(zero_point, DT_DOUBLE);
  const bool is_vector = z.shape().rank() == 1 && z.dim(0) != 1;
  return Subtract(wide, is_vector ? AlongAxis(z, 0, 4) : Reshape(z, std::vector<int64_t>()));
}

absl::Status ImportConvInteger(NodeContext& c) {
  const Output w = FilterMinusZero(c.in(1), c.in(3));
  WEIR_ASSIGN_OR_RETURN(const Output y, IntegerConv(c, Centered(c, 0, 2, false), w, 1));
  return c.Return(Cast(y, DT_INT32));
}

absl::Status ImportQLinearConv(NodeContext& c) {
  const Output w = FilterMinusZero(c.in(3), c.in(5));
  WEIR_ASSIGN_OR_RETURN(Output sum, IntegerConv(c, Centered(c, 0, 2, false), w, 3));
  if (c.has(8)) sum = Add(sum, AlongAxis(Cast(c.in(8), DT_DOUBLE), 1, 4));
  Output scale = RealDiv(Multiply(Cast(c.in(1), DT_DOUBLE), Cast(c.in(4), DT_DOUBLE)),
                         Cast(c.in(6), DT_DOUBLE));
  if (scale.shape().rank() == 1 && scale.dim(0) != 1) scale = AlongAxis(scale, 1, 4);
  WEIR_ASSIGN_OR_RETURN(const Output y, Quantized(Multiply(sum, scale), c.in(7), c.dtype(7)));
  return c.Return(y);
}

constexpr Importer kImporters[] = {
    {"ConvInteger", 10, 2, 4, ImportConvInteger},
    {"DequantizeLinear", 10, 2, 3, ImportDequantizeLinear},
    {"DynamicQuantizeLinear", 11, 1, 1, ImportDynamicQuantizeLinear},
    {"MatMulInteger", 10, 2, 4, ImportMatMulInteger},
    {"QLinearConv", 10, 8, 9, ImportQLinearConv},
    {"QLinearMatMul", 10, 8, 8, ImportQLinearMatMul},
    {"QuantizeLinear", 10, 2, 3, ImportQuantizeLinear},
};

}  // namespace

absl::Span<const Importer> QuantizeImporters() { return kImporters; }

}  // namespace weir::onnx
