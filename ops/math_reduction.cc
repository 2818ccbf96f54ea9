#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "weir/ops/math_internal.h"
#include "weir/ops/range_size.h"
#include "weir/ops/ranked_internal.h"
#include "weir/ops/registry.h"

namespace weir {

Output ReducedShape(Output shape, Output axes) {
  Graph& g = shape.graph();
  const Output wide_axes = Cast(axes, DT_INT32);
  const Output rank = Size(shape);
  const Output positive = FloorMod(wide_axes + rank, rank, "mod");
  const Output count = ShapeVector(positive);
  const Output all = Range(g, 0, rank, 1);
  const Output ones = Ones(g, count, shape.dtype());
  return AddOp("DynamicStitch", {Outputs{all, positive}, Outputs{shape, ones}});
}

namespace {

// ---- shape functions

absl::StatusOr<int64_t> CanonicalAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("Invalid reduction dimension ", axis, " for input with ", rank,
                           " dimensions");
  }
  return axis < 0 ? axis + rank : axis;
}

// Returns which dimensions of an input of rank `rank` the constant `axes` selects.
absl::StatusOr<std::vector<bool>> ReducedDims(const Tensor& axes, int rank) {
  std::vector<bool> reduced(rank, false);
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const int64_t axis, CanonicalAxis(axes.IntAt(i), rank));
    reduced[axis] = true;
  }
  return reduced;
}

}  // namespace

absl::StatusOr<Shape> ShapeAfterReduction(const Shape& x, const Tensor& axes, bool keep_dims) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReducedDims(axes, x.rank()));
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[i]) {
      out.AddDim(x.dim(i));
    } else if (keep_dims) {
      out.AddDim(1);
    }
  }
  return out;
}

namespace {

absl::Status ReductionShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRankAtMost(1, 1).status());
  const Shape& x = c.input(0);
  const bool keep = c.attr<bool>("keep_dims");
  const Tensor* axes = c.input_value(1);
  if (!x.has_rank()) return absl::OkStatus();
  if (axes == nullptr) {
    // Only the number of axes is known, which suffices if it equals the rank.
    if (keep) c.set_output(0, Shape(std::vector<int64_t>(x.rank(), Shape::kUnknown)));
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(Shape out, ShapeAfterReduction(x, *axes, keep));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

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

absl::Status CrossShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(MergedShape(c));
  const Shape& shape = c.outputs()[0];
  if (!shape.has_rank()) return absl::OkStatus();
  if (shape.rank() == 0) return InvalidArgument("Shape must be at least rank 1 but is rank 0");
  return MergeDims(shape.dim(-1), 3).status();
}

// ---- gradients

// Returns the constant axes of the reduction in canonical form, if they and the input's rank are
// static.
std::optional<std::vector<int64_t>> StaticAxes(const GradContext& g) {
  const Output axes = g.x(1);
  if (!g.x(0).shape().has_rank() || axes.node->op_name() != "Const") return std::nullopt;
  const Tensor value = axes.node->attr<Tensor>("value");
  std::vector<int64_t> out;
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    const int64_t a = value.IntAt(i), rank = g.x(0).shape().rank();
    if (a < -rank || a >= rank) return std::nullopt;
    out.push_back(a < 0 ? a + rank : a);
  }
  return out;
}

std::optional<Shape> StaticKeepDimsShape(const GradContext& g) {
  const std::optional<std::vector<int64_t>> axes = StaticAxes(g);
  if (!axes || !g.x(0).shape().IsFullyDefined()) return std::nullopt;
  Shape kept = g.x(0).shape();
  for (const int64_t a : *axes) kept.set_dim(static_cast<int>(a), 1);
  return kept;
}

// Returns the shape to which a result or its gradient is reshaped so that it broadcasts against the
// input.
Ints KeepDimsShape(GradContext& g, Output input_shape) {
  if (const std::optional<Shape> kept = StaticKeepDimsShape(g)) return Ints(*kept);
  return ReducedShape(input_shape, g.x(1));
}

Output SumGradientDense(GradContext& g) {
  const Output x = g.x(0), dy = g.dy();
  const std::optional<std::vector<int64_t>> axes = StaticAxes(g);
  if (axes && x.shape().has_rank()) {
    Shape kept = x.shape(), tiles(std::vector<int64_t>(x.shape().rank(), 1));
    std::vector<bool> reduced(x.shape().rank(), false);
    for (const int64_t a : *axes) {
      reduced[a] = true;
      kept.set_dim(static_cast<int>(a), 1);
      tiles.set_dim(static_cast<int>(a), x.dim(static_cast<int>(a)));
    }
    const bool all = std::find(reduced.begin(), reduced.end(), false) == reduced.end();
    if (all) {
      const Output ones = Reshape(dy, kept);
      if (!x.shape().IsFullyDefined()) return Tile(ones, ShapeVector(x));
      return Tile(ones, Ints(x.shape()).In(g.graph(), "Const", DT_INT32));
    }
    if (x.shape().IsFullyDefined()) return Tile(Reshape(dy, kept), tiles);
  }
  const Output shape = ShapeVector(x);
  Output spread = dy;
  if (!g.attr<bool>("keep_dims")) spread = Reshape(dy, ReducedShape(shape, g.x(1)));
  return BroadcastTo(spread, shape);
}

Grads SumGradient(GradContext& g) { return {SumGradientDense(g)}; }

