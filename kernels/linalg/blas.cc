#include "weir/kernels/linalg/blas.h"

#include <algorithm>

// Triangular matrices and triangles of results, reduced to products and small blocks by recursion:
//
//   [A 0]^-1 [X]   [      A^-1 X        ]
//   [B C]    [Y] = [C^-1 (Y - B A^-1 X) ]
//
// halves a system into two and a product, which does most of the work at the speed of a product
// (E. Elmroth, F. Gustavson, I. Jonsson and B. Kagstrom, "Recursive Blocked Algorithms and Hybrid
// Data Structures for Dense Matrix Library Software", 2004). Every case of BLAS is this one: an
// upper triangular matrix is lower triangular with rows and columns in reverse order, and X A = B
// is a system for the transposed matrices. Views express both without moving an element.
namespace weir::blas {

namespace {

// Splits n > kBlock into two parts, of which the first is a multiple of kBlock.
int64_t FirstPart(int64_t n) { return (n / 2 + kBlock - 1) / kBlock * kBlock; }

// Blocks of up to this order, and systems with up to this many columns, are solved without vectors.
constexpr int64_t kTinyOrder = 4, kFewColumns = 2;

// c(i, j) += alpha a(i, :) b(:, j).
template <class T>
void AddDot(int64_t i, int64_t j, int64_t k, T alpha, const View<T>& a, const View<T>& b,
            const View<T>& c) {
  T sum = Product(a(i, 0), b(0, j));
  for (int64_t p = 1; p < k; ++p) sum += Product(a(i, p), b(p, j));
  c.data[i * c.row + j * c.column] += Product(alpha, sum);
}

// Calls block(columns, b, row) for row-major columns of B[n, columns], some at a time, which are
// copied if B is not row-major.
template <class T, class F>
void ForRowMajor(int64_t n, int64_t columns, const View<T>& b, const F& block) {
  if (b.column == 1) return block(columns, b.data, b.row);
  constexpr int64_t kColumns = 64;
  Uninitialized<T, kBlock * kColumns> memory;
  T* const copy = memory.data();
  for (int64_t first = 0; first < columns; first += kColumns) {
    const int64_t some = std::min(kColumns, columns - first);
    T* const from = b.data + first * b.column;
    for (int64_t j = 0; j < some; ++j) {
      for (int64_t i = 0; i < n; ++i) copy[i * kColumns + j] = from[i * b.row + j * b.column];
    }
    block(some, copy, kColumns);
    for (int64_t j = 0; j < some; ++j) {
      for (int64_t i = 0; i < n; ++i) from[i * b.row + j * b.column] = copy[i * kColumns + j];
    }
  }
}

// SolveLower without vectors.
template <class T>
void SolveColumns(int64_t n, int64_t columns, const View<T>& t, bool unit, const View<T>& b) {
  for (int64_t c = 0; c < columns; ++c) {
    T* const x = b.data + c * b.column;
    for (int64_t i = 0; i < n; ++i) {
      T rest = x[i * b.row];
      for (int64_t j = 0; j < i; ++j) rest -= Product(t(i, j), x[j * b.row]);
      x[i * b.row] = unit ? rest : rest / t(i, i);
    }
  }
}

}  // namespace

template <class T>
void Multiply(int64_t m, int64_t n, int64_t k, T alpha, View<T> a, View<T> b, View<T> c) {
  if (m == 0 || n == 0 || k == 0) return;
  if (m * n * k <= kTiny) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < m; ++i) AddDot(i, j, k, alpha, a, b, c);
    }
    return;
  }
  // Makes C column-major with positive strides.
  if (c.row < 0) {
    a = a.RowsReversed(m);
    c = c.RowsReversed(m);
  }
  if (c.column < 0) {
    b = b.ColumnsReversed(n);
    c = c.ColumnsReversed(n);
  }
  if (c.row == 1) return KernelsOf<T>().multiply(m, n, k, alpha, a, b, c.data, c.column);
  KernelsOf<T>().multiply(n, m, k, alpha, b.Transposed(), a.Transposed(), c.data, c.row);
}

