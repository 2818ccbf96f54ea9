#include "weir/ops/sparse/sparse.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/sparse/csr_internal.h"
#include "weir/ops/sparse/sparse_internal.h"

// Sparse tensors: conversions, parts, rows, and distances of sequences.
namespace weir {

// ---- shape functions

namespace {

absl::Status ToDenseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, RequestedShape(c, 1));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ReorderShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t rank, SparseRank(c, 0));
  WEIR_ASSIGN_OR_RETURN(const int64_t count, MergeDims(c.input(0).dim(0), c.input(1).dim(0)));
  return SetSparseOutputs(c, count, rank);
}

absl::Status ReshapeSparseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRank(0, 2));
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEIR_ASSIGN_OR_RETURN(const Shape target, c.WithRank(2, 1));
  c.set_output(0, Shape({indices.dim(0), target.dim(0)}));
  c.set_output(1, target);
  return absl::OkStatus();
}

absl::Status ConcatShape(ShapeContext& c) {
  const int n = c.num_inputs() / 3;
  int64_t count = 0, rank = Shape::kUnknown;
  for (int i = 0; i < n; ++i) {
    WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRank(i, 2));
    WEIR_ASSIGN_OR_RETURN(const Shape values, c.WithRank(n + i, 1));
    WEIR_ASSIGN_OR_RETURN(const Shape shape, c.WithRank(2 * n + i, 1));
    WEIR_ASSIGN_OR_RETURN(const int64_t rows, MergeDims(indices.dim(0), values.dim(0)));
    WEIR_ASSIGN_OR_RETURN(count, AddDims(count, rows));
    WEIR_ASSIGN_OR_RETURN(rank, MergeDims(rank, indices.dim(1)));
    WEIR_ASSIGN_OR_RETURN(rank, MergeDims(rank, shape.dim(0)));
  }
  return SetSparseOutputs(c, count, rank);
}

absl::Status SplitSparseShape(ShapeContext& c) {
  const int n = c.num_outputs() / 3;
  const int64_t rank = c.input(3).rank() == 1 ? c.input(3).dim(0) : Shape::kUnknown;
  for (int i = 0; i < n; ++i) {
    c.set_output(i, Shape({Shape::kUnknown, rank}));
    c.set_output(n + i, Shape({Shape::kUnknown}));
    c.set_output(2 * n + i, Shape({rank}));
  }
  return absl::OkStatus();
}

absl::Status SliceSparseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, c.WithRank(2, 1));
  return SetSparseOutputs(c, Shape::kUnknown, shape.dim(0));
}

// One value for each row of the indices at input `kInput`.
template <int kInput>
absl::Status RowsShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRank(kInput, 2));
  c.set_output(0, Shape({indices.dim(0)}));
  return absl::OkStatus();
}

absl::Status FillEmptyRowsShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t rank, SparseRank(c, 0));
  WEIR_RETURN_IF_ERROR(c.WithRank(3, 0).status());
  WEIR_ASSIGN_OR_RETURN(const Shape dense, c.InputAsShape(2));
  c.set_output(0, Shape({Shape::kUnknown, rank}));
  c.set_output(1, Shape({Shape::kUnknown}));
  c.set_output(2, Shape({dense.rank() > 0 ? dense.dim(0) : Shape::kUnknown}));
  c.set_output(3, Shape({c.input(0).dim(0)}));
  return absl::OkStatus();
}

