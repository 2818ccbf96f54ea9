#ifndef WEIR_KERNELS_NN_SOFTMAX_H_
#define WEIR_KERNELS_NN_SOFTMAX_H_

#include <cstdint>

#include "weir/core/tensor/shape.h"

// Softmax of rows of n logits, vectorized; T is float or double. x and y may be the same memory.
namespace weir::softmax {

// y = exp(x) / sum(exp(x)) for each row. With a buffer for two rows, y is written with non-temporal
// stores (non_temporal.h). Its rows are then aligned to cache lines, there is at least one row, and
// x is different memory.
void Softmax(const float* x, float* y, int64_t rows, int64_t n, float* buffer = nullptr);
void Softmax(const double* x, double* y, int64_t rows, int64_t n, double* buffer = nullptr);
// y = x - log(sum(exp(x))) for each row.
void LogSoftmax(const float* x, float* y, int64_t rows, int64_t n);
void LogSoftmax(const double* x, double* y, int64_t rows, int64_t n);
// *loss = -sum(labels * log(softmax(x))), y = softmax(x) - labels, for one row.
void CrossEntropy(const float* x, const float* labels, float* loss, float* y, int64_t n);
void CrossEntropy(const double* x, const double* labels, double* loss, double* y, int64_t n);
// The same for labels that are 1 at `label`, which is in [0, n), and 0 elsewhere.
void SparseCrossEntropy(const float* x, int64_t label, float* loss, float* y, int64_t n);
void SparseCrossEntropy(const double* x, int64_t label, double* loss, double* y, int64_t n);
// The parts of softmaxes, for each row: *max = max(x), *sum = sum(exp(x - max)), and, unless y is
// null, y = exp(x - max). With `finite`, a maximum that is not finite is replaced by 0.
template <class T>
struct Parts {
  T *max, *sum, *y;
  bool finite;
};
void FindParts(const float* x, const Parts<float>& to, int64_t rows, int64_t n);
void FindParts(const double* x, const Parts<double>& to, int64_t rows, int64_t n);

// Checks the argument shapes of SparseSoftmaxCrossEntropyWithLogits. Returns INVALID_ARGUMENT if
// they are invalid.
absl::Status CheckSparseLabels(const Shape& logits, const Shape& labels);

}  // namespace weir::softmax

#endif  // WEIR_KERNELS_NN_SOFTMAX_H_
