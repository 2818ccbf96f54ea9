#ifndef WEIR_KERNELS_GEMM_H_
#define WEIR_KERNELS_GEMM_H_

#include <cstdint>
#include <limits>

namespace weir::gemm {

// A matrix of floats as it lies: element (i, j) at data[i * row + j * column], where `row` or
// `column` is 1.
struct Matrix {
  const float* data = nullptr;
  int64_t row = 0, column = 0;
};

// Products take B in panels of so many columns, the last one filled up with zeros.
int64_t PanelColumns();
inline int64_t Panels(int64_t columns) { return (columns + PanelColumns() - 1) / PanelColumns(); }

// Copies columns [first, first + columns) of B, which has `rows`, to packed[Panels(columns), rows,
// PanelColumns()].
void Pack(const Matrix& b, int64_t rows, int64_t first, int64_t columns, float* packed);

// What becomes of the elements of a finished product, if there is a bias: that of its column, the
// first one's first, is added, and what is below or above the bounds becomes them. A NaN stays one.
struct Epilogue {
  const float* bias = nullptr;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  // The same for what begins `column` columns further on.
  Epilogue At(int64_t column) const { return {bias == nullptr ? nullptr : bias + column, low, high}; }
};

// C[rows, columns] = A[rows, depth] B[depth, columns], or is added to, on this thread. A begins at
// the block's first row, `packed` and C at its first column; C's rows are c_row apart. `scratch` is
// of ScratchFloats(), which is 0 where A is taken as it lies.
int64_t ScratchFloats(const Matrix& a, int64_t rows, int64_t depth);
void Multiply(const Matrix& a, int64_t rows, int64_t depth, const float* packed, int64_t columns,
              bool adds, float* c, int64_t c_row, float* scratch, const Epilogue& epilogue = {});

// The same with columns [first, first + columns) of B as it lies, which it packs.
void PackAndMultiply(const Matrix& a, int64_t rows, int64_t depth, const Matrix& b, int64_t first,
                     int64_t columns, float* packed, bool adds, float* c, int64_t c_row,
                     float* scratch, const Epilogue& epilogue = {});

// The same of few rows with B as it lies, which is read once.
void MultiplyFewRows(const Matrix& a, int64_t rows, int64_t depth, const Matrix& b, int64_t columns,
                     bool adds, float* c, int64_t c_row);

}  // namespace weir::gemm

#endif  // WEIR_KERNELS_GEMM_H_
