#include "weir/ops/sparse/sparse_internal.h"

namespace weir {

SparseTensor SparseOutputs(Node* node, int first) {
  if (node == nullptr) return {};
  return {node->output(first), node->output(first + 1), node->output(first + 2)};
}

SparseTensor WrappedOutputs(Node* node) {
  const SparseTensor r = SparseOutputs(node);
  return MakeSparseTensor(r.indices, r.values, r.dense_shape);
}

std::optional<Shape> StaticShape(Node* node, int i) {
  if (node == nullptr) return std::nullopt;
  Shape shape = GraphValues().value_as_shape(*node, i);
  if (!shape.IsFullyDefined()) return std::nullopt;
  return shape;
}

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

}  // namespace weir
