#ifndef WEIR_KERNELS_NN_RNN_H_
#define WEIR_KERNELS_NN_RNN_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "weir/core/runtime/kernel.h"

// Shared code of the kernels of recurrent cells.
namespace weir {

inline float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// Concatenates two matrices along the columns: the rows of `left` (n wide) and of `right` (m wide).
template <class T>
void JoinColumns(int64_t rows, const T* left, int64_t n, const T* right, int64_t m, T* out) {
  for (int64_t r = 0; r < rows; ++r) {
    out = std::copy_n(left + r * n, n, out);
    out = std::copy_n(right + r * m, m, out);
  }
}

void AddGruCpu(KernelRegistry* r);  // gru_cpu.cc

}  // namespace weir

#endif  // WEIR_KERNELS_NN_RNN_H_
