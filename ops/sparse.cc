#include "weir/ops/array_internal.h"
#include "weir/ops/math_internal.h"
#include "weir/ops/registry.h"
#include "weir/ops/sparse_internal.h"

// Definitions of the ops that move the elements of sparse tensors.
namespace weir {

absl::StatusOr<int64_t> SparseRank(ShapeContext& c, int first) {
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRank(first, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape values, c.WithRank(first + 1, 1));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, c.WithRank(first + 2, 1));
  WEIR_RETURN_IF_ERROR(MergeDims(indices.dim(0), values.dim(0)).status());
  return MergeDims(indices.dim(1), shape.dim(0));
}

absl::Status SetSparseOutputs(ShapeContext& c, int64_t count, int64_t rank) {
  c.set_output(0, Shape({count, rank}));
  c.set_output(1, Shape({count}));
  if (c.num_outputs() > 2) c.set_output(2, Shape({rank}));
  return absl::OkStatus();
}

absl::Status AnySparseOutputs(ShapeContext& c) {
  return SetSparseOutputs(c, Shape::kUnknown, Shape::kUnknown);
}

absl::Status FillEmptyRowsGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape map, c.WithRank(0, 1));
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, map);
  c.set_output(1, Shape());
  return absl::OkStatus();
}

absl::Status SparsePairShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t a, SparseRank(c, 0));
  WEIR_ASSIGN_OR_RETURN(const int64_t b, SparseRank(c, 3));
  WEIR_ASSIGN_OR_RETURN(const int64_t rank, MergeDims(a, b));
  return SetSparseOutputs(c, Shape::kUnknown, rank);
}

namespace {

// ---- shape functions

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

// ---- op definitions

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

}  // namespace weir
