#ifndef WEIR_KERNELS_ROW_UPDATE_H_
#define WEIR_KERNELS_ROW_UPDATE_H_

#include <cstdint>
#include <vector>

#include "weir/core/kernel.h"

// Combining stretches of memory with an operation, in place: what scatters and assign_add are made
// of.
namespace weir {

enum class RowOp : uint8_t { kUpdate, kAdd, kSub, kMul, kDiv, kMin, kMax };

// Whether CombineRow takes this type: kUpdate takes all, the others numbers, kMin and kMax real
// ones.
bool RowOpSupports(RowOp op, DataType type);

// to[i] = to[i] op from[i] for n elements; with `from_scalar` every from[i] is from[0]. Integers
// wrap around; the caller has made sure that no integer is divided by zero. The ranges are equal or
// do not overlap.
void CombineRow(RowOp op, DataType type, void* to, const void* from, int64_t n, bool from_scalar);

// INVALID_ARGUMENT "Integer division by zero" if this is a division by an integer tensor with a
// zero in it.
absl::Status CheckDivisor(RowOp op, const Tensor& divisor);

// The indices of a tensor of int32 or int64 as row numbers. INVALID_ARGUMENT "indices[3] = 7 is not
// in [0, 5)" for the first that is none.
absl::StatusOr<std::vector<int64_t>> RowIndices(const Tensor& indices, int64_t num_rows);

// Combines row rows[i] of `to` with row i of `from` (`from_scalar`: with one value), rows in order,
// so that repeated rows all count. Rows have `width` elements. Several threads: each owns some of
// the rows of `to`.
void CombineRows(ThreadPool& pool, RowOp op, Tensor* to, const std::vector<int64_t>& rows,
                 int64_t width, const Tensor& from, bool from_scalar);

// The shape of all slices that the vectors along the last axis of `indices` address in a tensor of
// this shape: indices.shape[:-1] + shape[indices.shape[-1]:]. INVALID_ARGUMENT if they are too
// long.
absl::StatusOr<Shape> SlicesShape(const Tensor& indices, const Shape& shape);
// Offsets, in elements, of the slices that the vectors along the last axis of `indices` address in
// a tensor of this shape. A vector that is out of range has offset -1 with `ignore_bad`, else the
// first is named by INVALID_ARGUMENT. `*width`
// is the number of elements of a slice; no offsets if that is 0 and all slices are the whole
// tensor. SlicesShape must have accepted the two; and as there are as many offsets as slices, let a
// tensor of that shape exist before.
absl::StatusOr<std::vector<int64_t>> SliceOffsets(const Tensor& indices, const Shape& shape,
                                                  int64_t* width, bool ignore_bad = false);

// Combines the slice at offsets[i] of `to` with slice i of `from`, in order.
void CombineSlices(ThreadPool& pool, RowOp op, Tensor* to, const std::vector<int64_t>& offsets,
                   int64_t width, const Tensor& from);

}  // namespace weir

#endif  // WEIR_KERNELS_ROW_UPDATE_H_
