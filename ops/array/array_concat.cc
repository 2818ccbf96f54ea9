#include "weir/ops/lib/array.h"

#include <algorithm>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/shape_values.h"

// Concatenation and its inverse: Concat, Split, Pack, Unpack.
namespace weir {

// ---- shape functions

namespace {

absl::Status ConcatShape(ShapeContext& c) { return ConcatenatedShape(c, 1, c.num_inputs(), 0); }
absl::Status ConcatV2Shape(ShapeContext& c) {
  return ConcatenatedShape(c, 0, c.num_inputs() - 1, c.num_inputs() - 1);
}

absl::Status ConcatOffsetShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN_OR_RETURN(Shape shape, c.WithRank(i, 1));
    c.set_output(i - 1, std::move(shape));
  }
  return absl::OkStatus();
}

absl::Status SplitShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  WEIR_ASSIGN_OR_RETURN(Shape part, c.WithRankAtLeast(1, 1));
  const auto axis = KnownInts(c, 0);
  if (!part.has_rank()) return absl::OkStatus();
  if (!axis.has_value()) {
    c.set_all_outputs(UnknownDims(part.rank()));
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(const int dim, CheckedAxis((*axis)[0], part.rank()));
  const int64_t num = c.attr<int64_t>("num_split"), extent = part.dim(dim);
  if (extent >= 0 && extent % num != 0) {
    return InvalidArgument("Dimension size must be evenly divisible by ", num, " but is ", extent);
  }
  part.set_dim(dim, extent < 0 ? extent : extent / num);
  c.set_all_outputs(part);
  return absl::OkStatus();
}

absl::Status SplitVShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape sizes_shape, c.WithRank(1, 1));
  if (sizes_shape.dim(0) >= 0 && sizes_shape.dim(0) != c.num_outputs()) {
    return InvalidArgument("Length of size_splits should be equal to num_outputs, but is ",
                           sizes_shape.dim(0), " and not ", c.num_outputs());
  }
  WEIR_ASSIGN_OR_RETURN(const Shape in, c.WithRankAtLeast(0, 1));
  const auto axis = KnownInts(c, 2);
  if (axis.has_value() && c.input(2).rank() > 0) {
    return InvalidArgument("Input must be scalar but has rank ", c.input(2).rank());
  }
  if (!in.has_rank()) return absl::OkStatus();
  if (!axis.has_value() || axis->size() != 1) {
    c.set_all_outputs(UnknownDims(in.rank()));
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(const int dim, CheckedAxis((*axis)[0], in.rank()));
  auto sizes = KnownInts(c, 1);
  if (!sizes.has_value()) sizes.emplace(c.num_outputs(), Shape::kUnknown);
  int64_t rest = in.dim(dim);
  int unknown = 0;
  for (int64_t s : *sizes) {
    if (s < 0) ++unknown;
    if (rest >= 0 && s >= 0) rest = std::max<int64_t>(rest - s, 0);
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    Shape part = in;
    const int64_t s = (*sizes)[i];
    part.set_dim(dim, s >= 0 ? s : unknown == 1 ? rest : Shape::kUnknown);
    c.set_output(i, std::move(part));
  }
  return absl::OkStatus();
}

absl::Status PackShape(ShapeContext& c) {
  Shape merged = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    absl::StatusOr<Shape> next = merged.MergeWith(c.input(i));
    if (!next.ok()) {
      return InvalidArgument("Shapes must be equal rank and extents: input 0 has ",
                             merged.ToString(), ", input ", i, " has ", c.input(i).ToString());
    }
    merged = *std::move(next);
  }
  if (!merged.has_rank()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const int axis, CheckedAxis(c.attr<int64_t>("axis"), merged.rank() + 1));
  merged.InsertDim(axis, c.num_inputs());
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

absl::Status UnpackShape(ShapeContext& c) {
  Shape part = c.input(0);
  if (!part.has_rank()) return absl::OkStatus();
  WEIR_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1).status());
  WEIR_ASSIGN_OR_RETURN(const int axis, CheckedAxis(c.attr<int64_t>("axis"), part.rank()));
  const int64_t num = c.attr<int64_t>("num");
  if (part.dim(axis) >= 0 && part.dim(axis) != num) {
    return InvalidArgument("Dimension must be ", num, " but is ", part.dim(axis), ": axis ", axis,
                           " of shape ", part.ToString());
  }
  part.RemoveDim(axis);
  c.set_all_outputs(part);
  return absl::OkStatus();
}

