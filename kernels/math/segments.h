#ifndef WEIR_KERNELS_MATH_SEGMENTS_H_
#define WEIR_KERNELS_MATH_SEGMENTS_H_

#include "weir/core/runtime/kernel.h"

// Shared code of the kernels that combine rows of a tensor by segment. A row is a slice of the
// first dimension.
namespace weir {

// The number of elements of a slice of the dimensions from `from` on.
inline int64_t WidthOf(const Shape& shape, int from) { return shape.Sub(from).num_elements(); }

// The shape of `rows` such slices.
inline Shape RowsShape(const Shape& data, int64_t rows, int from = 1) {
  Shape shape = data.Sub(from);
  shape.InsertDim(0, rows);
  return shape;
}

// Returns INVALID_ARGUMENT unless `indices` and `ids` are vectors of one size, and `data` has rows.
absl::Status CheckSparseSegments(const Tensor& data, const Tensor& indices, const Tensor& ids);

void AddSparseSegmentGradCpu(KernelRegistry* r);  // sparse_segment_grad_cpu.cc

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_SEGMENTS_H_
