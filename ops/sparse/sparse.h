#ifndef WEIR_OPS_SPARSE_SPARSE_H_
#define WEIR_OPS_SPARSE_SPARSE_H_

#include <string>
#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/containers/data_flow.h"
#include "weir/ops/lib/array.h"

// Sparse tensors, which store only some elements and their positions: TensorFlow's sparse_ops, with
// the nodes of the Python functions.
namespace WEIR_API weir {

// Row i of `indices` (int64 [n, rank]) is the position of values[i] in a tensor of shape
// `dense_shape` (int64 [rank]). Most functions require the rows in lexicographic order without
// duplicates; SparseReorder sorts them.
struct SparseTensor {
  Output indices, values, dense_shape;  // of n elements
};

// Makes a sparse tensor of existing parts. A literal shape becomes a Const
// "SparseTensor/dense_shape".
SparseTensor MakeSparseTensor(Output indices, Output values, const Ints& dense_shape);

// ---- conversions between sparse and dense

// Returns the dense tensor, with `default_value` (zero if invalid) where there is no element.
// `validate_indices` requires the indices to be in order.
Output SparseTensorToDense(const SparseTensor& x, Output default_value = {},
                           bool validate_indices = true, absl::string_view name = {});
// Does the same for indices that may also be a scalar or a vector, and values that may be one
// scalar.
Output SparseToDense(Output indices, Output output_shape, Output values, Output default_value,
                     bool validate_indices = true, absl::string_view name = {});

// ---- rearranging elements

// Sorts the elements by their indices.
SparseTensor SparseReorder(const SparseTensor& x, absl::string_view name = {});
// At most one extent may be -1, which is inferred.
SparseTensor SparseReshape(const SparseTensor& x, const Ints& shape, absl::string_view name = {});
SparseTensor SparseConcat(int64_t axis, const std::vector<SparseTensor>& xs,
                          absl::string_view name = {});
// Splits into parts of equal extent along the axis. If the extent is not divisible, the first parts
// are longer by one.
std::vector<SparseTensor> SparseSplit(const SparseTensor& x, int64_t num_split, const Ints& axis,
                                      absl::string_view name = {});
// Returns the elements of a block, clipped to the tensor.
SparseTensor SparseSlice(const SparseTensor& x, const Ints& start, const Ints& size,
                         absl::string_view name = {});
// Adds an element with the default value to each row of the first dimension that has no element.
struct FilledRows {
  SparseTensor filled;         // as the argument, with the elements added
  Output empty_row_indicator;  // bool [rows]
};
// Returns the tensor and which rows were empty. `default_value` is a scalar.
FilledRows SparseFillEmptyRows(const SparseTensor& x, Output default_value,
                               absl::string_view name = {});

// ---- arithmetic

// Returns the sum. An element without a counterpart is copied. Sums of two elements whose magnitude
// is below the threshold are dropped.
SparseTensor SparseAdd(const SparseTensor& a, const SparseTensor& b, const Literal& threshold = 0);
Output SparseAdd(const SparseTensor& a, Output dense);
// Returns the elementwise maximum. An element without a counterpart is compared with zero.
SparseTensor SparseMaximum(const SparseTensor& a, const SparseTensor& b,
                           absl::string_view name = {});
SparseTensor SparseMinimum(const SparseTensor& a, const SparseTensor& b,
                           absl::string_view name = {});
// Elementwise operations with a dense tensor, which is broadcast. The result has elements only
// where the sparse tensor has them.
SparseTensor SparseDenseCwiseAdd(const SparseTensor& x, Output dense);
SparseTensor SparseDenseCwiseMul(const SparseTensor& x, Output dense);
SparseTensor SparseDenseCwiseDiv(const SparseTensor& x, Output dense);
// Reduces the stored elements. The result is 0 where there are none. Without axes all dimensions
// are reduced.
Output SparseReduceSum(const SparseTensor& x, const std::optional<Ints>& axes = {},
                       bool keep_dims = false, absl::string_view name = {});
Output SparseReduceMax(const SparseTensor& x, const std::optional<Ints>& axes = {},
                       bool keep_dims = false, absl::string_view name = {});
SparseTensor SparseReduceSumSparse(const SparseTensor& x, const std::optional<Ints>& axes = {},
                                   bool keep_dims = false, absl::string_view name = {});
SparseTensor SparseReduceMaxSparse(const SparseTensor& x, const std::optional<Ints>& axes = {},
                                   bool keep_dims = false, absl::string_view name = {});
// Softmax over the stored elements of the last dimension.
SparseTensor SparseSoftmax(const SparseTensor& x, absl::string_view name = {});
struct SparseMatMulOptions {
  bool adjoint_a = false, adjoint_b = false;  // transposed and conjugated
};
// Multiplies a sparse matrix by a dense one.
Output SparseTensorDenseMatMul(const SparseTensor& a, Output b,
                               const SparseMatMulOptions& options = {},
                               absl::string_view name = {});

// ---- sequences, features, packing

// Returns the Levenshtein distances of the sequences in the last dimension, each divided by the
// length of the true sequence if `normalize`.
Output EditDistance(const SparseTensor& hypothesis, const SparseTensor& truth,
                    bool normalize = true, absl::string_view name = "edit_distance");
// The columns of a cross: sparse ones, and dense ones of shape [batch, features].
struct FeatureColumns {
  std::vector<SparseTensor> sparse;  // [batch, ...]; int64 or string
  Outputs dense;                     // [batch, features]; int64 or string
};
// All combinations of one feature (int64 or string) from each column, example by example: strings
// joined by the separator.
SparseTensor SparseCross(const FeatureColumns& columns, absl::string_view separator = "_X_",
                         absl::string_view name = {});
// The same as hashes in [0, num_buckets) (0: no limit). An unset `hash_key` is TensorFlow's.
SparseTensor SparseCrossHashed(const FeatureColumns& columns, int64_t num_buckets = 0,
                               std::optional<int64_t> hash_key = {}, absl::string_view name = {});
// SerializeSparse packs a sparse tensor into a vector of three strings (or variants);
// SerializeManySparse packs each row of the first dimension separately and returns a matrix.
// Deserialize returns a tensor whose leading dimensions are those of `serialized` but the last.
Output SerializeSparse(const SparseTensor& x, DataType out_type = DT_STRING,
                       absl::string_view name = {});
Output SerializeManySparse(const SparseTensor& x, DataType out_type = DT_STRING,
                           absl::string_view name = {});
SparseTensor DeserializeSparse(Output serialized, DataType dtype, absl::string_view name = {});
SparseTensor DeserializeManySparse(Output serialized, DataType dtype, absl::string_view name = {});

// ---- sparse gradients accumulated over several steps (see ConditionalAccumulator)

class SparseConditionalAccumulator {
 public:
  // `options.use_resource` is ignored: there is only the ref-typed form.
  SparseConditionalAccumulator(Graph& graph, DataType dtype,
                               const ConditionalAccumulatorOptions& options = {},
                               absl::string_view name = {});

  // The indices must be in order. A dense_shape, if present, is checked.
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

#endif  // WEIR_OPS_SPARSE_SPARSE_H_