absl::Status EditDistanceShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(SparseRank(c, 0).status());
  WEIR_RETURN_IF_ERROR(SparseRank(c, 3).status());
  WEIR_ASSIGN_OR_RETURN(const Shape hypothesis, c.InputAsShape(2));
  WEIR_ASSIGN_OR_RETURN(const Shape truth, c.InputAsShape(5));
  if (!hypothesis.IsFullyDefined() || !truth.IsFullyDefined()) return absl::OkStatus();
  if (hypothesis.rank() != truth.rank()) {
    return InvalidArgument("Num elements of hypothesis_shape does not match truth_shape: ",
                           hypothesis.rank(), " vs. ", truth.rank());
  }
  Shape out;
  for (int d = 0; d + 1 < truth.rank(); ++d) out.AddDim(std::max(truth.dim(d), hypothesis.dim(d)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// ---- gradients

// Reorders the positions of the elements in the same way as the elements. The inverse of that
// permutation reorders the gradients.
Grads ReorderGradient(GradContext& g) {
  const Output count = StridedSlice(ShapeVector(g.x(0)), {Index(0)});
  const Output numbers = Range(g.graph(), 0, count, 1);
  const SparseTensor unordered = MakeSparseTensor(g.x(0), numbers, g.x(2));
  const Output inverse = InvertPermutation(SparseReorder(unordered).values);
  return {Grad(), Gather(g.dy(1), inverse), Grad()};
}

Grads SliceGradient(GradContext& g) {
  return {Grad(), AddOp("SparseSliceGrad", {g.dy(1), g.x(0), g.x(3), g.y(0)}), Grad(), Grad(),
          Grad()};
}

Grads FillEmptyRowsGradient(GradContext& g) {
  const Outputs r = AllOutputs(AddNode("SparseFillEmptyRowsGrad", {g.y(3), g.dy(1)}), 2);
  return {Grad(), r[0], Grad(), r[1]};
}

Grads ToDenseGradient(GradContext& g) {
  const Output values = GatherNd(g.dy(), g.x(0));
  const Output all = ReduceSum(g.dy());
  const Output rest = all - ReduceSum(values);
  return {ZerosOf(g.x(0)), ZerosOf(g.x(1)), values, rest};
}

void AddPartOps(OpRegistry* ops) {
  ops->Add(OpSpec("SparseConcat")
               .In("indices: N * int64, values: N * T, shapes: N * int64")
               .Out("output_indices: int64, output_values: T, output_shape: int64")
               .Attr("concat_dim: int")
               .Attr("N: int >= 2")
               .Attr("T: type")
               .InferShape(ConcatShape)
               .NotDifferentiable()
               .Doc("Concatenates sparse tensors along a dimension."));
  ops->Add(OpSpec("SparseSplit")
               .In("split_dim: int64, indices: int64, values: T, shape: int64")
               .Out("output_indices: num_split * int64, output_values: num_split * T, "
                    "output_shape: num_split * int64")
               .Attr("num_split: int >= 1")
               .Attr("T: type")
               .InferShape(SplitSparseShape)
               .Doc("Splits a sparse tensor into parts along a dimension. If the extent is not "
                    "divisible, the first parts are longer by one."));
  ops->Add(OpSpec("SparseSlice")
               .In("indices: int64, values: T, shape: int64, start: int64, size: int64")
               .Out("output_indices: int64, output_values: T, output_shape: int64")
               .Attr("T: type")
               .InferShape(SliceSparseShape)
               .Gradient(SliceGradient)
               .Doc("Returns a block of a sparse tensor, clipped to the tensor."));
  ops->Add(OpSpec("SparseSliceGrad")
               .In("backprop_val_grad: T, input_indices: int64, input_start: int64, "
                   "output_indices: int64")
               .Out("val_grad: T")
               .Attr("T: numbertype")
               .InferShape(RowsShape<1>)
               .Doc("Computes the gradient of SparseSlice with respect to the values."));
}

}  // namespace

void AddSparseOps(OpRegistry* ops) {
  AddCsrOps(ops);
  AddCsrProductOps(ops);
  ops->Add(OpSpec("SparseToDense")
               .In("sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, "
                   "default_value: T")
               .Out("dense: T")
               .Attr("validate_indices: bool = true")
               .Attr("T: type")
               .Attr("Tindices: {int32, int64}")
               .InferShape(ToDenseShape)
               .Gradient(ToDenseGradient)
               .Doc("Returns a dense tensor with the given values at the given indices and a "
                    "default value elsewhere."));
  ops->Add(OpSpec("SparseReorder")
               .In("input_indices: int64, input_values: T, input_shape: int64")
               .Out("output_indices: int64, output_values: T")
               .Attr("T: type")
               .InferShape(ReorderShape)
               .Gradient(ReorderGradient)
               .Doc("Sorts the elements by their indices."));
  ops->Add(
      OpSpec("SparseReshape")
          .In("input_indices: int64, input_shape: int64, new_shape: int64")
          .Out("output_indices: int64, output_shape: int64")
          .InferShape(ReshapeSparseShape)
          .Doc("Reshapes a sparse tensor: returns the indices of its elements in the new shape."));
  ops->Add(OpSpec("SparseFillEmptyRows")
               .In("indices: int64, values: T, dense_shape: int64, default_value: T")
               .Out("output_indices: int64, output_values: T, empty_row_indicator: bool, "
                    "reverse_index_map: int64")
               .Attr("T: type")
               .InferShape(FillEmptyRowsShape)
               .Gradient(FillEmptyRowsGradient)
               .Doc("Adds a default value to each row that has no element. Also returns which rows "
                    "those are, and the new positions of the elements."));
  ops->Add(OpSpec("SparseFillEmptyRowsGrad")
               .In("reverse_index_map: int64, grad_values: T")
               .Out("d_values: T, d_default_value: T")
               .Attr("T: type")
               .InferShape(FillEmptyRowsGradShape)
               .Doc("Computes the gradient of SparseFillEmptyRows with respect to the values and "
                    "the default value."));
  ops->Add(OpSpec("EditDistance")
               .In("hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
                   "truth_indices: int64, truth_values: T, truth_shape: int64")
               .Out("output: float")
               .Attr("normalize: bool = true")
               .Attr("T: type")
               .InferShape(EditDistanceShape)
               .NotDifferentiable()
               .Doc("Computes the Levenshtein distances of sequences along the last dimension, "
                    "divided by the length of the true sequences if `normalize`."));
  AddPartOps(ops);
}

// ---- builders

namespace {

Ints WithStaticShape(Node* node, int i, const Output& otherwise) {
  const std::optional<Shape> shape = StaticShape(node, i);
  return shape ? Ints(*shape) : Ints(Identity(otherwise));
}

struct Lists {
  Outputs indices, values, shapes;
};
Lists ListsOf(const std::vector<SparseTensor>& xs) {
  Lists lists;
  for (const SparseTensor& x : xs) {
    lists.indices.push_back(x.indices);
    lists.values.push_back(x.values);
    lists.shapes.push_back(x.dense_shape);
  }
  return lists;
}

}  // namespace

SparseTensor MakeSparseTensor(Output indices, Output values, const Ints& dense_shape) {
  if (!indices.valid() || !values.valid()) return {};
  Graph& g = indices.graph();
  const NameScope scope(g, "SparseTensor");
  return {indices, values, dense_shape.In(g, "dense_shape", DT_INT64)};
}

Output SparseTensorToDense(const SparseTensor& x, Output default_value, bool validate_indices,
                           absl::string_view name) {
  if (!x.values.valid()) return {};
  if (!default_value.valid()) default_value = Zeros(x.values.graph(), Shape(), x.values.dtype());
  return SparseToDense(x.indices, x.dense_shape, x.values, default_value, validate_indices, name);
}

Output SparseToDense(Output indices, Output output_shape, Output values, Output default_value,
                     bool validate_indices, absl::string_view name) {
  return AddOp("SparseToDense", {indices, output_shape, values, default_value},
               {{"validate_indices", validate_indices}}, name);
}

SparseTensor SparseReorder(const SparseTensor& x, absl::string_view name) {
  Node* const node = AddNode("SparseReorder", {x.indices, x.values, x.dense_shape}, {}, name);
  if (node == nullptr) return {};
  return MakeSparseTensor(node->output(0), node->output(1),
                          WithStaticShape(node, 2, x.dense_shape));
}

SparseTensor SparseReshape(const SparseTensor& x, const Ints& shape, absl::string_view name) {
  if (!x.indices.valid()) return {};
  Graph& g = x.indices.graph();
  Output target = shape.tensor();
  if (shape.is_tensor()) {
    target = Cast(target, DT_INT64);
  } else {
    const NameScope scope(g, "Cast");
    target = Cast(shape.In(g, "x"), DT_INT64, scope.name());
  }
  const NameScope scope(g, name.empty() ? "SparseReshape" : name);
  Node* const node = AddNode("SparseReshape", {x.indices, x.dense_shape, target}, {}, scope.name());
  if (node == nullptr) return {};
  const std::optional<Shape> from = StaticShape(node, 1);
  Shape to = GraphValues().value_as_shape(*node, 2);
  Output new_shape = node->output(1);
  if (from && to.has_rank()) {
    int64_t known = 1;
    int unknown = -1, unknowns = 0;
    for (int d = 0; d < to.rank(); ++d) {
      if (to.dim(d) < 0) {
        unknown = d;
        ++unknowns;
      } else {
        known *= to.dim(d);
      }
    }
    if (unknowns == 1 && known > 0) to.set_dim(unknown, from->num_elements() / known);
    if (to.IsFullyDefined())
      new_shape = Const(g, std::vector<int64_t>(to.dims().begin(), to.dims().end()));
  }
  return MakeSparseTensor(node->output(0), Identity(x.values), new_shape);
}

SparseTensor SparseConcat(int64_t axis, const std::vector<SparseTensor>& xs,
                          absl::string_view name) {
  if (xs.size() == 1) return xs[0];
  const Lists lists = ListsOf(xs);
  Node* const node = AddNode("SparseConcat", {lists.indices, lists.values, lists.shapes},
                             {{"concat_dim", axis}}, name);
  if (node == nullptr) return {};
  Ints shape = node->output(2);
  Shape joined = GraphValues().value_as_shape(*node, static_cast<int>(2 * xs.size()));
  for (size_t k = 1; k < xs.size() && joined.IsFullyDefined(); ++k) {
    const Shape more = GraphValues().value_as_shape(*node, static_cast<int>(2 * xs.size() + k));
    const int at = static_cast<int>(axis < 0 ? axis + joined.rank() : axis);
    if (!more.IsFullyDefined() || at < 0 || at >= joined.rank() || more.rank() != joined.rank()) {
      joined = Shape::UnknownRank();
    } else {
      joined.set_dim(at, joined.dim(at) + more.dim(at));
    }
  }
  if (joined.IsFullyDefined()) {
    shape = Const(node->graph(), std::vector<int64_t>(joined.dims().begin(), joined.dims().end()));
  }
  return MakeSparseTensor(node->output(0), node->output(1), shape);
}

std::vector<SparseTensor> SparseSplit(const SparseTensor& x, int64_t num_split, const Ints& axis,
                                      absl::string_view name) {
  const size_t n = static_cast<size_t>(std::max<int64_t>(num_split, 0));
  std::vector<SparseTensor> parts(n);
  if (!x.indices.valid()) return parts;
  const Output split_dim = axis.In(x.indices.graph(), "SparseSplit/split_dim", DT_INT64);
  const Outputs r =
      AllOutputs(AddNode("SparseSplit", {split_dim, x.indices, x.values, x.dense_shape},
                         {{"num_split", num_split}}, name),
                 3 * n);
  for (size_t i = 0; i < n; ++i) parts[i] = MakeSparseTensor(r[i], r[n + i], r[2 * n + i]);
  return parts;
}

SparseTensor SparseSlice(const SparseTensor& x, const Ints& start, const Ints& size,
                         absl::string_view name) {
  if (!x.indices.valid()) return {};
  Graph& g = x.indices.graph();
  const Output from = start.In(g, "Const", DT_INT64), extent = size.In(g, "Const", DT_INT64);
  const NameScope scope(g, name.empty() ? "SparseSlice" : name);
  return WrappedOutputs(
      AddNode("SparseSlice", {x.indices, x.values, x.dense_shape, from, extent}, {}, scope.name()));
}

FilledRows SparseFillEmptyRows(const SparseTensor& x, Output default_value,
                               absl::string_view name) {
  if (!x.indices.valid()) return {};
  const NameScope scope(x.indices.graph(), name.empty() ? "SparseFillEmptyRows" : name);
  const Outputs r = AllOutputs(
      AddNode("SparseFillEmptyRows", {x.indices, x.values, x.dense_shape, default_value}), 4);
  return {MakeSparseTensor(r[0], r[1], x.dense_shape), r[2]};
}

Output EditDistance(const SparseTensor& hypothesis, const SparseTensor& truth, bool normalize,
                    absl::string_view name) {
  return AddOp("EditDistance",
               {hypothesis.indices, hypothesis.values, hypothesis.dense_shape, truth.indices,
                truth.values, truth.dense_shape},
               {{"normalize", normalize}}, name);
}

}  // namespace weir
