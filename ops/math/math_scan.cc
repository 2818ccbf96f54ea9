#include <limits>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/range_size.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"

// Indices of extremes, cumulative ops, ranges and counts.
namespace weir {

namespace {

absl::Status ArgShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRankAtMost(1, 1).status());
  const Shape& x = c.input(0);
  if (!x.has_rank()) return absl::OkStatus();
  if (x.rank() <= 1) {
    c.set_output(0, Shape());
    return absl::OkStatus();
  }
  const Tensor* axis = c.input_value(1);
  if (axis == nullptr || axis->num_elements() != 1) {
    c.set_output(0, Shape(std::vector<int64_t>(x.rank() - 1, Shape::kUnknown)));
    return absl::OkStatus();
  }
  const int64_t a = axis->IntAt(0);
  if (a < -x.rank() || a >= x.rank()) {
    return InvalidArgument("Dimension (", a, ") must be in the range [", -x.rank(), ", ", x.rank(),
                           "), where ", x.rank(), " is the number of dimensions in the input.");
  }
  Shape out = x;
  out.RemoveDim(static_cast<int>(a < 0 ? a + x.rank() : a));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status CumulativeShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

absl::Status RangeShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  c.set_output(0, Shape({Shape::kUnknown}));
  const Tensor *start = c.input_value(0), *limit = c.input_value(1), *delta = c.input_value(2);
  if (start == nullptr || limit == nullptr || delta == nullptr) return absl::OkStatus();
  if (start->num_elements() != 1 || limit->num_elements() != 1 || delta->num_elements() != 1)
    return absl::OkStatus();
  absl::StatusOr<int64_t> size = InvalidArgument("Range of ", DataTypeName(start->dtype()));
  DispatchType(start->dtype(), RealNumbers{}, [&]<class T>() {
    size = RangeSize(start->scalar<T>(), limit->scalar<T>(), delta->scalar<T>());
  });
  WEIR_RETURN_IF_ERROR(size.status());
  c.set_output(0, Shape({*size}));
  return absl::OkStatus();
}

absl::Status LinSpaceShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  int64_t n = Shape::kUnknown;
  if (const Tensor* num = c.input_value(2); num != nullptr && num->num_elements() == 1) {
    n = num->IntAt(0);
    if (n <= 0) return InvalidArgument("Requires num > 0: ", n);
  }
  c.set_output(0, Shape({n}));
  return absl::OkStatus();
}

absl::Status BincountShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  int64_t n = Shape::kUnknown;
  if (const Tensor* size = c.input_value(1); size != nullptr && size->num_elements() == 1) {
    n = size->IntAt(0);
    if (n < 0) return InvalidArgument("size (", n, ") must be non-negative");
  }
  c.set_output(0, Shape({n}));
  return absl::OkStatus();
}

absl::Status HistogramShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape range, c.WithRank(1, 1));
  WEIR_RETURN_IF_ERROR(MergeDims(range.dim(0), 2).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  int64_t n = Shape::kUnknown;
  if (const Tensor* bins = c.input_value(2); bins != nullptr && bins->num_elements() == 1) {
    n = bins->IntAt(0);
    if (n <= 0) return InvalidArgument("Requires nbins > 0: ", n);
  }
  c.set_output(0, Shape({n}));
  return absl::OkStatus();
}

Output CumulativeOp(GradContext& g, const char* op, Output x, bool reverse) {
  return AddOp(op, {x, g.x(1)}, {{"exclusive", g.attr<bool>("exclusive")}, {"reverse", reverse}});
}

Grads CumsumGradient(GradContext& g) {
  return {CumulativeOp(g, "Cumsum", g.dy(), !g.attr<bool>("reverse"))};
}

Grads CumprodGradient(GradContext& g) {
  const bool reverse = g.attr<bool>("reverse");
  const Output product = CumulativeOp(g, "Cumprod", g.x(0), reverse);
  const Output sum = CumulativeOp(g, "Cumsum", product * g.dy(), !reverse);
  return {DivNoNan(sum, g.x(0))};
}

