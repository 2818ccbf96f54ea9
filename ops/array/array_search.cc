#include "weir/ops/lib/array.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Positions of elements: OneHot, Where, Unique, TopK.
namespace weir {

// ---- shape functions

namespace {

absl::Status OneHotShape(ShapeContext& c) {
  for (int i = 1; i < 4; ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  Shape out = c.input(0);
  const int64_t axis = c.attr<int64_t>("axis");
  if (axis < -1) return InvalidArgument("axis must be >= -1, but is ", axis);
  if (!out.has_rank()) return absl::OkStatus();
  if (axis > out.rank()) {
    return InvalidArgument("Expected axis to be -1 or between [0, ", out.rank() + 1,
                           ").  But received: ", axis);
  }
  const auto depth = KnownInts(c, 1);
  if (depth.has_value() && (*depth)[0] < 0)
    return InvalidArgument("depth must be non-negative, got: ", (*depth)[0]);
  out.InsertDim(axis < 0 ? out.rank() : static_cast<int>(axis),
                depth.has_value() ? (*depth)[0] : Shape::kUnknown);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status WhereShape(ShapeContext& c) {
  c.set_output(0, Shape({Shape::kUnknown, c.input(0).rank()}));
  return absl::OkStatus();
}

absl::Status UniqueShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape x, c.WithRank(0, 1));
  c.set_output(0, Shape({Shape::kUnknown}));
  c.set_output(1, x);
  if (c.num_outputs() == 3) c.set_output(2, Shape({Shape::kUnknown}));
  return absl::OkStatus();
}

absl::Status UniqueV2Shape(ShapeContext& c) {
  const auto axis = KnownInts(c, 1);
  Shape y = UnknownDims(c.input(0).rank());
  int64_t extent = Shape::kUnknown;
  if (axis.has_value() && c.input(0).has_rank()) {
    if (axis->size() > 1)
      return InvalidArgument("axis does not support input tensors larger than 1 elements");
    if (axis->empty()) {
      if (c.input(0).rank() != 1)
        return InvalidArgument("unique expects a 1D vector when no axis is given");
      extent = c.input(0).dim(0);
    } else {
      WEIR_ASSIGN_OR_RETURN(const int at, CheckedAxis((*axis)[0], c.input(0).rank()));
      y = c.input(0);
      y.set_dim(at, Shape::kUnknown);
      extent = c.input(0).dim(at);
    }
  }
  c.set_output(0, std::move(y));
  c.set_output(1, Shape({extent}));
  if (c.num_outputs() == 3) c.set_output(2, Shape({Shape::kUnknown}));
  return absl::OkStatus();
}

absl::Status ListDiffShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_all_outputs(Shape({Shape::kUnknown}));
  return absl::OkStatus();
}

absl::Status TopShape(ShapeContext& c, int64_t k) {
  WEIR_ASSIGN_OR_RETURN(Shape out, c.WithRankAtLeast(0, 1));
  if (!out.has_rank()) return absl::OkStatus();
  if (k >= 0 && out.dim(-1) >= 0 && out.dim(-1) < k) {
    return InvalidArgument("input must have last dimension >= k = ", k, " but is ", out.dim(-1));
  }
  out.set_dim(out.rank() - 1, k);
  c.set_all_outputs(out);
  return absl::OkStatus();
}

absl::Status TopKShape(ShapeContext& c) { return TopShape(c, c.attr<int64_t>("k")); }

absl::Status TopKV2Shape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  const auto k = KnownInts(c, 1);
  if (k.has_value() && (*k)[0] < 0) {
    return InvalidArgument("Dimension size, given by scalar input 1, must be non-negative but is ",
                           (*k)[0]);
  }
  return TopShape(c, k.has_value() ? (*k)[0] : Shape::kUnknown);
}

absl::Status InTopKShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape predictions, c.WithRank(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape targets, c.WithRank(1, 1));
  WEIR_ASSIGN_OR_RETURN(const int64_t rows, MergeDims(predictions.dim(0), targets.dim(0)));
  c.set_output(0, Shape({rows}));
  return absl::OkStatus();
}

// ---- gradients

