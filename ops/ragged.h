#ifndef WEIR_OPS_RAGGED_H_
#define WEIR_OPS_RAGGED_H_

#include "weir/ops/sparse.h"

// Ragged tensors: rows of different lengths. TensorFlow's ragged ops.
namespace weir {

// Row i of the outermost dimension is rows [nested_splits[0][i], nested_splits[0][i + 1]) of the
// next, and so on down to rows of `values`. Splits are int64 or int32, and start with 0.
struct RaggedTensor {
  Outputs nested_splits;
  Output values;
};

// The numbers from starts[i] up to, without, limits[i], by deltas[i]; scalars serve all rows.
RaggedTensor RaggedRange(Output starts, Output limits, Output deltas,
                         DataType row_splits_dtype = DT_INT64, absl::string_view name = {});
// A dense tensor. Rows that are too short for it are followed by the default value (invalid: zero).
// A literal or tensor shape cuts off what is too long; without one the longest row fits.
Output RaggedToTensor(const RaggedTensor& x, Output default_value = {},
                      const std::optional<Ints>& shape = {}, absl::string_view name = {});
SparseTensor RaggedToSparse(const RaggedTensor& x, absl::string_view name = {});
// The rows with these numbers; their dimensions but the last become ragged ones.
RaggedTensor RaggedGather(const RaggedTensor& params, Output indices, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_RAGGED_H_