template <class T>
void MultiplyLower(int64_t n, int64_t k, T alpha, const View<T>& a, const View<T>& b,
                   const View<T>& c) {
  if (k == 0) return;
  if (n * n * k <= kTiny) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = j; i < n; ++i) AddDot(i, j, k, alpha, a, b, c);
    }
    return;
  }
  if (n <= kBlock) {
    Uninitialized<T, kBlock * kBlock> memory;
    const View<T> square = {memory.data(), 1, kBlock};
    std::fill_n(square.data, kBlock * n, T(0));
    Multiply(n, n, k, alpha, a, b, square);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = j; i < n; ++i) c.data[i * c.row + j * c.column] += square(i, j);
    }
    return;
  }
  const int64_t first = FirstPart(n), rest = n - first;
  MultiplyLower(first, k, alpha, a, b, c);
  Multiply(rest, first, k, alpha, a.At(first, 0), b, c.At(first, 0));
  MultiplyLower(rest, k, alpha, a.At(first, 0), b.At(0, first), c.At(first, first));
}

template <class T>
void SolveLower(int64_t n, int64_t columns, const View<T>& t, bool unit, const View<T>& b) {
  if (n <= kTinyOrder || (n <= kBlock && columns <= kFewColumns))
    return SolveColumns(n, columns, t, unit, b);
  if (n <= kBlock) {
    ForRowMajor(n, columns, b, [&](int64_t some, T* x, int64_t row) {
      KernelsOf<T>().solve_block(n, some, t, unit, x, row);
    });
    return;
  }
  const int64_t first = FirstPart(n), rest = n - first;
  SolveLower(first, columns, t, unit, b);
  Multiply(rest, columns, first, T(-1), t.At(first, 0), b, b.At(first, 0));
  SolveLower(rest, columns, t.At(first, first), unit, b.At(first, 0));
}

template <class T>
void ScaleByLower(int64_t n, int64_t columns, const View<T>& t, bool unit, const View<T>& b) {
  if (n <= kBlock) {
    ForRowMajor(n, columns, b, [&](int64_t some, T* x, int64_t row) {
      KernelsOf<T>().scale_block(n, some, t, unit, x, row);
    });
    return;
  }
  const int64_t first = FirstPart(n), rest = n - first;
  ScaleByLower(rest, columns, t.At(first, first), unit, b.At(first, 0));
  Multiply(rest, columns, first, T(1), t.At(first, 0), b, b.At(first, 0));
  ScaleByLower(first, columns, t, unit, b);
}

template <class T>
void MultiplySymmetric(bool lower, bool adjoint, int64_t n, const T* a, int64_t step, const T* x,
                       T* y) {
  constexpr int64_t kSome = 4;
  const Kernels<T>& kernels = KernelsOf<T>();
  // The upper triangle's columns are the rows of the lower one's adjoint: z = A* w is the
  // conjugate of A^T times the conjugate of w.
  const auto other = [adjoint](T v) { return adjoint ? Conjugate(v) : v; };
  Scratch<T> scratch(n);
  T* const w = scratch.data();
  for (int64_t i = 0; i < n; ++i) w[i] = other(x[i]);
  for (int64_t j = 0; j < n; j += kSome) {
    const int64_t some = std::min(kSome, n - j);
    for (int64_t c = j; c < j + some; ++c) {
      const T diagonal = a[c * step + c];
      y[c] += Product(adjoint ? T(std::real(diagonal)) : diagonal, x[c]);
      for (int64_t r = lower ? c + 1 : j; r < (lower ? j + some : c); ++r) {
        const T e = a[c * step + r];
        y[r] += Product(e, x[c]);
        y[c] += Product(other(e), x[r]);
      }
    }
    const int64_t begin = lower ? j + some : 0, rows = lower ? n - begin : j;
    if (rows == 0) continue;
    T dots[kSome] = {};
    kernels.add_both(rows, some, a + j * step + begin, step, x + j, y + begin, w + begin, dots);
    for (int64_t c = 0; c < some; ++c) y[j + c] += other(dots[c]);
  }
}

#define WEIR_INSTANTIATE(T)                                                           \
  template void Multiply(int64_t, int64_t, int64_t, T, View<T>, View<T>, View<T>);    \
  template void MultiplyLower(int64_t, int64_t, T, const View<T>&, const View<T>&,    \
                              const View<T>&);                                        \
  template void SolveLower(int64_t, int64_t, const View<T>&, bool, const View<T>&);   \
  template void ScaleByLower(int64_t, int64_t, const View<T>&, bool, const View<T>&); \
  template void MultiplySymmetric(bool, bool, int64_t, const T*, int64_t, const T*, T*);

WEIR_INSTANTIATE(float)
WEIR_INSTANTIATE(double)
WEIR_INSTANTIATE(std::complex<float>)
WEIR_INSTANTIATE(std::complex<double>)

}  // namespace weir::blas
