#ifndef WEIR_KERNELS_SPARSE_SPARSE_VALUE_H_
#define WEIR_KERNELS_SPARSE_SPARSE_VALUE_H_

#include <vector>

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/lib/arguments.h"

// Sparse tensors in kernels. A graph may come from anywhere, so nothing holds that has not been
// checked: indices may be outside the shape, in any order, and repeated. The shape may be too large
// for any dense tensor.
namespace weir {

// Row i of `indices` is the position of values[i] in a tensor of extents `dims`.
struct SparseValue {
  Tensor indices;  // int64 [count, rank]
  Tensor values;   // [count]
  Dims dims;       // non-negative

  int64_t count() const { return indices.dim(0); }
  int rank() const { return static_cast<int>(dims.size()); }
  const int64_t* row(int64_t i) const { return indices.data<int64_t>() + i * indices.dim(1); }
};

// Makes the sparse tensor of these parts; 32-bit indices are widened. Returns INVALID_ARGUMENT if a
// part has the wrong rank, if the parts do not match, or for a negative extent.
absl::StatusOr<SparseValue> MakeSparse(const Tensor& indices, const Tensor& values,
                                       const Tensor& shape);
// Reads the sparse tensor whose indices, values and shape are the inputs from `first` on.
inline absl::StatusOr<SparseValue> ReadSparse(const KernelContext& c, int first) {
  return MakeSparse(c.input(first), c.input(first + 1), c.input(first + 2));
}
// Reads the sparse tensors of a signature with `n` indices, then n values, then n shapes.
absl::StatusOr<std::vector<SparseValue>> ReadSparseList(const KernelContext& c, int n);

// Checks that every index is within the extents and, with `in_order`, greater than the one before
// it.
absl::Status CheckIndices(const SparseValue& x, bool in_order);
// Checks only the extents, with the error texts of ops that accept indices in any order.
absl::Status CheckBounds(const SparseValue& x);
// Checks that both have the same extents.
absl::Status CheckSameDims(const SparseValue& a, const SparseValue& b);

// Compares two rows of indices. Returns a negative number, zero or a positive number.
inline int CompareRows(const int64_t* a, const int64_t* b, int64_t rank) {
  for (int64_t d = 0; d < rank; ++d) {
    if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
  }
  return 0;
}
// Returns the sorted order of rows of `rank` indices; the sort is stable.
std::vector<int64_t> SortedOrder(const int64_t* rows, int64_t count, int64_t rank);

// to[i] = from[at[i]], and to[at[i]] = from[i], for elements of any type; positions are in range.
void GatherElements(const Tensor& from, absl::Span<const int64_t> at, Tensor& to);
void ScatterElements(const Tensor& from, absl::Span<const int64_t> at, Tensor& to);

// Writes output i, a vector of int64.
absl::Status OutputInts(KernelContext& c, int i, absl::Span<const int64_t> values);
// Writes output i, an int64 matrix with `rank` columns, from the concatenated `rows`.
absl::Status OutputRows(KernelContext& c, int i, absl::Span<const int64_t> rows, int64_t count,
                        int64_t rank);

}  // namespace weir

#endif  // WEIR_KERNELS_SPARSE_SPARSE_VALUE_H_
