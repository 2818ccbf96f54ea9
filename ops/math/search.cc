#include "weir/ops/math/search.h"

#include <algorithm>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

Output LowerBound(Output sorted_inputs, Output values, DataType out_type, absl::string_view name) {
  return AddOp("LowerBound", {sorted_inputs, values}, {{"out_type", out_type}}, name);
}
Output UpperBound(Output sorted_inputs, Output values, DataType out_type, absl::string_view name) {
  return AddOp("UpperBound", {sorted_inputs, values}, {{"out_type", out_type}}, name);
}

Output SearchSorted(Output sorted_sequence, Output values, bool right, DataType out_type,
                    absl::string_view name) {
  if (!sorted_sequence.valid() || !values.valid()) return {};
  Graph& g = values.graph();
  const auto rows = [&](const Output& x) {
    const Output length = StridedSlice(ShapeVector(x), {Index(-1)});
    return Reshape(x, Stack({Const(g, int32_t{-1}), length}, 0));
  };
  const Output sorted = rows(sorted_sequence), value_rows = rows(values);
  const Output found = right ? UpperBound(sorted, value_rows, out_type, name)
                             : LowerBound(sorted, value_rows, out_type, name);
  return Reshape(found, ShapeVector(values));
}

Output NthElement(Output x, const Ints& n, bool reverse, absl::string_view name) {
  if (!x.valid()) return {};
  NameScope scope(x.graph(), name.empty() ? "NthElement" : name);
  return AddOp("NthElement", {x, n.In(x.graph(), "n", DT_INT32)}, {{"reverse", reverse}},
               scope.name());
}
Output UnravelIndex(Output indices, Output dims, absl::string_view name) {
  return AddOp("UnravelIndex", {indices, dims}, {}, name);
}
TopKResult ApproxTopK(Output x, int64_t k, const ApproxTopKOptions& options,
                      absl::string_view name) {
  const Outputs y = AllOutputs(AddNode("ApproxTopK", {x},
                                       {{"k", k},
                                        {"reduction_dimension", options.reduction_dimension},
                                        {"recall_target", options.recall_target},
                                        {"is_max_k", options.is_max_k}},
                                       name),
                               2);
  return {y[0], y[1]};
}
Output DenseBincount(Output x, Output size, Output weights, bool binary, absl::string_view name) {
  return AddOp("DenseBincount", {x, size, weights}, {{"binary_output", binary}}, name);
}

namespace {

// ---- shape functions

absl::Status BoundShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape sorted, c.WithRank(0, 2));
  WEIR_ASSIGN_OR_RETURN(Shape values, c.WithRank(1, 2));
  WEIR_ASSIGN_OR_RETURN(const int64_t rows, MergeDims(sorted.dim(0), values.dim(0)));
  values.set_dim(0, rows);
  c.set_output(0, values);
  return absl::OkStatus();
}

absl::Status NthElementShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRankAtLeast(0, 1));
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  if (const auto n = KnownInts(c, 1); n.has_value() && input.has_rank()) {
    const int64_t columns = input.dim(-1);
    if ((*n)[0] < 0) return InvalidArgument("n must be non-negative but is ", (*n)[0]);
    if (columns >= 0 && columns <= (*n)[0]) {
      return InvalidArgument("Input must have last dimension > n = ", (*n)[0], " but is ", columns);
    }
  }
  if (input.has_rank()) c.set_output(0, input.Sub(0, -1));
  return absl::OkStatus();
}

absl::Status ApproxTopKShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape s, c.WithRankAtLeast(0, 1));
  const float recall = c.attr<float>("recall_target");
  if (!(recall > 0 && recall <= 1)) {
    return InvalidArgument("Invalid recall target: ", recall, ". Valid value range in : [0, 1.0].");
  }
  if (!s.has_rank()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const int axis,
                        CheckedAxis(c.attr<int64_t>("reduction_dimension"), s.rank()));
  const int64_t k = c.attr<int64_t>("k"), columns = s.dim(axis);
  if (columns >= 0 && columns < k) {
    return InvalidArgument("input must have last dimension >= k = ", k, " but was ", columns);
  }
  s.set_dim(axis, k);
  c.set_all_outputs(s);
  return absl::OkStatus();
}

absl::Status UnravelIndexShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRankAtMost(0, 1));
  WEIR_ASSIGN_OR_RETURN(const int64_t dims, VectorLength(c, 1));
  if (indices.rank() == 0) c.set_output(0, Shape({dims}));
  if (indices.rank() == 1) c.set_output(0, Shape({dims, indices.dim(0)}));
  return absl::OkStatus();
}

// Returns the value of a scalar argument `size` if it is known.
absl::StatusOr<int64_t> KnownSize(ShapeContext& c, int i) {
  WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  const auto size = KnownInts(c, i);
  if (!size.has_value()) return Shape::kUnknown;
  if ((*size)[0] < 0) return InvalidArgument("size (", (*size)[0], ") must be non-negative");
  return (*size)[0];
}

absl::Status DenseBincountShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRankAtMost(0, 2));
  WEIR_ASSIGN_OR_RETURN(const int64_t size, KnownSize(c, 1));
  if (!input.has_rank()) return absl::OkStatus();
  c.set_output(0, input.rank() == 2 ? Shape({input.dim(0), size}) : Shape({size}));
  return absl::OkStatus();
}