// ---- gradients

// Returns the shapes of the concatenated tensors, as constants if all are known.
Outputs PartShapes(const Outputs& values) {
  Outputs sizes;
  for (const Output& x : values) {
    sizes.push_back(ShapeTensor(x));
    if (!x.shape().IsFullyDefined()) return ShapeN(values);
  }
  return sizes;
}

Grads ConcatDenseGradients(GradContext& g, const Outputs& values, Output axis) {
  constexpr size_t kManyParts = 16;
  const Outputs sizes = PartShapes(values);
  Grads out;
  if (sizes.size() > kManyParts) {
    Graph& graph = g.graph();
    const Output stacked = Stack(sizes, 1);
    NameScope scope(graph, "Slice");
    Output begin;
    {
      NameScope inner(graph, "begin");
      begin = AddOp("Pack", {Outputs{axis, Ints(0).In(graph, "1")}}, {}, inner.name());
    }
    const Output row =
        AddOp("Slice", {stacked, begin, Ints({1, -1}).In(graph, "size")}, {}, scope.name());
    const Output lengths = Squeeze(row);
    Node* split = AddNode("SplitV", {g.dy(), lengths, axis},
                          {{"num_split", static_cast<int64_t>(sizes.size())}}, "split");
    for (const Output& part : AllOutputs(split, sizes.size())) out.push_back(part);
    return out;
  }
  const Outputs offsets = ConcatOffset(axis, sizes);
  for (size_t i = 0; i < sizes.size(); ++i) out.push_back(Slice(g.dy(), offsets[i], sizes[i]));
  return out;
}

// Distributes the rows of the concatenated gradient (IndexedSlices) to the inputs. Along dimension
// 0 an input gets the rows whose indices fall in its range; along any other dimension every input
// gets its columns of all rows.
Grads ConcatSlicesGradients(GradContext& g, const Outputs& values, Output axis, bool along_rows) {
  const IndexedSlices& dy = g.dy_grad().slices();
  Graph& graph = g.graph();
  const DataType type = dy.indices.dtype();
  Outputs sizes;
  for (const Output& x : values) sizes.push_back(ShapeTensor(x));
  Grads out;
  Output start = along_rows ? ConstOf(graph, type, 0, "Const") : Output();
  Output column;
  if (!along_rows) {
    column = AddOp("ZerosLike", {sizes[0]});
  }
  for (const Output& size : sizes) {
    if (!along_rows) {
      const Output rest = Slice(size, {1}, {-1});
      const Output all = Ints({-1}).In(graph, "concat/values_0");
      const Output part = Slice(dy.values, column, Concat({all, rest}, 0));
      out.push_back(IndexedSlices{part, dy.indices, size});
      const Output depth = ShapeTensor(size);
      const Output mask = OneHot(axis, StridedSlice(depth, {0}), {.dtype = DT_INT32});
      column = AddV2Op(column, MulOp(size, mask), "Add");
      continue;
    }
    const Output end = AddV2Op(start, Cast(Gather(size, axis), type));
    const Output inside = AddOp("LogicalAnd", {AddOp("GreaterEqual", {dy.indices, start}),
                                               AddOp("Less", {dy.indices, end})});
    const Output chosen = Squeeze(Where(inside), {1});
    const Output indices = SubOp(Gather(dy.indices, chosen), start);
    out.push_back(IndexedSlices{Gather(dy.values, chosen), indices, size});
    start = end;
  }
  return out;
}

Grads ConcatAnyGradient(GradContext& g, int first, int last, int axis_input) {
  Grads parts;
  if (last - first == 1) {
    parts = {g.dy_grad()};
  } else {
    Outputs values;
    for (int i = first; i < last; ++i) values.push_back(g.x(i));
    const Output axis = ModOp(g.x(axis_input), Rank(values[0]));
    const Node* axis_node = g.x(axis_input).node;
    const bool is_static =
        axis_node->op_name() == "Const" && axis_node->attr<Tensor>("value").num_elements() == 1;
    if (g.dy_grad().is_slices() && is_static && values[0].shape().has_rank()) {
      const int64_t at = axis_node->attr<Tensor>("value").IntAt(0);
      parts = ConcatSlicesGradients(g, values, axis, at == 0 || at == -values[0].shape().rank());
    } else {
      parts = ConcatDenseGradients(g, values, axis);
    }
  }
  if (axis_input < first) parts.insert(parts.begin(), Grad());
  return parts;
}

