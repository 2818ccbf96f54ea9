#ifndef WEIR_KERNELS_NN_POOL_ROWS_H_
#define WEIR_KERNELS_NN_POOL_ROWS_H_

#include "weir/kernels/nn/pool.h"

// The inner loops of pooling on channels-last images, vectorized across the channels (float and
// double; the integer types are scalar).
namespace weir {

enum class PoolKind {
  kMax,          // x -> y
  kMaxGrad,      // x, dy -> dx: adds each gradient where the first maximum of its window is
  kMaxGradGrad,  // x, g -> y: picks from g, which has x's shape, the element at the first maximum
                 // of each window
  kAvg,          // x -> y
  kAvgGrad,      // dy, 1 / the number of pixels of each window of an image -> dx
};

// Output rows [begin, end) of one image, counted over depth and height, and channels [first, last).
// For kMaxGrad these are rows of windows, for kAvgGrad rows of dx.
struct PoolSlice {
  int64_t image = 0;
  int64_t begin = 0, end = 0;
  int64_t first = 0, last = 0;
};

// Computes the slice of `out` from `a` (and `b`). For kMaxGrad the caller has zeroed dx,
// unless the windows tile the image. T: float, double, and for the Max kinds the integer types.
template <class T>
void PoolRows(PoolKind kind, const PoolShape& s, const PoolSlice& slice, const T* a, const T* b,
              T* out);

}  // namespace weir

#endif  // WEIR_KERNELS_NN_POOL_ROWS_H_