absl::Status SparseBincountShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t rank, VectorLength(c, 2));
  WEIR_ASSIGN_OR_RETURN(const int64_t size, KnownSize(c, 3));
  if (rank < 0) return absl::OkStatus();
  if (rank == 1) {
    c.set_output(0, Shape({size}));
    return absl::OkStatus();
  }
  const auto dims = KnownInts(c, 2);
  const int64_t rows = dims.has_value() && !dims->empty() ? (*dims)[0] : Shape::kUnknown;
  if (rows < Shape::kUnknown) return InvalidArgument("dense_shape has a negative dimension");
  c.set_output(0, Shape({rows, size}));
  return absl::OkStatus();
}

absl::Status RaggedBincountShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t splits, VectorLength(c, 0));
  WEIR_ASSIGN_OR_RETURN(const int64_t size, KnownSize(c, 2));
  if (splits == 0) return InvalidArgument("Splits must be non-empty");
  c.set_output(0, Shape({splits < 0 ? Shape::kUnknown : splits - 1, size}));
  return absl::OkStatus();
}

// ---- gradients

// Elements that equal the result share its gradient equally.
Grads NthElementGradient(GradContext& g) {
  const Output x = g.x(0);
  const Output chosen = Cast(Equal(ExpandDims(g.y(), -1), x), g.dy().dtype());
  const Output dy = ExpandDims(g.dy(), -1);
  const Output count = ExpandDims(ReduceSum(chosen, -1), -1);
  return {Divide(chosen, count) * dy};
}

// Scatters the gradient of each element of the result to the position that the element came from.
Grads ApproxTopKGradient(GradContext& g) {
  const Output x = g.x(), indices = g.y(1);
  Graph& graph = g.graph();
  const Shape& shape = indices.shape();
  if (!shape.IsFullyDefined() || !x.shape().IsFullyDefined()) {
    graph.Fail(InvalidArgument("The gradient of ", g.node().Label(), " needs a static shape"));
    return {};
  }
  const int rank = shape.rank();
  int64_t axis = g.attr<int64_t>("reduction_dimension");
  if (axis < 0) axis += rank;
  const Shape lifted = shape.Concatenate({1});
  Outputs coordinates;
  for (int d = 0; d < rank; ++d) {
    if (d == axis) {
      coordinates.push_back(Reshape(indices, lifted));
      continue;
    }
    std::vector<int64_t> wide(static_cast<size_t>(rank) + 1, 1);
    wide[static_cast<size_t>(d)] = shape.dim(d);
    coordinates.push_back(BroadcastTo(Reshape(Range(graph, 0, shape.dim(d), 1), wide), lifted));
  }
  const int64_t count = shape.num_elements();
  const Output flat = Reshape(Concat(coordinates, rank), {count, rank});
  return {ScatterNd(flat, Reshape(g.dy(0), {count}), x.shape())};
}

// ---- op definitions

OpSpec BincountSpec(const char* op, const char* in, ShapeFn shape) {
  OpSpec spec(op);
  spec.In(in)
      .Out("output: T")
      .Attr("Tidx: {int32, int64}")
      .Attr("T: {int32, int64, float, double}")
      .Attr("binary_output: bool = false")
      .InferShape(std::move(shape))
      .Doc(
          "Counts the occurrences of 0 ... size - 1 in the input, or in each of its rows. Sums the "
          "weights if there are any. Returns 1 for any positive count if binary_output.");
  return spec;
}

}  // namespace

void AddSearchOps(OpRegistry* ops) {
  for (const char* op : {"LowerBound", "UpperBound"}) {
    ops->Add(OpSpec(op)
                 .In("sorted_inputs: T, values: T")
                 .Out("output: out_type")
                 .Attr("T: type")
                 .Attr("out_type: {int32, int64} = DT_INT32")
                 .InferShape(BoundShape)
                 .NotDifferentiable()
                 .Doc("Returns the insertion index of each value in the sorted row of the same "
                      "index: before equal elements (LowerBound) or after them (UpperBound)."));
  }
  ops->Add(OpSpec("NthElement")
               .In("input: T, n: int32")
               .Out("values: T")
               .Attr("reverse: bool = false")
               .Attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                     "uint32, uint64}")
               .InferShape(NthElementShape)
               .Gradient(NthElementGradient)
               .Doc("Returns the element at position n of the sorted last dimension."));
  ops->Add(OpSpec("ApproxTopK")
               .In("input: T")
               .Out("values: T, indices: int32")
               .Attr("k: int >= 0")
               .Attr("reduction_dimension: int = -1")
               .Attr("recall_target: float = 0.95")
               .Attr("is_max_k: bool = true")
               .Attr("reduction_input_size_override: int = -1")
               .Attr("aggregate_to_topk: bool = true")
               .Attr("T: {half, bfloat16, float}")
               .InferShape(ApproxTopKShape)
               .Gradient(ApproxTopKGradient)
               .Doc("Returns the k largest (or smallest) elements along a dimension, and their "
                    "indices."));
  ops->Add(
      OpSpec("UnravelIndex")
          .In("indices: Tidx, dims: Tidx")
          .Out("output: Tidx")
          .Attr("Tidx: {int32, int64} = DT_INT32")
          .InferShape(UnravelIndexShape)
          .NotDifferentiable()
          .Doc(
              "Returns the coordinates, in columns, of flat indices into an array of shape dims."));
  ops->Add(
      BincountSpec("DenseBincount", "input: Tidx, size: Tidx, weights: T", DenseBincountShape));
  ops->Add(BincountSpec("SparseBincount",
                        "indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T",
                        SparseBincountShape));
  ops->Add(BincountSpec("RaggedBincount", "splits: int64, values: Tidx, size: Tidx, weights: T",
                        RaggedBincountShape));
}

}  // namespace weir