// Returns [-1, a] or [a] as a vector.
Output PackAfter(Output a, bool minus_one) {
  if (!a.valid()) return {};
  if (!minus_one) return AddOp("Pack", {Outputs{a}}, {}, "ScatterNd/shape");
  NameScope scope(a.graph(), "stack");
  return AddOp("Pack", {Outputs{Ints(-1).In(a.graph(), "0", a.dtype()), a}}, {}, scope.name());
}

// Returns the last dimension of a shape as int64.
Output LastExtent(Output shape) {
  const Output wide = Cast(shape, DT_INT64);
  return Gather(wide, SubOp(Size(shape), Const(shape.graph(), 1, "sub/y")));
}

// Scatters the gradient to the indices of the selected elements in the flattened input; all other
// elements get zero.
Grads TopKGradient(GradContext& g) {
  Graph& graph = g.graph();
  const Output in_shape = ShapeTensor(g.x(0)), winners_shape = ShapeTensor(g.y(1));
  const Output rows = Reshape(g.y(1), PackAfter(LastExtent(winners_shape), true));
  const Output row_length = LastExtent(in_shape);
  const Output num_rows = Cast(StridedSlice(ShapeTensor(rows), {0}), DT_INT64);
  const Output limit = MulOp(num_rows, row_length);
  const Output start = ConstOf(graph, DT_INT64, 0, "range/start");
  const Output offsets =
      Cast(ExpandDims(RangeOp(graph, start, limit, row_length), -1), rows.dtype());
  const Output flat = Reshape(AddV2Op(rows, offsets), {-1});
  const Output column = ExpandDims(flat, -1), updates = Reshape(g.dy(0), {-1});
  const Output count = Cast(ProdOp(in_shape, Ints({0})), rows.dtype());
  return {Reshape(ScatterNd(column, updates, PackAfter(count, false)), in_shape)};
}

}  // namespace

void AddArraySearchOps(OpRegistry* ops) {
  ops->Add(OpSpec("OneHot")
               .In("indices: TI, depth: int32, on_value: T, off_value: T")
               .Out("output: T")
               .Attr("axis: int = -1")
               .Attr("T: type")
               .Attr("TI: {uint8, int8, int32, int64} = DT_INT64")
               .InferShape(OneHotShape)
               .NotDifferentiable()
               .Doc("Returns a one-hot tensor with a new dimension of size `depth`: on_value at "
                    "the index and off_value elsewhere."));
  ops->Add(
      OpSpec("Where")
          .In("input: T")
          .Out("index: int64")
          .Attr("T: {numbertype, bool} = DT_BOOL")
          .InferShape(WhereShape)
          .Doc(
              "Returns the coordinates of the nonzero elements, one per row, in row-major order."));
  ops->Add(OpSpec("Unique")
               .In("x: T")
               .Out("y: T, idx: out_idx")
               .Attr("T: type")
               .Attr("out_idx: {int32, int64} = DT_INT32")
               .InferShape(UniqueShape)
               .Doc("Returns the distinct elements of a vector in order of first appearance, and "
                    "the position of each input element among them."));
  ops->Add(OpSpec("UniqueWithCounts")
               .In("x: T")
               .Out("y: T, idx: out_idx, count: out_idx")
               .Attr("T: type")
               .Attr("out_idx: {int32, int64} = DT_INT32")
               .InferShape(UniqueShape)
               .Doc("Like Unique, and also returns the count of each distinct element."));
  ops->Add(OpSpec("UniqueV2")
               .In("x: T, axis: Taxis")
               .Out("y: T, idx: out_idx")
               .Attr("T: type")
               .Attr("Taxis: {int32, int64} = DT_INT64")
               .Attr("out_idx: {int32, int64} = DT_INT32")
               .InferShape(UniqueV2Shape)
               .Doc("Returns the distinct slices along an axis in order of first appearance, and "
                    "the position of each input slice among them."));
  ops->Add(OpSpec("UniqueWithCountsV2")
               .In("x: T, axis: Taxis")
               .Out("y: T, idx: out_idx, count: out_idx")
               .Attr("T: type")
               .Attr("Taxis: {int32, int64} = DT_INT64")
               .Attr("out_idx: {int32, int64} = DT_INT32")
               .InferShape(UniqueV2Shape)
               .Doc("Like UniqueV2, and also returns the count of each distinct slice."));
  ops->Add(OpSpec("ListDiff")
               .In("x: T, y: T")
               .Out("out: T, idx: out_idx")
               .Attr("T: type")
               .Attr("out_idx: {int32, int64} = DT_INT32")
               .InferShape(ListDiffShape)
               .Doc("Returns the elements of x that are not in y, and their positions in x."));
  ops->Add(OpSpec("TopK")
               .In("input: T")
               .Out("values: T, indices: int32")
               .Attr("k: int >= 0")
               .Attr("sorted: bool = true")
               .Attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                     "uint32, uint64}")
               .Deprecated(7, "use TopKV2, which takes k as an input")
               .InferShape(TopKShape)
               .Gradient(TopKGradient)
               .Doc("Returns the k largest elements along the last dimension, and their indices."));
  ops->Add(OpSpec("TopKV2")
               .In("input: T, k: Tk")
               .Out("values: T, indices: index_type")
               .Attr("sorted: bool = true")
               .Attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                     "uint32, uint64}")
               .Attr("Tk: {int16, int32, int64} = DT_INT32")
               .Attr("index_type: {int16, int32, int64} = DT_INT32")
               .InferShape(TopKV2Shape)
               .Gradient(TopKGradient)
               .Doc("Returns the k largest elements along the last dimension, and their indices. "
                    "Of equal elements the one with the smaller index comes first."));
  ops->Add(OpSpec("InTopK")
               .In("predictions: float, targets: T")
               .Out("precision: bool")
               .Attr("k: int")
               .Attr("T: {int32, int64} = DT_INT32")
               .InferShape(InTopKShape)
               .Doc("Returns whether the target's score is among the k largest of its row. Ties "
                    "with the k-th count as in."));
  ops->Add(OpSpec("InTopKV2")
               .In("predictions: float, targets: T, k: T")
               .Out("precision: bool")
               .Attr("T: {int32, int64} = DT_INT32")
               .InferShape(InTopKShape)
               .Doc("Returns whether the target's score is among the k largest of its row. Ties "
                    "with the k-th count as in."));
}

