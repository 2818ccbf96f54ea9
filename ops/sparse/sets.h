#ifndef WEIR_OPS_SPARSE_SETS_H_
#define WEIR_OPS_SPARSE_SETS_H_

#include "weir/core/tensor/api.h"
#include "weir/ops/sparse/sparse.h"

// Operations on sets of integers or strings. The last dimension of a tensor holds the elements of
// one set; duplicates count once. All dimensions but the last must agree. Sparse results are
// sorted.
namespace WEIR_API weir {

// Returns the elements that are in both sets, sorted within each set.
SparseTensor SetIntersection(Output a, Output b, absl::string_view name = {});
SparseTensor SetIntersection(const SparseTensor& a, const SparseTensor& b,
                             absl::string_view name = {});
// Returns a - b, or b - a if `a_minus_b` is false.
SparseTensor SetDifference(Output a, Output b, bool a_minus_b = true, absl::string_view name = {});
SparseTensor SetDifference(const SparseTensor& a, const SparseTensor& b, bool a_minus_b = true,
                           absl::string_view name = {});
SparseTensor SetUnion(Output a, Output b, absl::string_view name = {});
// Returns the number of elements of each set, int32.
Output SetSize(const SparseTensor& set, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_SPARSE_SETS_H_
