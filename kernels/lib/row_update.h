#ifndef WEIR_KERNELS_LIB_ROW_UPDATE_H_
#define WEIR_KERNELS_LIB_ROW_UPDATE_H_

#include <cstdint>
#include <vector>

#include "weir/core/runtime/kernel.h"

// In-place updates of contiguous elements with a binary operation: the building blocks of scatters
// and assign_add.
namespace weir {

enum class RowOp : uint8_t { kUpdate, kAdd, kSub, kMul, kDiv, kMin, kMax };

// Whether CombineRow supports this type: kUpdate supports all types, kMin and kMax real numbers,
// the other operations numbers.
bool RowOpSupports(RowOp op, DataType type);

// Computes to[i] = to[i] op from[i] for n elements; with `from_scalar` every from[i] is from[0].
// Integers wrap around; the caller has checked that no integer is divided by zero. The ranges are
// equal or do not overlap.
void CombineRow(RowOp op, DataType type, void* to, const void* from, int64_t n, bool from_scalar);

// Returns INVALID_ARGUMENT "Integer division by zero" if this is a division by an integer tensor
// that contains a zero.
absl::Status CheckDivisor(RowOp op, const Tensor& divisor);

// Returns the indices of a tensor of int32 or int64 as row numbers. Returns INVALID_ARGUMENT
// "indices[3] = 7 is not in [0, 5)" for the first index that is out of range.
absl::StatusOr<std::vector<int64_t>> RowIndices(const Tensor& indices, int64_t num_rows);

// Combines row rows[i] of `to` with row i of `from` (`from_scalar`: with one value), rows in order,
// so that repeated rows all count. Rows have `width` elements. Runs on several threads, each of
// which owns some of the rows of `to`.
void CombineRows(ThreadPool& pool, RowOp op, Tensor* to, const std::vector<int64_t>& rows,
                 int64_t width, const Tensor& from, bool from_scalar);

// Returns the shape of all slices that the vectors along the last axis of `indices` address in a
// tensor of this shape: indices.shape[:-1] + shape[indices.shape[-1]:]. Returns INVALID_ARGUMENT if
// the vectors are too long.
absl::StatusOr<Shape> SlicesShape(const Tensor& indices, const Shape& shape);
// Returns the offsets, in elements, of the slices that the vectors along the last axis of `indices`
// address in a tensor of this shape. With `ignore_bad`, a vector that is out of range has offset
// -1; otherwise INVALID_ARGUMENT names the first one. `*width` is set to the number of elements of
// a slice. There are no offsets if the width is 0 and all slices are the whole tensor. SlicesShape
// must have accepted the two shapes. There are as many offsets as slices, so allocate a tensor of
// SlicesShape's shape first.
absl::StatusOr<std::vector<int64_t>> SliceOffsets(const Tensor& indices, const Shape& shape,
                                                  int64_t* width, bool ignore_bad = false);

// Combines the slice at offsets[i] of `to` with slice i of `from`, in order.
void CombineSlices(ThreadPool& pool, RowOp op, Tensor* to, const std::vector<int64_t>& offsets,
                   int64_t width, const Tensor& from);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_ROW_UPDATE_H_
