#ifndef WEIR_OPS_SPARSE_RAGGED_H_
#define WEIR_OPS_SPARSE_RAGGED_H_

#include "weir/core/tensor/api.h"
#include "weir/ops/sparse/sparse.h"

// Ragged tensors, whose rows have different lengths: TensorFlow's ragged ops.
namespace WEIR_API weir {

// Row i of the outermost dimension is the rows [nested_splits[0][i], nested_splits[0][i + 1]) of
// the next dimension, and so on down to the rows of `values`. Splits are int64 or int32 and start
// with 0.
struct RaggedTensor {
  Outputs nested_splits;  // one vector per ragged dimension, outermost first
  Output values;
};

// Returns the numbers from starts[i] up to, but not including, limits[i], in steps of deltas[i].
// Scalars are broadcast to all rows.
RaggedTensor RaggedRange(Output starts, Output limits, Output deltas,
                         DataType row_splits_dtype = DT_INT64, absl::string_view name = {});
// Returns a dense tensor. Short rows are padded with the default value (zero if it is invalid). A
// literal or tensor `shape` truncates longer rows; without it the tensor is as wide as the longest
// row.
Output RaggedToTensor(const RaggedTensor& x, Output default_value = {},
                      const std::optional<Ints>& shape = {}, absl::string_view name = {});
SparseTensor RaggedToSparse(const RaggedTensor& x, absl::string_view name = {});
// Returns the rows with these indices. The dimensions of the indices but the last become ragged
// dimensions.
RaggedTensor RaggedGather(const RaggedTensor& params, Output indices, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_SPARSE_RAGGED_H_
