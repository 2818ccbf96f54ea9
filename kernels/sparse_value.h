#ifndef WEIR_KERNELS_SPARSE_VALUE_H_
#define WEIR_KERNELS_SPARSE_VALUE_H_

#include <vector>

#include "weir/core/kernel.h"
#include "weir/kernels/arguments.h"

// Sparse tensors as kernels see them. A graph may come from anywhere, so nothing is certain but
// what was checked: indices may lie outside the shape, in any order, and more than once. The shape
// may be so large that no dense tensor has it.
namespace weir {

// Row i of `indices` says where values[i] stands in a tensor of extents `dims`.
struct SparseValue {
  Tensor indices;  // int64 [count, rank]
  Tensor values;   // [count]
  Dims dims;       // none negative

  int64_t count() const { return indices.dim(0); }
  int rank() const { return static_cast<int>(dims.size()); }
  const int64_t* row(int64_t i) const { return indices.data<int64_t>() + i * indices.dim(1); }
};

// The sparse tensor of these parts; 32-bit indices are widened. INVALID_ARGUMENT if a part has the
// wrong rank, if they do not fit together, or for a negative extent.
absl::StatusOr<SparseValue> MakeSparse(const Tensor& indices, const Tensor& values,
                                       const Tensor& shape);
// The sparse tensor whose indices, values and shape are the inputs from `first` on.
inline absl::StatusOr<SparseValue> ReadSparse(const KernelContext& c, int first) {
  return MakeSparse(c.input(first), c.input(first + 1), c.input(first + 2));
}
// The sparse tensors of a signature with `n` indices, then n values, then n shapes.
absl::StatusOr<std::vector<SparseValue>> ReadSparseList(const KernelContext& c, int n);

// Every index is within the extents; `in_order`: and each is after the one before it.
absl::Status CheckIndices(const SparseValue& x, bool in_order);
// The first only, in the words of ops that take indices in any order.
absl::Status CheckBounds(const SparseValue& x);
// Both have the same extents.
absl::Status CheckSameDims(const SparseValue& a, const SparseValue& b);

// Negative, zero or positive: the order of two rows of indices.
int CompareRows(const int64_t* a, const int64_t* b, int64_t rank);
// The positions of rows of `rank` indices in their order; equal ones stay as they are.
std::vector<int64_t> SortedOrder(const int64_t* rows, int64_t count, int64_t rank);

// to[i] = from[at[i]], and to[at[i]] = from[i]: elements of any type; positions are in range.
void GatherElements(const Tensor& from, absl::Span<const int64_t> at, Tensor& to);
void ScatterElements(const Tensor& from, absl::Span<const int64_t> at, Tensor& to);

// Output i is a vector of int64.
absl::Status OutputInts(KernelContext& c, int i, absl::Span<const int64_t> values);
// Output i is the matrix of int64 with `rank` columns whose rows `rows` has, one after the other.
absl::Status OutputRows(KernelContext& c, int i, absl::Span<const int64_t> rows, int64_t count,
                        int64_t rank);

}  // namespace weir

#endif  // WEIR_KERNELS_SPARSE_VALUE_H_
