#ifndef WEIR_KERNELS_REDUCE_H_
#define WEIR_KERNELS_REDUCE_H_

#include <vector>

#include "weir/core/shape.h"
#include "weir/core/tensor.h"
#include "weir/core/thread_pool.h"

namespace weir {

// One way to reduce elements of one type: an accumulator (wider than the element where precision or
// range ask for it), and what can be done with it. All functions work on stretches of memory.
struct Reducer {
  size_t in_size = 0, acc_size = 0, out_size = 0;
  float cost = 0.15f;  // nanoseconds an element
  // acc[0 ... n) become the neutral element.
  void (*init)(void* acc, int64_t n) = nullptr;
  // All of x[0 ... n) go into acc[0].
  void (*row)(const void* x, int64_t n, void* acc) = nullptr;
  // x[k * stride + i] goes into acc[i], for each of so many rows k in turn. `stride` in elements.
  void (*columns)(const void* x, int64_t rows, int64_t stride, int64_t n, void* acc) = nullptr;
  // other[i] goes into acc[i].
  void (*merge)(const void* other, int64_t n, void* acc) = nullptr;
  // y[i] is the result of acc[i], into which `count` elements went.
  void (*finish)(const void* acc, int64_t n, int64_t count, void* y) = nullptr;
};

// Null if there is none. Ops: Sum, Mean, Prod, Max, Min, EuclideanNorm, All, Any.
const Reducer* FindReducer(absl::string_view op, DataType type);

// The reduction of dimensions: neighbors that are both kept, or both reduced, are merged, and
// extents of 1 left out.
struct ReductionPlan {
  std::vector<int64_t> dims;  // alternately kept and reduced
  bool first_is_reduced = false;
  Shape out;          // with or without the reduced dimensions
  int64_t count = 1;  // elements that go into each result
};
// `axes` is an int32 or int64 tensor of rank 0 or 1. INVALID_ARGUMENT for an axis out of range.
absl::StatusOr<ReductionPlan> PlanReduction(const Shape& x, const Tensor& axes, bool keep_dims);

// Reduces x into y, which has plan.out's elements.
void Reduce(ThreadPool& pool, const Reducer& reducer, const ReductionPlan& plan, const void* x,
            void* y);

}  // namespace weir

#endif  // WEIR_KERNELS_REDUCE_H_
