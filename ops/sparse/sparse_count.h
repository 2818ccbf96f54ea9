#ifndef WEIR_OPS_SPARSE_SPARSE_COUNT_H_
#define WEIR_OPS_SPARSE_SPARSE_COUNT_H_

#include "weir/core/tensor/api.h"
#include "weir/ops/sparse/sparse.h"

// Counts of integers as sparse tensors: tf.sparse.bincount.
namespace WEIR_API weir {

// Attributes of the ops below.
struct CountOptions {
  int64_t minlength = -1;      // the least number of columns of the result
  int64_t maxlength = -1;      // values of at least this do not count; -1: all count
  bool binary_output = false;  // 1 for each value that occurs
};
// Count the integers (int32 or int64) in each row of a matrix, a sparse tensor or a ragged tensor,
// or in a vector: element [row, value] of the result is the number of times that `value` occurs, or
// the sum of its weights. No value is negative. `weights` has the shape of the values or no
// elements; its dtype (int32, int64, float or double) is that of the result.
SparseTensor DenseCountSparseOutput(Output values, Output weights, const CountOptions& options = {},
                                    absl::string_view name = {});
// See DenseCountSparseOutput.
SparseTensor SparseCountSparseOutput(const SparseTensor& x, Output weights,
                                     const CountOptions& options = {}, absl::string_view name = {});
// See DenseCountSparseOutput.
SparseTensor RaggedCountSparseOutput(Output splits, Output values, Output weights,
                                     const CountOptions& options = {}, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_SPARSE_SPARSE_COUNT_H_
