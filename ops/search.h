#ifndef WEIR_OPS_SEARCH_H_
#define WEIR_OPS_SEARCH_H_

#include "weir/core/graph.h"
#include "weir/core/op.h"
#include "weir/ops/array.h"

// Builders that look for values in sorted rows, select by rank, and count. The last argument is the
// name.
namespace weir {

// For each value, before which element of the sorted row of the same index it belongs: of several
// places the first (LowerBound) or the last (UpperBound). Both are matrices.
Output LowerBound(Output sorted_inputs, Output values, DataType out_type = DT_INT32,
                  absl::string_view name = {});
Output UpperBound(Output sorted_inputs, Output values, DataType out_type = DT_INT32,
                  absl::string_view name = {});
// The same for tensors of any rank, whose last dimensions are the rows. `right`: UpperBound.
Output SearchSorted(Output sorted_sequence, Output values, bool right = false,
                    DataType out_type = DT_INT32, absl::string_view name = {});
// The element that would be at position n if the last dimension were sorted (from the largest down
// if `reverse`).
Output NthElement(Output x, const Ints& n, bool reverse = false, absl::string_view name = {});
// The coordinates, in columns, of flat indices into an array of dimensions `dims`.
Output UnravelIndex(Output indices, Output dims, absl::string_view name = {});

struct ApproxTopKOptions {
  int64_t reduction_dimension = -1;
  float recall_target = 0.95f;
  bool is_max_k = true;
};
// The k largest (or smallest) elements along a dimension, and their indices. Exact, whatever the
// recall target.
TopKResult ApproxTopK(Output x, int64_t k, const ApproxTopKOptions& options = {},
                      absl::string_view name = {});

// How often each of 0 ... size - 1 is in x, or in each row of a matrix; weighted if weights are not
// empty; `binary` only notes whether it is.
Output DenseBincount(Output x, Output size, Output weights, bool binary = false,
                     absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_SEARCH_H_
