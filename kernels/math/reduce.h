#ifndef WEIR_KERNELS_MATH_REDUCE_H_
#define WEIR_KERNELS_MATH_REDUCE_H_

#include <vector>

#include "weir/core/runtime/thread_pool.h"
#include "weir/core/tensor/shape.h"
#include "weir/core/tensor/tensor.h"

namespace weir {

// A reduction of elements of one type: an accumulator (wider than the element where precision or
// range require it) and its operations. All functions process contiguous memory.
struct Reducer {
  size_t in_size = 0, acc_size = 0, out_size = 0;
  float cost = 0.15f;  // nanoseconds per element
  // Sets acc[0 ... n) to the neutral element.
  void (*init)(void* acc, int64_t n) = nullptr;
  // Accumulates x[0 ... n) into acc[0].
  void (*row)(const void* x, int64_t n, void* acc) = nullptr;
  // Accumulates x[k * stride + i] into acc[i] for k = 0, 1, ..., rows - 1 in order. `stride` is in
  // elements.
  void (*columns)(const void* x, int64_t rows, int64_t stride, int64_t n, void* acc) = nullptr;
  // Merges other[i] into acc[i].
  void (*merge)(const void* other, int64_t n, void* acc) = nullptr;
  // Writes the result of acc[i], which accumulated `count` elements, to y[i].
  void (*finish)(const void* acc, int64_t n, int64_t count, void* y) = nullptr;
};

// Returns null for unsupported ops and types. Ops: Sum, Mean, Prod, Max, Min, EuclideanNorm, All,
// Any.
const Reducer* FindReducer(absl::string_view op, DataType type);

// The dimensions of a reduction: adjacent dimensions that are all kept or all reduced are merged,
// and extents of 1 are dropped.
struct ReductionLayout {
  std::vector<int64_t> dims;  // alternately kept and reduced
  bool first_is_reduced = false;
  Shape out;          // with or without the reduced dimensions
  int64_t count = 1;  // elements per result
};
// `axes` is an int32 or int64 tensor of rank 0 or 1. Returns INVALID_ARGUMENT for an axis that is
// out of range.
absl::StatusOr<ReductionLayout> MakeReductionLayout(const Shape& x, const Tensor& axes,
                                                    bool keep_dims);

// Reduces x into y, which has layout.out's elements.
void Reduce(ThreadPool& pool, const Reducer& reducer, const ReductionLayout& layout, const void* x,
            void* y);

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_REDUCE_H_
