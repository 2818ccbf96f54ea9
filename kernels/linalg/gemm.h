#ifndef WEIR_KERNELS_LINALG_GEMM_H_
#define WEIR_KERNELS_LINALG_GEMM_H_

#include <cstdint>
#include <limits>

namespace weir::gemm {

// A float matrix in place: element (i, j) is at data[i * row + j * column], where `row` or `column`
// is 1.
struct Matrix {
  const float* data = nullptr;
  int64_t row = 0, column = 0;
};

// The width of a panel of B. The last panel is padded with zeros.
int64_t PanelColumns();
inline int64_t Panels(int64_t columns) { return (columns + PanelColumns() - 1) / PanelColumns(); }

// Packs columns [first, first + columns) of B, which has `rows` rows, to packed[Panels(columns),
// rows, PanelColumns()].
void Pack(const Matrix& b, int64_t rows, int64_t first, int64_t columns, float* packed);

// The epilogue of a product with a bias: adds the column's bias, where `bias` points to that of the
// first column, and clamps to the bounds. NaN propagates.
struct Epilogue {
  const float* bias = nullptr;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  // Returns the epilogue for a block that begins `column` columns further right.
  Epilogue At(int64_t column) const {
    return {bias == nullptr ? nullptr : bias + column, low, high};
  }
};

// C[rows, columns] = or += A[rows, depth] B[depth, columns], on the calling thread. A begins at the
// block's first row, `packed` and C at its first column; C's row stride is c_row. `scratch` has
// ScratchFloats() floats, which is 0 if A is used in place.
int64_t ScratchFloats(const Matrix& a, int64_t rows, int64_t depth);
void Multiply(const Matrix& a, int64_t rows, int64_t depth, const float* packed, int64_t columns,
              bool adds, float* c, int64_t c_row, float* scratch, const Epilogue& epilogue = {});

// The same with columns [first, first + columns) of an unpacked B, which it packs.
void PackAndMultiply(const Matrix& a, int64_t rows, int64_t depth, const Matrix& b, int64_t first,
                     int64_t columns, float* packed, bool adds, float* c, int64_t c_row,
                     float* scratch, const Epilogue& epilogue = {});

// The same for few rows and an unpacked B, which is read once.
void MultiplyFewRows(const Matrix& a, int64_t rows, int64_t depth, const Matrix& b, int64_t columns,
                     bool adds, float* c, int64_t c_row);

}  // namespace weir::gemm

#endif  // WEIR_KERNELS_LINALG_GEMM_H_
