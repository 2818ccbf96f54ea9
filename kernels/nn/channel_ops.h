#ifndef WEIR_KERNELS_NN_CHANNEL_OPS_H_
#define WEIR_KERNELS_NN_CHANNEL_OPS_H_

#include <cstdint>

// Vectorized loops over the rows of matrices [rows, cols], for per-channel ops. Single-threaded.
namespace weir::channel_ops {

// Computes y = x + bias for every row.
void AddRow(const float* x, const float* bias, float* y, int64_t rows, int64_t cols);
void AddRow(const double* x, const double* bias, double* y, int64_t rows, int64_t cols);

// sums[c] += the sum of column c. The error grows with the square root of the number of rows.
void AddColumns(const float* x, int64_t rows, int64_t cols, float* sums);
void AddColumns(const double* x, int64_t rows, int64_t cols, double* sums);

// Returns the sum of squares of n elements.
double SumOfSquares(const float* x, int64_t n);
double SumOfSquares(const double* x, int64_t n);

// sums[c] += sum of (x - shift[c]), squares[c] += sum of (x - shift[c])^2.
void AddMoments(const float* x, const float* shift, int64_t rows, int64_t cols, float* sums,
                float* squares);
// sums[c] += sum of dy, products[c] += sum of dy * (x - mean[c]).
void AddProducts(const float* dy, const float* x, const float* mean, int64_t rows, int64_t cols,
                 float* sums, float* products);
// y = x * factor[c] + term[c]
void ScaleRows(const float* x, const float* factor, const float* term, float* y, int64_t rows,
               int64_t cols);
// dx = dy * a[c] + x * b[c] + d[c]
void CombineRows(const float* dy, const float* x, const float* a, const float* b, const float* d,
                 float* dx, int64_t rows, int64_t cols);

}  // namespace weir::channel_ops

#endif  // WEIR_KERNELS_NN_CHANNEL_OPS_H_
