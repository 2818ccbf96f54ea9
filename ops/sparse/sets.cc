#include "weir/ops/sparse/sets.h"

#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/sparse/sparse_internal.h"

namespace weir {

namespace {

SparseTensor DenseOperation(absl::string_view operation, Output a, Output b,
                            absl::string_view name) {
  return SparseOutputs(
      AddNode("DenseToDenseSetOperation", {a, b}, {{"set_operation", operation}}, name));
}

SparseTensor SparseOperation(absl::string_view operation, const SparseTensor& a,
                             const SparseTensor& b, absl::string_view name) {
  return SparseOutputs(
      AddNode("SparseToSparseSetOperation",
              {a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape},
              {{"set_operation", operation}}, name));
}

absl::string_view Difference(bool a_minus_b) { return a_minus_b ? "a-b" : "b-a"; }

// ---- shape functions

absl::Status DenseToDenseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape a, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape b, c.WithRankAtLeast(1, 2));
  if (a.has_rank() && b.has_rank()) {
    WEIR_RETURN_IF_ERROR(a.Sub(0, -1).MergeWith(b.Sub(0, -1)).status());
  }
  return SetSparseOutputs(c, Shape::kUnknown,
                          a.has_rank()   ? a.rank()
                          : b.has_rank() ? b.rank()
                                         : Shape::kUnknown);
}

absl::Status DenseToSparseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape a, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN_OR_RETURN(int64_t rank, SparseRank(c, 1));
  WEIR_ASSIGN_OR_RETURN(rank, MergeDims(rank, a.has_rank() ? a.rank() : Shape::kUnknown));
  return SetSparseOutputs(c, Shape::kUnknown, rank);
}

absl::Status SetSizeShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(SparseRank(c, 0).status());
  return absl::OkStatus();
}

OpSpec SetOperation(const char* name, const char* inputs, ShapeFn shape, const char* doc) {
  OpSpec spec(name);
  spec.In(inputs)
      .Out("result_indices: int64, result_values: T, result_shape: int64")
      .Attr("set_operation: string")
      .Attr("validate_indices: bool = true")
      .Attr("T: {int8, int16, int32, int64, uint8, uint16, string}")
      .InferShape(shape)
      .NotDifferentiable()
      .Doc(doc);
  return spec;
}

}  // namespace

SparseTensor SetIntersection(Output a, Output b, absl::string_view name) {
  return DenseOperation("intersection", a, b, name);
}
SparseTensor SetIntersection(const SparseTensor& a, const SparseTensor& b, absl::string_view name) {
  return SparseOperation("intersection", a, b, name);
}
SparseTensor SetDifference(Output a, Output b, bool a_minus_b, absl::string_view name) {
  return DenseOperation(Difference(a_minus_b), a, b, name);
}
SparseTensor SetDifference(const SparseTensor& a, const SparseTensor& b, bool a_minus_b,
                           absl::string_view name) {
  return SparseOperation(Difference(a_minus_b), a, b, name);
}
SparseTensor SetUnion(Output a, Output b, absl::string_view name) {
  return DenseOperation("union", a, b, name);
}
Output SetSize(const SparseTensor& set, absl::string_view name) {
  return AddOp("SetSize", {set.indices, set.values, set.dense_shape}, {}, name);
}

void AddSetOps(OpRegistry* ops) {
  ops->Add(SetOperation(
      "DenseToDenseSetOperation", "set1: T, set2: T", DenseToDenseShape,
      "Computes the intersection, union or difference of the sets in the last dimensions."));
  ops->Add(SetOperation("DenseToSparseSetOperation",
                        "set1: T, set2_indices: int64, set2_values: T, set2_shape: int64",
                        DenseToSparseShape,
                        "Computes the set operation for a dense and a sparse tensor of sets."));
  ops->Add(SetOperation("SparseToSparseSetOperation",
                        "set1_indices: int64, set1_values: T, set1_shape: int64, "
                        "set2_indices: int64, set2_values: T, set2_shape: int64",
                        SparsePairShape,
                        "Computes the set operation for two sparse tensors of sets."));
  ops->Add(
      OpSpec("SetSize")
          .In("set_indices: int64, set_values: T, set_shape: int64")
          .Out("size: int32")
          .Attr("validate_indices: bool = true")
          .Attr("T: {int8, int16, int32, int64, uint8, uint16, string}")
          .InferShape(SetSizeShape)
          .NotDifferentiable()
          .Doc("Returns the number of distinct elements of each set of a sparse tensor of sets."));
}

}  // namespace weir
