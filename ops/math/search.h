#ifndef WEIR_OPS_MATH_SEARCH_H_
#define WEIR_OPS_MATH_SEARCH_H_

#include "weir/core/graph/graph.h"
#include "weir/core/graph/op.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"

// Builders of ops that search sorted rows, select by rank, and count. The last argument is the
// node's name.
namespace WEIR_API weir {

// Returns for each value the insertion index in the sorted row of the same index: the first
// possible one (LowerBound) or the last one (UpperBound). Both arguments are matrices.
Output LowerBound(Output sorted_inputs, Output values, DataType out_type = DT_INT32,
                  absl::string_view name = {});
Output UpperBound(Output sorted_inputs, Output values, DataType out_type = DT_INT32,
                  absl::string_view name = {});
// Does the same for tensors of any rank, whose last dimensions are the rows. `right` selects
// UpperBound.
Output SearchSorted(Output sorted_sequence, Output values, bool right = false,
                    DataType out_type = DT_INT32, absl::string_view name = {});
// Returns the element at position n of the last dimension in sorted order (descending if
// `reverse`).
Output NthElement(Output x, const Ints& n, bool reverse = false, absl::string_view name = {});
// Returns the coordinates, in columns, of flat indices into an array of shape `dims`.
Output UnravelIndex(Output indices, Output dims, absl::string_view name = {});

// Options of ApproxTopK.
struct ApproxTopKOptions {
  int64_t reduction_dimension = -1;  // negative: from the end
  float recall_target = 0.95f;       // ignored: all are found
  bool is_max_k = true;              // the largest; false: the smallest
};
// Returns the k largest (or smallest) elements along a dimension, and their indices. The result is
// exact for any recall target.
TopKResult ApproxTopK(Output x, int64_t k, const ApproxTopKOptions& options = {},
                      absl::string_view name = {});

// Counts the occurrences of each of 0 ... size - 1 in x, or in each row of a matrix. Occurrences
// are weighted if `weights` is not empty. `binary` returns only whether the value occurs.
Output DenseBincount(Output x, Output size, Output weights, bool binary = false,
                     absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_MATH_SEARCH_H_
