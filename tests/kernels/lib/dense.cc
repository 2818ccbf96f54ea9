#include "weir/tests/kernels/lib/dense.h"

#include <algorithm>
#include <cmath>

namespace weir::dense {

complex128 At(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case DT_HALF:
      return static_cast<double>(t.data<half>()[i]);
    case DT_FLOAT:
      return t.data<float>()[i];
    case DT_DOUBLE:
      return t.data<double>()[i];
    case DT_COMPLEX64:
      return complex128(t.data<std::complex<float>>()[i]);
    default:
      return t.data<complex128>()[i];
  }
}

Matrix Read(const Tensor& t, int64_t b) {
  Matrix m(t.dim(-2), t.dim(-1));
  const int64_t size = m.rows * m.columns;
  for (int64_t i = 0; i < size; ++i) m(i / m.columns, i % m.columns) = At(t, b * size + i);
  return m;
}

Tensor Write(DataType type, const Shape& shape, const std::vector<Matrix>& stack) {
  Tensor t(type, shape);
  int64_t at = 0;
  for (const Matrix& m : stack) {
    for (int64_t i = 0; i < m.rows * m.columns; ++i, ++at) {
      const complex128 x = m(i / m.columns, i % m.columns);
      if (type == DT_DOUBLE) {
        t.data<double>()[at] = x.real();
      } else {
        t.data<complex128>()[at] = x;
      }
    }
  }
  return t;
}

Matrix Multiply(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) {
      for (int64_t k = 0; k < a.columns; ++k) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

Matrix Adjoint(const Matrix& a) {
  Matrix b(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) b(j, i) = std::conj(a(i, j));
  }
  return b;
}

Matrix Identity(int64_t n) {
  Matrix m(n, n);
  for (int64_t i = 0; i < n; ++i) m(i, i) = 1;
  return m;
}

Matrix Solve(Matrix a, Matrix b) {
  const int64_t n = a.rows;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k; i < n; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    }
    for (int64_t j = 0; j < n; ++j) std::swap(a(k, j), a(pivot, j));
    for (int64_t j = 0; j < b.columns; ++j) std::swap(b(k, j), b(pivot, j));
    for (int64_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const complex128 factor = a(i, k) / a(k, k);
      for (int64_t j = 0; j < n; ++j) a(i, j) -= factor * a(k, j);
      for (int64_t j = 0; j < b.columns; ++j) b(i, j) -= factor * b(k, j);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) b(i, j) /= a(i, i);
  }
  return b;
}

complex128 Determinant(const Matrix& a) {
  if (a.rows == 0) return 1;
  complex128 sum = 0;
  for (int64_t k = 0; k < a.columns; ++k) {
    Matrix minor(a.rows - 1, a.columns - 1);
    for (int64_t i = 1; i < a.rows; ++i) {
      for (int64_t j = 0, to = 0; j < a.columns; ++j) {
        if (j != k) minor(i - 1, to++) = a(i, j);
      }
    }
    sum += (k % 2 == 0 ? 1.0 : -1.0) * a(0, k) * Determinant(minor);
  }
  return sum;
}

double LargestDifference(const Matrix& a, const Matrix& b) {
  double largest = a.rows == b.rows && a.columns == b.columns ? 0 : HUGE_VAL;
  for (int64_t i = 0; largest < HUGE_VAL && i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) {
      const double d = std::abs(a(i, j) - b(i, j));
      largest = d <= largest ? largest : d;  // propagates NaN
    }
  }
  return largest;
}

Reference Each(MatrixFunction f) {
  return [f = std::move(f)](const Node& node, const Tensors& inputs) -> Tensors {
    const Shape batch = inputs[0].shape().Sub(0, -2);
    std::vector<Matrix> results;
    for (int64_t b = 0; b < batch.num_elements(); ++b) {
      std::vector<Matrix> arguments;
      for (const Tensor& t : inputs) {
        if (t.rank() >= 2) arguments.push_back(Read(t, b));
      }
      results.push_back(f(node, arguments));
    }
    const Shape shape = results.empty() ? inputs[0].shape()
                                        : batch.Concatenate({results[0].rows, results[0].columns});
    return {Write(inputs[0].dtype(), shape, results)};
  };
}

}  // namespace weir::dense
