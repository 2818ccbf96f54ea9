#ifndef WEIR_KERNELS_LIB_LAYOUT_H_
#define WEIR_KERNELS_LIB_LAYOUT_H_

#include <algorithm>

#include "weir/core/runtime/thread_pool.h"

namespace weir {

// Transposes `batch` matrices [rows, cols] to [cols, rows], in blocks that fit into the L1 cache.
// With channels as rows and pixels as cols, converts "NCHW" to "NHWC", and vice versa with both
// exchanged.
template <class T>
void TransposeMatrices(ThreadPool& pool, const T* from, T* to, int64_t batch, int64_t rows,
                       int64_t cols) {
  constexpr int64_t kBlock = 16;
  const int64_t bands = (rows + kBlock - 1) / kBlock;
  pool.ParallelFor(batch * bands, 1.0 * kBlock * static_cast<double>(cols),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const T* source = from + i / bands * rows * cols;
                       T* target = to + i / bands * rows * cols;
                       const int64_t r0 = i % bands * kBlock, r1 = std::min(rows, r0 + kBlock);
                       for (int64_t c0 = 0; c0 < cols; c0 += kBlock) {
                         const int64_t c1 = std::min(cols, c0 + kBlock);
                         for (int64_t c = c0; c < c1; ++c) {
                           for (int64_t r = r0; r < r1; ++r)
                             target[c * rows + r] = source[r * cols + c];
                         }
                       }
                     }
                   });
}

// Converts elementwise, in parallel.
template <class From, class To>
void ConvertElements(ThreadPool& pool, const From* from, To* to, int64_t n) {
  pool.ParallelFor(n, 0.5, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<To>(from[i]);
  });
}

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_LAYOUT_H_