Grads ConcatGradient(GradContext& g) { return ConcatAnyGradient(g, 1, g.num_inputs(), 0); }
Grads ConcatV2Gradient(GradContext& g) {
  return ConcatAnyGradient(g, 0, g.num_inputs() - 1, g.num_inputs() - 1);
}

Outputs DenseGrads(GradContext& g) {
  Outputs dys;
  for (int i = 0; i < g.node().num_outputs(); ++i) dys.push_back(g.dy(i));
  return dys;
}

Grads SplitGradient(GradContext& g) { return {Grad(), Concat(DenseGrads(g), g.x(0))}; }
Grads SplitVGradient(GradContext& g) { return {Concat(DenseGrads(g), g.x(2))}; }
Grads UnpackGradient(GradContext& g) { return {Stack(DenseGrads(g), g.attr<int64_t>("axis"))}; }

Grads PackGradient(GradContext& g) {
  Grads out;
  for (const Output& part : Unstack(g.dy(), g.attr<int64_t>("axis"), g.num_inputs()))
    out.push_back(part);
  return out;
}

}  // namespace

void AddArrayConcatOps(OpRegistry* ops) {
  ops->Add(OpSpec("Concat")
               .In("concat_dim: int32, values: N * T")
               .Out("output: T")
               .Attr("N: int >= 2")
               .Attr("T: type")
               .Moves(Movement::kRearrange)
               .InferShape(ConcatShape)
               .Gradient(ConcatGradient)
               .Doc("Concatenates tensors along a dimension."));
  ops->Add(OpSpec("ConcatV2")
               .In("values: N * T, axis: Tidx")
               .Out("output: T")
               .Attr("N: int >= 2")
               .Attr("T: type")
               .Attr("Tidx: {int32, int64} = DT_INT32")
               .Moves(Movement::kRearrange)
               .Rows(RowRule::kConcat)
               .ShapeValue(ConcatShapeValue)
               .InferShape(ConcatV2Shape)
               .Gradient(ConcatV2Gradient)
               .Doc("Concatenates tensors along a dimension."));
  ops->Add(OpSpec("ConcatOffset")
               .In("concat_dim: int32, shape: N * shape_type")
               .Out("offset: N * shape_type")
               .Attr("N: int >= 2")
               .Attr("shape_type: {int32, int64} = DT_INT32")
               .InferShape(ConcatOffsetShape)
               .NotDifferentiable()
               .Doc("Returns the offset of each tensor of these shapes in their concatenation."));
  ops->Add(OpSpec("Split")
               .In("split_dim: int32, value: T")
               .Out("output: num_split * T")
               .Attr("num_split: int >= 1")
               .Attr("T: type")
               .Moves(Movement::kRearrange)
               .InferShape(SplitShape)
               .Gradient(SplitGradient)
               .Doc("Splits a tensor into equal parts along a dimension."));
  ops->Add(OpSpec("SplitV")
               .In("value: T, size_splits: Tlen, split_dim: int32")
               .Out("output: num_split * T")
               .Attr("num_split: int >= 1")
               .Attr("T: type")
               .Attr("Tlen: {int8, int32, int64} = DT_INT64")
               .Moves(Movement::kRearrange)
               .InferShape(SplitVShape)
               .Gradient(SplitVGradient)
               .Doc("Splits a tensor into parts of given sizes along a dimension. One size may be "
                    "-1, which selects the rest."));
  ops->Add(OpSpec("Pack")
               .In("values: N * T")
               .Out("output: T")
               .Attr("N: int >= 1")
               .Attr("T: type")
               .Attr("axis: int = 0")
               .Moves(Movement::kRearrange)
               .ShapeValue(PackedShapeValue)
               .InferShape(PackShape)
               .Gradient(PackGradient)
               .Doc("Stacks tensors of the same shape along a new dimension."));
  ops->Add(
      OpSpec("Unpack")
          .In("value: T")
          .Out("output: num * T")
          .Attr("num: int >= 0")
          .Attr("T: type")
          .Attr("axis: int = 0")
          .Moves(Movement::kRearrange)
          .InferShape(UnpackShape)
          .Gradient(UnpackGradient)
          .Doc("Unstacks a tensor along a dimension: returns its slices without that dimension."));
}

