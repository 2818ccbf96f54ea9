#include "weir/ops/sparse/sparse_count.h"

#include <algorithm>

#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/sparse/sparse_internal.h"

namespace weir {

namespace {

// Values and weights have one shape, unless there are no weights.
absl::Status DenseCountShape(ShapeContext& c) {
  Shape values = c.input(0);
  if (c.input(1).num_elements() > 0) {
    WEIR_ASSIGN_OR_RETURN(values, values.MergeWith(c.input(1)));
  }
  return SetSparseOutputs(c, Shape::kUnknown, values.has_rank() ? values.rank() : Shape::kUnknown);
}

// With more dimensions than one, the first has the rows.
absl::Status SparseCountShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t rank, SparseRank(c, 0));
  return SetSparseOutputs(c, Shape::kUnknown, std::min<int64_t>(rank, 2));
}

absl::Status RaggedCountShape(ShapeContext& c) { return SetSparseOutputs(c, Shape::kUnknown, 2); }

OpSpec CountSpec(absl::string_view op, absl::string_view in, absl::string_view doc) {
  OpSpec spec(op);
  spec.In(in)
      .Out("output_indices: int64, output_values: output_type, output_dense_shape: int64")
      .Attr("T: {int32, int64}")
      .Attr("minlength: int >= -1 = -1")
      .Attr("maxlength: int >= -1 = -1")
      .Attr("binary_output: bool")
      .Attr("output_type: {int32, int64, float, double}")
      .NotDifferentiable()
      .Doc(doc);
  return spec;
}

}  // namespace

void AddSparseCountOps(OpRegistry* ops) {
  ops->Add(CountSpec("DenseCountSparseOutput", "values: T, weights: output_type",
                     "Counts the integers of a vector, or of each row of a matrix.")
               .InferShape(DenseCountShape));
  ops->Add(CountSpec("SparseCountSparseOutput",
                     "indices: int64, values: T, dense_shape: int64, weights: output_type",
                     "Counts the integers of a sparse vector, or in each row of a sparse tensor.")
               .InferShape(SparseCountShape));
  ops->Add(CountSpec("RaggedCountSparseOutput", "splits: int64, values: T, weights: output_type",
                     "Counts the integers in each row of a ragged tensor.")
               .InferShape(RaggedCountShape));
}

// ---- builders

namespace {

Attrs CountAttrs(const CountOptions& o) {
  return {
      {"minlength", o.minlength}, {"maxlength", o.maxlength}, {"binary_output", o.binary_output}};
}

}  // namespace

SparseTensor DenseCountSparseOutput(Output values, Output weights, const CountOptions& options,
                                    absl::string_view name) {
  return WrappedOutputs(
      AddNode("DenseCountSparseOutput", {values, weights}, CountAttrs(options), name));
}

SparseTensor SparseCountSparseOutput(const SparseTensor& x, Output weights,
                                     const CountOptions& options, absl::string_view name) {
  return WrappedOutputs(AddNode("SparseCountSparseOutput",
                                {x.indices, x.values, x.dense_shape, weights}, CountAttrs(options),
                                name));
}

SparseTensor RaggedCountSparseOutput(Output splits, Output values, Output weights,
                                     const CountOptions& options, absl::string_view name) {
  return WrappedOutputs(
      AddNode("RaggedCountSparseOutput", {splits, values, weights}, CountAttrs(options), name));
}

}  // namespace weir
