#ifndef WEIR_OPS_SPARSE_INTERNAL_H_
#define WEIR_OPS_SPARSE_INTERNAL_H_

#include "weir/core/shape_context.h"
#include "weir/ops/sparse.h"

// What the sources of the sparse and ragged families share.
namespace weir {

// Outputs `first` to `first` + 2 of a node.
SparseTensor SparseOutputs(Node* node, int first = 0);
// Outputs 0 to 2 as Python's functions give them.
SparseTensor WrappedOutputs(Node* node);
// The shape that input i of a node spells out, if it is static.
std::optional<Shape> StaticShape(Node* node, int i);

// ---- shape rules

// The rank of the sparse tensor whose indices, values and shape are the inputs from `first` on; -1
// if it is not known.
absl::StatusOr<int64_t> SparseRank(ShapeContext& c, int first);
// Outputs 0, 1 and 2 (if there is one) are a sparse tensor of `count` elements.
absl::Status SetSparseOutputs(ShapeContext& c, int64_t count, int64_t rank);
absl::Status AnySparseOutputs(ShapeContext& c);
// Of two sparse tensors of one rank, whose parts are the inputs, another one.
absl::Status SparsePairShape(ShapeContext& c);
// Of the reverse index map, as it is, and of the default value, a scalar: the gradients of filling
// empty rows.
absl::Status FillEmptyRowsGradShape(ShapeContext& c);

}  // namespace weir

#endif  // WEIR_OPS_SPARSE_INTERNAL_H_