// ---- builders

Output OneHot(Output indices, const Ints& depth, const OneHotOptions& options,
              absl::string_view name) {
  if (!indices.valid()) return {};
  Graph& g = indices.graph();
  NodeScope scope(g, name, "one_hot");
  const Output on = OptionValue(g, options.dtype, options.on_value, 1, "on_value");
  const Output off = OptionValue(g, options.dtype, options.off_value, 0, "off_value");
  return AddOp("OneHot", {indices, depth.In(g, "depth"), on, off}, {{"axis", options.axis}},
               scope.name());
}

Output Where(Output condition, absl::string_view name) {
  return AddOp("Where", {condition}, {}, name);
}

UniqueResult Unique(Output x, DataType out_idx, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("Unique", {x}, {{"out_idx", out_idx}}, name), 2);
  return {r[0], r[1], {}};
}

UniqueResult UniqueWithCounts(Output x, DataType out_idx, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("UniqueWithCounts", {x}, {{"out_idx", out_idx}}, name), 3);
  return {r[0], r[1], r[2]};
}

ListDiffResult ListDiff(Output x, Output y, DataType out_idx, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("ListDiff", {x, y}, {{"out_idx", out_idx}}, name), 2);
  return {r[0], r[1]};
}

TopKResult TopK(Output x, const Ints& k, bool sorted, absl::string_view name) {
  const Output values = WithInts("TopKV2", x, "k", k, name, {{"sorted", sorted}});
  return values.valid() ? TopKResult{values, values.node->output(1)} : TopKResult{};
}

Output InTopK(Output predictions, Output targets, const Ints& k, absl::string_view name) {
  if (!predictions.valid() || !targets.valid()) return {};
  NodeScope outer(predictions.graph(), name, "in_top_k");
  NameScope scope(predictions.graph(), "InTopKV2");
  return AddOp("InTopKV2", {predictions, targets, k.In(predictions.graph(), "k", targets.dtype())},
               {}, scope.name());
}

}  // namespace weir
