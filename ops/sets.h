#ifndef WEIR_OPS_SETS_H_
#define WEIR_OPS_SETS_H_

#include "weir/core/graph.h"

// Sets of integers or texts: the last dimension of a tensor holds the elements of one set each,
// repeated ones count once. All dimensions but the last must agree.
namespace weir {

// A sparse tensor: row i of `indices` says where values[i] stands in a tensor of shape
// `dense_shape`. The indices are sorted.
struct SparseResult {
  Output indices, values, dense_shape;
};

// What is in both. The elements of each set come sorted.
SparseResult SetIntersection(Output a, Output b, absl::string_view name = {});
SparseResult SetIntersection(const SparseResult& a, const SparseResult& b,
                             absl::string_view name = {});
// a - b; b - a if `a_minus_b` is false.
SparseResult SetDifference(Output a, Output b, bool a_minus_b = true, absl::string_view name = {});
SparseResult SetDifference(const SparseResult& a, const SparseResult& b, bool a_minus_b = true,
                           absl::string_view name = {});
SparseResult SetUnion(Output a, Output b, absl::string_view name = {});
// How many elements each set has, int32.
Output SetSize(const SparseResult& set, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_SETS_H_
