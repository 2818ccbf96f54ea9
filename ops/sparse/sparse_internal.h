#ifndef WEIR_OPS_SPARSE_SPARSE_INTERNAL_H_
#define WEIR_OPS_SPARSE_SPARSE_INTERNAL_H_

#include "weir/core/graph/shape_context.h"
#include "weir/ops/sparse/sparse.h"

// Declarations shared by the sources of the sparse and ragged families.
namespace weir {

// Returns outputs `first` to `first` + 2 of a node as a sparse tensor.
SparseTensor SparseOutputs(Node* node, int first = 0);
// Returns outputs 0 to 2 in the form that Python's functions return them.
SparseTensor WrappedOutputs(Node* node);
// Returns the shape that input i of a node contains, if it is static.
std::optional<Shape> StaticShape(Node* node, int i);

// ---- shape functions

// Returns the rank of the sparse tensor whose indices, values and shape are the inputs from `first`
// on; -1 if it is not known.
absl::StatusOr<int64_t> SparseRank(ShapeContext& c, int first);
// Sets outputs 0, 1 and 2 (if there is one) to the shapes of a sparse tensor of `count` elements.
absl::Status SetSparseOutputs(ShapeContext& c, int64_t count, int64_t rank);
absl::Status AnySparseOutputs(ShapeContext& c);
// The shape function of an op that returns a sparse tensor computed from two sparse tensors of the
// same rank. The inputs are the parts of the sparse tensors.
absl::Status SparsePairShape(ShapeContext& c);
// The shape function of the gradient of filling empty rows: the outputs have the shapes of the
// reverse index map and of the default value, a scalar.
absl::Status FillEmptyRowsGradShape(ShapeContext& c);

}  // namespace weir

#endif  // WEIR_OPS_SPARSE_SPARSE_INTERNAL_H_
