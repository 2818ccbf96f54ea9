#include <algorithm>
#include <numeric>
#include <optional>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/range_size.h"
#include "weir/ops/lib/registry.h"

// Reductions along dimensions.
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

// ---- shape functions

namespace {

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

// ---- op definitions

constexpr char kReducedTypes[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, "
    "qint8, quint8, qint32, "
    "qint16, quint16}";

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
}

// ---- builders

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

}  // namespace weir