Grads MeanGradient(GradContext& g) {
  const Output sum = SumGradientDense(g), x = g.x(0);
  const std::optional<Shape> kept = StaticKeepDimsShape(g);
  if (kept) {
    const int64_t factor =
        std::max<int64_t>(x.shape().num_elements(), 1) / std::max<int64_t>(kept->num_elements(), 1);
    return {sum / ScalarConst(sum, factor)};
  }
  // Returns the number of elements in each mean.
  const Output shape = ShapeVector(x), rank = Size(shape);
  const Output axes = FloorMod(Cast(g.x(1), DT_INT32) + rank, rank, "mod");
  const Output count = ReduceProd(Gather(shape, axes));
  return {sum / Cast(count, sum.dtype())};
}

// The derivative of a product with respect to one factor is the product of the other factors. It is
// computed as the product of the factors before it times the product of those after it, so that
// zeros are handled. The reduced dimensions are moved to the front and flattened for the two
// cumulative products.
Grads ProdGradient(GradContext& g) {
  const Output x = g.x(0);
  const Output shape = ShapeVector(x);
  const Output axes = Reshape(Cast(g.x(1), DT_INT32), Ints({-1}));
  const Output dy = BroadcastTo(Reshape(g.dy(), KeepDimsShape(g, shape)), shape);
  const Output rank = Rank(x);
  const Output reduced = FloorMod(axes + rank, rank, "mod");
  const Output all = Range(g.graph(), 0, rank, 1);
  const Output other = ListDiff(all, reduced).out;
  const Output perm = Concat({reduced, other}, 0);
  const Output reduced_count = ReduceProd(Gather(shape, reduced));
  const Output other_count = ReduceProd(Gather(shape, other));
  const Output moved = Transpose(x, perm, "transpose");
  const Output moved_shape = ShapeVector(moved);
  const Output rows = Reshape(moved, Stack({reduced_count, other_count}));
  const Output before = Cumprod(rows, 0, {.exclusive = true});
  const Output after = Cumprod(rows, 0, {.exclusive = true, .reverse = true});
  const Output others = Reshape(Conj(before) * Conj(after), moved_shape);
  const Output slope = Transpose(others, InvertPermutation(perm), "transpose");
  return {Reshape(dy * slope, shape)};
}

// Divides the gradient equally among all elements that attain the extreme value.
Grads ExtremeReductionGradient(GradContext& g) {
  const Output x = g.x(0);
  const Ints kept = KeepDimsShape(g, ShapeVector(x));
  const Output y = Reshape(g.y(), kept), dy = Reshape(g.dy(), kept);
  const Output hits = Cast(Equal(y, x), dy.dtype());
  const Output count = Reshape(ReduceSum(hits, g.x(1)), kept);
  return {hits / count * dy};
}

Grads EuclideanNormGradient(GradContext& g) {
  const Output x = g.x(0);
  Output y = g.y(), dy = g.dy();
  if (!g.attr<bool>("keep_dims")) {
    const Ints kept = KeepDimsShape(g, ShapeVector(x));
    y = Reshape(y, kept);
    dy = Reshape(dy, kept);
  }
  return {x / (y / dy)};
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

Grads CrossGradient(GradContext& g) {
  const Output ga = Cross(g.x(1), g.dy());
  return {ga, Cross(g.dy(), g.x(0))};
}

// ---- op definitions

constexpr char kReducedTypes[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, "
    "qint8, quint8, qint32, "
    "qint16, quint16}";
constexpr char kRealTypes[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";

OpSpec ReductionSpec(absl::string_view op, absl::string_view types) {
  return OpSpec(op)
      .In("input: T, reduction_indices: Tidx")
      .Out("output: T")
      .Attr("keep_dims: bool = false")
      .Attr(types)
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Reduction()
      .Rows(RowRule::kReduce)
      .InferShape(ReductionShape);
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

void AddReductionOps(OpRegistry* ops) {
  const char* const all = "T: numbertype";
  ops->Add(ReductionSpec("Sum", all)
               .Gradient(SumGradient)
               .Doc("Computes the sum over some dimensions."));
  ops->Add(ReductionSpec("Mean", all)
               .Gradient(MeanGradient)
               .Doc("Computes the mean over some dimensions."));
  ops->Add(ReductionSpec("Prod", all)
               .Gradient(ProdGradient)
               .Doc("Computes the product over some dimensions."));
  ops->Add(ReductionSpec("Max", kReducedTypes)
               .Gradient(ExtremeReductionGradient)
               .Doc("Computes the maximum over some dimensions."));
  ops->Add(ReductionSpec("Min", kReducedTypes)
               .Gradient(ExtremeReductionGradient)
               .Doc("Computes the minimum over some dimensions."));
  ops->Add(ReductionSpec("EuclideanNorm", all)
               .Gradient(EuclideanNormGradient)
               .Doc("Computes the square root of the sum of squares over some dimensions."));
  for (const auto& [op, doc] : {std::pair<const char*, const char*>{
                                    "All", "Computes the logical AND over some dimensions."},
                                {"Any", "Computes the logical OR over some dimensions."}}) {
    ops->Add(OpSpec(op)
                 .In("input: bool, reduction_indices: Tidx")
                 .Out("output: bool")
                 .Attr("keep_dims: bool = false")
                 .Attr("Tidx: {int32, int64} = DT_INT32")
                 .Reduction()
                 .Rows(RowRule::kReduce)
                 .InferShape(ReductionShape)
                 .NotDifferentiable()
                 .Doc(doc));
  }
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
  ops->Add(OpSpec("Cross")
               .In("a: T, b: T")
               .Out("product: T")
               .Attr(kRealTypes)
               .InferShape(CrossShape)
               .Gradient(CrossGradient)
               .Doc("Computes the cross product of 3-vectors in the last dimension."));
}

}  // namespace weir
