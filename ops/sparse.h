#ifndef WEIR_OPS_SPARSE_H_
#define WEIR_OPS_SPARSE_H_

#include <string>
#include <vector>

#include "weir/core/gradient.h"
#include "weir/ops/array.h"
#include "weir/ops/data_flow.h"

// Sparse tensors: the elements that are there, and where. TensorFlow's sparse_ops, with the nodes
// of the Python functions.
namespace weir {

// Row i of `indices` (int64 [n, rank]) says where values[i] stands in a tensor of shape
// `dense_shape` (int64 [rank]). Most functions want the rows in order, without repetitions:
// SparseReorder sees to it.
struct SparseTensor {
  Output indices, values, dense_shape;
};

// A sparse tensor of parts that are there. A literal shape becomes a Const
// "SparseTensor/dense_shape".
SparseTensor MakeSparseTensor(Output indices, Output values, const Ints& dense_shape);

// ---- between sparse and dense

// The dense tensor; `default_value` (invalid: zero) where there is no element. With
// `validate_indices` they must be in order.
Output SparseTensorToDense(const SparseTensor& x, Output default_value = {},
                           bool validate_indices = true, absl::string_view name = {});
// The same from indices that may also be a scalar or a vector, and values that may be one scalar.
Output SparseToDense(Output indices, Output output_shape, Output values, Output default_value,
                     bool validate_indices = true, absl::string_view name = {});

// ---- moving elements

// In the order of the indices.
SparseTensor SparseReorder(const SparseTensor& x, absl::string_view name = {});
// At most one extent may be -1: it is worked out.
SparseTensor SparseReshape(const SparseTensor& x, const Ints& shape, absl::string_view name = {});
SparseTensor SparseConcat(int64_t axis, const std::vector<SparseTensor>& xs,
                          absl::string_view name = {});
// Parts of equal extent along the axis; the first ones are longer by one if it does not come out
// even.
std::vector<SparseTensor> SparseSplit(const SparseTensor& x, int64_t num_split, const Ints& axis,
                                      absl::string_view name = {});
// The elements of a block, or what there is of it.
SparseTensor SparseSlice(const SparseTensor& x, const Ints& start, const Ints& size,
                         absl::string_view name = {});
// With an element, the default value, in each row of the first dimension that has none.
struct FilledRows {
  SparseTensor filled;
  Output empty_row_indicator;  // bool [rows]
};
FilledRows SparseFillEmptyRows(const SparseTensor& x, Output default_value,
                               absl::string_view name = {});

// ---- arithmetic

// An element that only one of them has counts as it is. Sums of two elements whose magnitude is
// below the threshold are left out.
SparseTensor SparseAdd(const SparseTensor& a, const SparseTensor& b, const Literal& threshold = 0);
Output SparseAdd(const SparseTensor& a, Output dense);
// An element that only one of them has is compared with zero.
SparseTensor SparseMaximum(const SparseTensor& a, const SparseTensor& b,
                           absl::string_view name = {});
SparseTensor SparseMinimum(const SparseTensor& a, const SparseTensor& b,
                           absl::string_view name = {});
// Element by element with a dense tensor, which is broadcast; where the sparse one has none, there
// is none.
SparseTensor SparseDenseCwiseAdd(const SparseTensor& x, Output dense);
SparseTensor SparseDenseCwiseMul(const SparseTensor& x, Output dense);
SparseTensor SparseDenseCwiseDiv(const SparseTensor& x, Output dense);
// Over the elements that are there; 0 where there are none. No axes: all.
Output SparseReduceSum(const SparseTensor& x, const std::optional<Ints>& axes = {},
                       bool keep_dims = false, absl::string_view name = {});
Output SparseReduceMax(const SparseTensor& x, const std::optional<Ints>& axes = {},
                       bool keep_dims = false, absl::string_view name = {});
SparseTensor SparseReduceSumSparse(const SparseTensor& x, const std::optional<Ints>& axes = {},
                                   bool keep_dims = false, absl::string_view name = {});
SparseTensor SparseReduceMaxSparse(const SparseTensor& x, const std::optional<Ints>& axes = {},
                                   bool keep_dims = false, absl::string_view name = {});
// Over the elements of the last dimension that are there.
SparseTensor SparseSoftmax(const SparseTensor& x, absl::string_view name = {});
struct SparseMatMulOptions {
  bool adjoint_a = false, adjoint_b = false;  // transposed and conjugated
};
// A sparse matrix times a dense one.
Output SparseTensorDenseMatMul(const SparseTensor& a, Output b,
                               const SparseMatMulOptions& options = {},
                               absl::string_view name = {});

// ---- sequences, features, packing

// The Levenshtein distances of the sequences in the last dimension, each divided by the length of
// the true one if `normalize`.
Output EditDistance(const SparseTensor& hypothesis, const SparseTensor& truth,
                    bool normalize = true, absl::string_view name = "edit_distance");
// All combinations of one feature (int64 or text) of each column, example by example: texts joined
// by the separator, or hashes in [0, num_buckets) (0: any).
struct FeatureColumns {
  std::vector<SparseTensor> sparse;
  Outputs dense;
};
SparseTensor SparseCross(const FeatureColumns& columns, absl::string_view separator = "_X_",
                         absl::string_view name = {});
SparseTensor SparseCrossHashed(const FeatureColumns& columns, int64_t num_buckets = 0,
                               std::optional<int64_t> hash_key = {}, absl::string_view name = {});
// A sparse tensor as a vector of three texts (or variants); each row of the first dimension for
// itself, as a matrix. Deserialize gives a tensor with the dimensions of `serialized` but the last
// in front.
Output SerializeSparse(const SparseTensor& x, DataType out_type = DT_STRING,
                       absl::string_view name = {});
Output SerializeManySparse(const SparseTensor& x, DataType out_type = DT_STRING,
                           absl::string_view name = {});
SparseTensor DeserializeSparse(Output serialized, DataType dtype, absl::string_view name = {});
SparseTensor DeserializeManySparse(Output serialized, DataType dtype, absl::string_view name = {});

// ---- gradients of rows, added up over several steps (see ConditionalAccumulator)

class SparseConditionalAccumulator {
 public:
  // `options.use_resource` does not matter: there is only the reference-typed form.
  SparseConditionalAccumulator(Graph& graph, DataType dtype,
                               const ConditionalAccumulatorOptions& options = {},
                               absl::string_view name = {});

  // The indices must be in order. A dense_shape, if there is one, is checked.
  Operation ApplyGradient(const IndexedSlices& gradient, Output local_step,
                          absl::string_view name = {});
  IndexedSlices TakeGradient(Output num_required, absl::string_view name = {});
  Output NumAccumulated(absl::string_view name = {});
  Operation SetGlobalStep(Output step, absl::string_view name = {});
  const Output& handle() const { return handle_; }

 private:
  Output handle_;
  DataType dtype_;
};

}  // namespace weir

#endif  // WEIR_OPS_SPARSE_H_
