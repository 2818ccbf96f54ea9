#ifndef WEIR_TESTS_KERNELS_LIB_DENSE_H_
#define WEIR_TESTS_KERNELS_LIB_DENSE_H_

#include <complex>
#include <functional>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/tensor.h"

// Small dense matrices for the linear algebra reference implementations: textbook methods in
// complex128.
namespace weir::dense {

using complex128 = std::complex<double>;

struct Matrix {
  Matrix(int64_t m, int64_t n) : rows(m), columns(n), at_(static_cast<size_t>(m * n)) {}
  complex128& operator()(int64_t i, int64_t j) { return at_[static_cast<size_t>(i * columns + j)]; }
  const complex128& operator()(int64_t i, int64_t j) const {
    return at_[static_cast<size_t>(i * columns + j)];
  }
  int64_t rows, columns;

 private:
  std::vector<complex128> at_;
};

// Element i of a real or complex tensor.
complex128 At(const Tensor& t, int64_t i);
// Returns matrix b of the last two dimensions.
Matrix Read(const Tensor& t, int64_t b);
// Returns a stack of matrices as a tensor of type DT_DOUBLE or DT_COMPLEX128.
Tensor Write(DataType type, const Shape& shape, const std::vector<Matrix>& stack);

Matrix Multiply(const Matrix& a, const Matrix& b);
Matrix Adjoint(const Matrix& a);
// Solves a x = b by Gauss-Jordan elimination with full pivoting.
Matrix Solve(Matrix a, Matrix b);
Matrix Identity(int64_t n);
// Computes the determinant by expansion along the first row.
complex128 Determinant(const Matrix& a);
double LargestDifference(const Matrix& a, const Matrix& b);

// Applies `f` to matrix b of each input, for each b. The output's shape is the batch shape of input
// 0 followed by the two dimensions of f's result.
using MatrixFunction = std::function<Matrix(const Node& node, const std::vector<Matrix>& inputs)>;
using Reference = std::function<Tensors(const Node& node, const Tensors& inputs)>;
Reference Each(MatrixFunction f);

}  // namespace weir::dense

#endif  // WEIR_TESTS_KERNELS_LIB_DENSE_H_