// ---- builders

Output Concat(const Outputs& xs, const Ints& axis, absl::string_view name) {
  if (xs.empty() || !xs[0].valid()) return {};
  Graph& g = xs[0].graph();
  NodeScope scope(g, name, "concat");
  if (xs.size() == 1) {
    axis.In(g, "concat_dim");
    return Identity(xs[0], name.empty() ? "concat" : name);
  }
  return AddOp("ConcatV2", {xs, axis.In(g, "axis")}, {}, scope.name());
}

Outputs ConcatOffset(Output axis, const Outputs& shapes, absl::string_view name) {
  return AllOutputs(AddNode("ConcatOffset", {axis, shapes}, {}, name), shapes.size());
}

namespace {

// The maximum number of tensors in a list that a node returns.
constexpr int64_t kMostParts = int64_t{1} << 20;

// Returns false and fails the graph with INVALID_ARGUMENT if `num` exceeds kMostParts.
bool CheckParts(Graph& graph, absl::string_view builder, int64_t num) {
  if (num <= kMostParts) return true;
  graph.Fail(InvalidArgument(builder, ": ", num, " parts exceed the maximum of ", kMostParts,
                             " that there may be"));
  return false;
}

}  // namespace

Outputs Split(Output x, int64_t num, const Ints& axis, absl::string_view name) {
  const int64_t count = std::clamp<int64_t>(num, 0, kMostParts);
  if (!x.valid() || !CheckParts(x.graph(), "Split", num)) return Outputs(count);
  NodeScope scope(x.graph(), name, "split");
  Node* n =
      AddNode("Split", {axis.In(x.graph(), "split_dim"), x}, {{"num_split", num}}, scope.name());
  return AllOutputs(n, count);
}

Outputs SplitV(Output x, const Ints& sizes, const Ints& axis, absl::string_view name) {
  int64_t promised = 1;  // if the number of sizes is unknown
  if (!sizes.is_tensor()) {
    promised = static_cast<int64_t>(sizes.values().size());
  } else if (sizes.tensor().shape().rank() == 1 && sizes.tensor().dim(0) >= 0) {
    promised = sizes.tensor().dim(0);
  }
  if (!x.valid()) return Outputs(promised);
  Graph& g = x.graph();
  const Output lengths = sizes.In(g, "Const");
  if (!lengths.valid()) return Outputs(promised);
  const int64_t count = lengths.shape().rank() == 1 ? lengths.dim(0) : -1;
  if (count < 0) {
    g.Fail(InvalidArgument(
        "SplitV: the number of parts must be known when the graph is built, but the sizes are ",
        lengths.name(), " of shape ", lengths.shape().ToString()));
    return Outputs(promised);
  }
  NodeScope scope(g, name, "split");
  Node* n = AddNode("SplitV", {x, lengths, axis.In(g, "split_dim")}, {{"num_split", count}},
                    scope.name());
  return AllOutputs(n, count);
}

Output Stack(const Outputs& xs, int64_t axis, absl::string_view name) {
  return AddOp("Pack", {xs}, {{"axis", axis}}, name.empty() ? "stack" : name);
}

Outputs Unstack(Output x, int64_t axis, int64_t num, absl::string_view name) {
  if (!x.valid()) return Outputs(num < 0 ? 1 : std::min(num, kMostParts));
  if (num < 0 && x.shape().has_rank()) {
    absl::StatusOr<int> dim = CheckedAxis(axis, x.shape().rank());
    if (dim.ok()) num = x.dim(*dim);
  }
  if (num < 0) {
    x.graph().Fail(InvalidArgument("Unstack: cannot infer the number of parts from shape ",
                                   x.shape().ToString(), " along axis ", axis, "; give `num`"));
    return Outputs(1);
  }
  if (!CheckParts(x.graph(), "Unstack", num)) return Outputs(kMostParts);
  Node* n = AddNode("Unpack", {x}, {{"num", num}, {"axis", axis}}, name.empty() ? "unstack" : name);
  return AllOutputs(n, num);
}

}  // namespace weir
