#include <numeric>
#include <utility>

#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"

// Gathering and scattering by indices. A negative index counts from the end of its dimension; the
// ops of TensorFlow reject it, so indices that are not constants are made positive first.
namespace weir::onnx {

namespace {

// Whether no index is known to be negative: constants of embeddings and reshapes.
bool ArePositive(const Output& indices) {
  const std::optional<Tensor> value = ConstantOf(indices);
  if (!value || !IsInteger(value->dtype())) return false;
  for (int64_t i = 0; i < value->num_elements(); ++i) {
    if (value->IntAt(i) < 0) return false;
  }
  return true;
}

Output IndicesInto(const Output& indices, const Output& x, int axis) {
  return ArePositive(indices) ? indices : PositiveIndices(indices, DimOf(x, axis));
}

absl::Status ImportGather(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", 0), rank));
  return c.Return(Gather(c.in(0), IndicesInto(c.in(1), c.in(0), axis), {.axis = axis}));
}

// The coordinates of each element of `indices`, which replace its own along `axis`: one row each.
Output Coordinates(const Output& indices, const Output& x, int axis, int rank) {
  Graph& graph = indices.graph();
  const Output positive = Cast(IndicesInto(indices, x, axis), DT_INT64);
  const Output shape = ShapeOf(indices);
  Outputs coordinates;
  for (int i = 0; i < rank; ++i) {
    const Output range =
        Range(Const<int64_t>(graph, 0), DimOf(indices, i), Const<int64_t>(graph, 1));
    coordinates.push_back(i == axis ? positive : BroadcastTo(AlongAxis(range, i, rank), shape));
  }
  return Stack(coordinates, rank);
}

absl::Status ImportGatherElements(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", 0), rank));
  return c.Return(GatherNd(c.in(0), Coordinates(c.in(1), c.in(0), axis, rank)));
}

// Makes the rows of indices into the dimensions of x from `first` on positive.
Output PositiveRows(const Output& indices, const Output& x, int first) {
  if (ArePositive(indices)) return indices;
  const Output wide = Cast(indices, DT_INT64);
  const int64_t length = indices.dim(-1);
  const Output sizes = StridedSlice(ShapeOf(x), {Index::Range(first, first + length)});
  return SelectV2(Less(wide, ScalarLike(wide, 0)), Add(wide, sizes), wide);
}

absl::Status ImportGatherND(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int index_rank, c.Rank(1));
  const int64_t batch = c.Int("batch_dims", 0);
  if (index_rank < 1 || c.shape(1).dim(-1) < 0)
    return Unimplemented("the last dimension of the indices must be known; their shape is ",
                         c.shape(1).ToString());
  if (batch < 0 || batch >= index_rank || batch + c.shape(1).dim(-1) > rank)
    return InvalidArgument("batch_dims is ", batch, " for inputs of the shapes ",
                           c.shape(0).ToString(), " and ", c.shape(1).ToString());
  const Output rows = PositiveRows(c.in(1), c.in(0), static_cast<int>(batch));
  if (batch == 0) return c.Return(GatherNd(c.in(0), rows));
  // The coordinates in the batch come before those of the rows.
  const Output wide = Cast(rows, DT_INT64);
  const Output one_each = StridedSlice(wide, {Index::Ellipsis(), Index::Range(0, 1)});
  const Output shape = ShapeOf(one_each);
  Outputs parts;
  for (int i = 0; i < batch; ++i) {
    const Output range =
        Range(Const<int64_t>(c.graph(), 0), DimOf(wide, i), Const<int64_t>(c.graph(), 1));
    parts.push_back(BroadcastTo(AlongAxis(range, i, index_rank), shape));
  }
  parts.push_back(wide);
  return c.Return(GatherNd(c.in(0), Concat(parts, index_rank - 1)));
}

// Scatters rows into x by the reduction that the node names.
absl::StatusOr<Output> Scattered(NodeContext& c, const Output& rows, const Output& updates) {
  const std::string reduction = c.String("reduction", "none");
  const Output x = c.in(0);
  if (reduction == "none") return TensorScatterUpdate(x, rows, updates);
  if (reduction == "add") return TensorScatterAdd(x, rows, updates);
  if (reduction == "max") return TensorScatterMax(x, rows, updates);
  if (reduction == "min") return TensorScatterMin(x, rows, updates);
  if (reduction != "mul")
    return InvalidArgument("reduction is '", reduction, "'; expected none, add, mul, max or min");
  // The products of the updates of each element: segments of equal positions.
  const Output flat = Reshape(x, {-1}), shape = ShapeOf(x);
  const Output strides = Cumprod(shape, 0, {.exclusive = true, .reverse = true});
  const int64_t length = rows.dim(-1);
  if (length != x.shape().rank())
    return Unimplemented("reduction mul is supported for single elements only");
  const Output positions = Reshape(ReduceSum(Multiply(Cast(rows, DT_INT64), strides), -1), {-1});
  const Output products =
      UnsortedSegmentProd(Reshape(updates, {-1}), positions, weir::Size(x, DT_INT64));
  return Reshape(Multiply(flat, products), shape);
}

absl::Status ImportScatterND(NodeContext& c) {
  WEIR_RETURN_IF_ERROR(c.Rank(0).status());
  if (c.shape(1).rank() < 1 || c.shape(1).dim(-1) < 0)
    return Unimplemented("the last dimension of the indices must be known; their shape is ",
                         c.shape(1).ToString());
  WEIR_ASSIGN_OR_RETURN(const Output y, Scattered(c, PositiveRows(c.in(1), c.in(0), 0), c.in(2)));
  return c.Return(y);
}

absl::Status ImportScatterElements(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", 0), rank));
  WEIR_ASSIGN_OR_RETURN(const Output y,
                        Scattered(c, Coordinates(c.in(1), c.in(0), axis, rank), c.in(2)));
  return c.Return(y);
}

// Writes the rows of `update` along an axis of a cache, for each batch from its own index on.
absl::Status ImportTensorScatter(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", -2), rank));
  const std::string mode = c.String("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return InvalidArgument("mode is '", mode, "'; expected linear or circular");
  if (axis == 0) return InvalidArgument("axis is the batch");
  Graph& graph = c.graph();
  const Output update = c.in(1), shape = ShapeOf(update);
  const Output zero = Const<int64_t>(graph, 0), one = Const<int64_t>(graph, 1);
  Outputs coordinates;
  for (int i = 0; i < rank; ++i) {
    Output at = AlongAxis(Range(zero, DimOf(update, i), one), i, rank);
    if (i == axis && c.has(2)) at = Add(at, AlongAxis(Cast(c.in(2), DT_INT64), 0, rank));
    if (i == axis && mode == "circular") at = FloorMod(at, DimOf(c.in(0), axis));
    coordinates.push_back(BroadcastTo(at, shape));
  }
  return c.Return(TensorScatterUpdate(c.in(0), Stack(coordinates, rank), update));
}

constexpr Importer kImporters[] = {
    {"Gather", 7, 2, 2, ImportGather},
    {"GatherElements", 11, 2, 2, ImportGatherElements},
    {"GatherND", 11, 2, 2, ImportGatherND},
    {"Scatter", 9, 3, 3, ImportScatterElements, 10},
    {"ScatterElements", 11, 3, 3, ImportScatterElements},
    {"ScatterND", 11, 3, 3, ImportScatterND},
    {"TensorScatter", 24, 2, 3, ImportTensorScatter},
};

}  // namespace

absl::Span<const Importer> GatherImporters() { return kImporters; }

}  // namespace weir::onnx