// Uses the logarithms of the positive and of the negative part of dy, so that nothing overflows.
Grads CumulativeLogsumexpGradient(GradContext& g) {
  const Output x = g.x(0), y = g.y(), dy = g.dy();
  const bool reverse = g.attr<bool>("reverse");
  const double lowest = dy.dtype() == DT_DOUBLE ? std::numeric_limits<double>::lowest()
                        : dy.dtype() == DT_HALF ? -65504
                                                : std::numeric_limits<float>::lowest();
  const Output positive = Greater(dy, 0), log_positive = SelectV2(positive, Log(dy), lowest);
  const Output negative = Less(dy, 0), log_negative = SelectV2(negative, Log(Negative(dy)), lowest);
  const Output up = Exp(CumulativeOp(g, "CumulativeLogsumexp", log_positive - y, !reverse) + x);
  const Output down = Exp(CumulativeOp(g, "CumulativeLogsumexp", log_negative - y, !reverse) + x);
  return {up - down};
}

OpSpec ScanSpec(absl::string_view op, absl::string_view types) {
  return OpSpec(op)
      .In("x: T, axis: Tidx")
      .Out("out: T")
      .Attr("exclusive: bool = false")
      .Attr("reverse: bool = false")
      .Attr(types)
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Reduction()
      .InferShape(CumulativeShape);
}

}  // namespace

void AddScanOps(OpRegistry* ops) {
  constexpr char kArgTypes[] =
      "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
      "uint64, qint8, quint8, "
      "qint32, qint16, quint16, bool}";
  ops->Add(OpSpec("ArgMax")
               .In("input: T, dimension: Tidx")
               .Out("output: output_type")
               .Attr(kArgTypes)
               .Attr("Tidx: {int16, int32, int64} = DT_INT32")
               .Attr("output_type: {int16, uint16, int32, int64} = DT_INT64")
               .Reduction()
               .InferShape(Ranked("dimension: 0", ArgShape))
               .NotDifferentiable()
               .Doc("Returns the index of the largest element along a dimension, the first one on "
                    "a tie."));
  ops->Add(OpSpec("ArgMin")
               .In("input: T, dimension: Tidx")
               .Out("output: output_type")
               .Attr(kArgTypes)
               .Attr("Tidx: {int32, int64} = DT_INT32")
               .Attr("output_type: {int32, int64} = DT_INT64")
               .Reduction()
               .InferShape(Ranked("dimension: 0", ArgShape))
               .NotDifferentiable()
               .Doc("Returns the index of the smallest element along a dimension, the first one on "
                    "a tie."));
  const char* const all = "T: numbertype";
  ops->Add(ScanSpec("Cumsum", all)
               .Gradient(CumsumGradient)
               .Doc("Computes the cumulative sum along one dimension."));
  ops->Add(ScanSpec("Cumprod", all)
               .Gradient(CumprodGradient)
               .Doc("Computes the cumulative product along one dimension."));
  ops->Add(ScanSpec("CumulativeLogsumexp", kFloatTypes)
               .Gradient(CumulativeLogsumexpGradient)
               .Doc("Computes the cumulative log(sum(exp(x))) along one dimension."));
  ops->Add(
      OpSpec("Range")
          .In("start: Tidx, limit: Tidx, delta: Tidx")
          .Out("output: Tidx")
          .Attr("Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, "
                "uint32, uint64} = DT_INT32")
          .InferShape(RangeShape)
          .NotDifferentiable()
          .Doc("Returns start, start + delta, start + 2 delta, ... up to but excluding limit."));
  ops->Add(OpSpec("LinSpace")
               .In("start: T, stop: T, num: Tidx")
               .Out("output: T")
               .Attr(kFloatTypes)
               .Attr("Tidx: {int32, int64} = DT_INT32")
               .InferShape(LinSpaceShape)
               .NotDifferentiable()
               .Doc("Returns `num` evenly spaced values from start to stop, both included."));
  ops->Add(OpSpec("Bincount")
               .In("arr: int32, size: int32, weights: T")
               .Out("bins: T")
               .Attr("T: {int32, int64, float, double}")
               .InferShape(BincountShape)
               .Doc("Counts the occurrences of 0 ... size - 1 in arr, or sums the weights at them. "
                    "Larger values are dropped."));
  ops->Add(OpSpec("HistogramFixedWidth")
               .In("values: T, value_range: T, nbins: int32")
               .Out("out: dtype")
               .Attr("T: {int32, int64, float, double}")
               .Attr("dtype: {int32, int64} = DT_INT32")
               .InferShape(HistogramShape)
               .Doc("Counts the values in each of nbins equal-width bins of value_range. Values "
                    "outside the range count in the first and last bin."));
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
