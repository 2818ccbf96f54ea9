#ifndef WEIR_KERNELS_NN_LRN_ROWS_H_
#define WEIR_KERNELS_NN_LRN_ROWS_H_

#include <cstdint>

// The inner loops of local response normalization, for float.
namespace weir {

// The attributes. With n_c = bias + alpha * sum of x_k^2 over |k - c| <= radius:
//   y_c = x_c * n_c^-beta
//   dx_c = dy_c * n_c^-beta - 2 alpha beta x_c * sum over |k - c| <= radius of dy_k y_k / n_k
struct Lrn {
  int64_t radius = 5;
  float bias = 1, alpha = 1, beta = 0.5f;
};

// Normalizes pixels of n channels each: y from x.
void LrnForward(const Lrn& lrn, int64_t pixels, int64_t n, const float* x, float* y);
// Computes dx from dy, x and y.
void LrnBackward(const Lrn& lrn, int64_t pixels, int64_t n, const float* dy, const float* x,
                 const float* y, float* dx);

}  // namespace weir

#endif  // WEIR_KERNELS_NN_LRN_ROWS_H_
