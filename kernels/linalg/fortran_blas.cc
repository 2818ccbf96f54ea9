#include <algorithm>
#include <cstddef>
#include <utility>

#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/linalg/blas.h"

// The routines of BLAS that LAPACK calls most, by their Fortran names: the linker prefers them to
// those of the reference BLAS, which provides the rest. Arguments and results are those of the
// reference, except for the order of additions; invalid arguments are not reported. Results of beta
// = 0 or alpha = 0 do not depend on operands that the reference does not read.
//
// Each routine throws StepCancelled if the step is cancelled: no part of a decomposition takes long
// without them. The exception passes through LAPACK, which has unwind tables like all code of its
// platform, and owns nothing: its memory is its callers' or on the stack.
namespace weir::blas {

namespace {

bool Is(const char* letter, char upper) { return (*letter & ~0x20) == upper; }

template <class T>
View<T> ViewOf(const char* form, const T* a, int step) {
  const View<T> plain = {const_cast<T*>(a), 1, step};
  if (Is(form, 'N')) return plain;
  View<T> other = plain.Transposed();
  other.conjugate = Is(form, 'C') && !std::is_floating_point_v<T>;
  return other;
}

template <class T>
void Scale(int64_t n, T beta, T* y) {
  if (beta == T(1)) return;
  for (int64_t i = 0; i < n; ++i) y[i] = beta == T(0) ? T(0) : Product(beta, y[i]);
}

// Element i of Fortran's vector x[n] with a stride, which counts from the end if it is negative.
template <class T>
T* First(int64_t n, T* x, int64_t stride) {
  return stride < 0 ? x - (n - 1) * stride : x;
}

// A contiguous copy of factor * x, or of its conjugate.
template <class T>
class Copy {
 public:
  Copy(int64_t n, T factor, const T* x, int64_t stride, bool conjugate = false) : memory_(n) {
    const T* const from = First(n, x, stride);
    for (int64_t i = 0; i < n; ++i) {
      const T e = from[i * stride];
      data()[i] = Product(factor, conjugate ? Conjugate(e) : e);
    }
  }
  T* data() { return memory_.data(); }

 private:
  Scratch<T> memory_;
};

// Calls add(y) for a contiguous y = beta * y, and stores it. add may return the elements
// conjugated.
template <class T, class F>
void Update(int64_t n, T beta, T* y, int64_t stride, const F& add) {
  if (stride == 1) {
    Scale(n, beta, y);
    return add(y);
  }
  T* const first = First(n, y, stride);
  Scratch<T> memory(n);
  T* const copy = memory.data();
  for (int64_t i = 0; i < n; ++i) copy[i] = beta == T(0) ? T(0) : first[i * stride];
  Scale(n, beta, copy);
  add(copy);
  for (int64_t i = 0; i < n; ++i) first[i * stride] = copy[i];
}

// Gemv for tiny matrices.
template <class T>
void GemvTiny(const char* form, int64_t m, int64_t n, T alpha, const T* a, int64_t step, const T* x,
              int64_t x_stride, T beta, T* y, int64_t y_stride) {
  const bool plain = Is(form, 'N'), adjoint = Is(form, 'C');
  x = First(plain ? n : m, x, x_stride);
  y = First(plain ? m : n, y, y_stride);
  for (int64_t i = 0; i < (plain ? m : n); ++i) Scale(1, beta, y + i * y_stride);
  if (alpha == T(0)) return;
  for (int64_t j = 0; j < n; ++j, a += step) {
    if (plain) {
      const T factor = Product(alpha, x[j * x_stride]);
      for (int64_t i = 0; i < m; ++i) y[i * y_stride] += Product(a[i], factor);
      continue;
    }
    T sum(0);
    for (int64_t i = 0; i < m; ++i) {
      sum += Product(adjoint ? Conjugate(a[i]) : a[i], x[i * x_stride]);
    }
    y[j * y_stride] += Product(alpha, sum);
  }
}

template <class T>
void Gemv(const char* form, int64_t m, int64_t n, T alpha, const T* a, int step, const T* x,
          int x_stride, T beta, T* y, int y_stride) {
  if (m == 0 || n == 0 || (alpha == T(0) && beta == T(1))) return;
  if (m * n <= kTiny) return GemvTiny(form, m, n, alpha, a, step, x, x_stride, beta, y, y_stride);
  const bool plain = Is(form, 'N'), adjoint = Is(form, 'C') && !std::is_floating_point_v<T>;
  Update(plain ? m : n, beta, y, y_stride, [&](T* to) {
    if (alpha == T(0)) return;
    if (plain) {
      Copy<T> right(n, alpha, x, x_stride);
      return KernelsOf<T>().add_columns(m, n, a, step, right.data(), to);
    }
    if (!adjoint) {
      Copy<T> right(m, alpha, x, x_stride);
      return KernelsOf<T>().add_dots(m, n, a, step, right.data(), to);
    }
    // A* x is the conjugate of A^T times the conjugate of x.
    Copy<T> right(m, T(1), x, x_stride, /*conjugate=*/true);
    Scratch<T> sums(n);
    std::fill_n(sums.data(), n, T(0));
    KernelsOf<T>().add_dots(m, n, a, step, right.data(), sums.data());
    for (int64_t i = 0; i < n; ++i) to[i] += Product(alpha, Conjugate(sums.data()[i]));
  });
}

// A += alpha x y^T or alpha x y*.
template <class T>
void Ger(bool conjugate, int64_t m, int64_t n, T alpha, const T* x, int x_stride, const T* y,
         int y_stride, T* a, int step) {
  if (m == 0 || n == 0 || alpha == T(0)) return;
  if (m * n <= kTiny) {
    x = First(m, x, x_stride);
    y = First(n, y, y_stride);
    for (int64_t j = 0; j < n; ++j, a += step, y += y_stride) {
      const T factor = Product(alpha, conjugate ? Conjugate(*y) : *y);
      for (int64_t i = 0; i < m; ++i) a[i] += Product(x[i * x_stride], factor);
    }
    return;
  }
  Copy<T> right(n, alpha, y, y_stride, conjugate);
  if (x_stride == 1) return KernelsOf<T>().add_outer(m, n, x, right.data(), a, step);
  Copy<T> left(m, T(1), x, x_stride);
  KernelsOf<T>().add_outer(m, n, left.data(), right.data(), a, step);
}

template <class T>
void Symv(bool adjoint, const char* triangle, int n, T alpha, const T* a, int step, const T* x,
          int x_stride, T beta, T* y, int y_stride) {
  if (n == 0 || (alpha == T(0) && beta == T(1))) return;
  Update(n, beta, y, y_stride, [&](T* to) {
    if (alpha == T(0)) return;
    Copy<T> right(n, alpha, x, x_stride);
    MultiplySymmetric(Is(triangle, 'L'), adjoint, n, a, step, right.data(), to);
  });
}

template <class T>
void Gemm(const char* form_a, const char* form_b, int m, int n, int k, T alpha, const T* a,
          int a_step, const T* b, int b_step, T beta, T* c, int c_step) {
  if (m == 0 || n == 0) return;
  for (int64_t j = 0; j < n; ++j) Scale(m, beta, c + j * c_step);
  if (alpha == T(0)) return;
  Multiply<T>(m, n, k, alpha, ViewOf(form_a, a, a_step), ViewOf(form_b, b, b_step), {c, 1, c_step});
}

// T and B of a triangular operation, as SolveLower and ScaleByLower expect them.
template <class T>
struct Triangular {
  Triangular(const char* side, const char* triangle, const char* form, const char* diagonal, int m,
             int n, const T* a, int a_step, T* b, int b_step)
      : order(m), columns(n), unit(Is(diagonal, 'U')), t(ViewOf(form, a, a_step)), x{b, 1, b_step} {
    bool lower = Is(triangle, 'L') == Is(form, 'N');
    if (Is(side, 'R')) {
      std::swap(order, columns);
      t = t.Transposed();
      x = x.Transposed();
      lower = !lower;
    }
    if (lower) return;
    t = t.RowsReversed(order).ColumnsReversed(order);
    x = x.RowsReversed(order);
  }
  int64_t order, columns;
  bool unit;
  View<T> t, x;
};

template <class T, class F>
void ApplyTriangular(const F& apply, const char* side, const char* triangle, const char* form,
                     const char* diagonal, int m, int n, T alpha, const T* a, int a_step, T* b,
                     int b_step) {
  if (m == 0 || n == 0) return;
  for (int64_t j = 0; j < n; ++j) Scale(m, alpha, b + j * b_step);
  if (alpha == T(0)) return;
  const Triangular<T> o(side, triangle, form, diagonal, m, n, a, a_step, b, b_step);
  apply(o.order, o.columns, o.t, o.unit, o.x);
}

// A triangle of a symmetric or self-adjoint result: C = beta C + the products that add(a, b, alpha)
// adds. `adjoint`: the diagonal is real.
template <class T>
struct SymmetricResult {
  SymmetricResult(bool is_adjoint, const char* triangle, int order, T beta, T* result, int step)
      : adjoint(is_adjoint), lower(Is(triangle, 'L')), n(order), c{result, 1, step} {
    for (int64_t j = 0; j < n; ++j) {
      T* const column = result + j * step;
      Scale(lower ? n - j : j + 1, beta, lower ? column + j : column);
    }
    MakeDiagonalReal();
  }
  // The upper triangle is the lower one of the transposed result.
  void Add(int64_t k, T alpha, const View<T>& a, const View<T>& b) const {
    if (alpha == T(0)) return;
    if (lower) return MultiplyLower(n, k, alpha, a, b, c);
    MultiplyLower(n, k, alpha, b.Transposed(), a.Transposed(), c.Transposed());
  }
  void MakeDiagonalReal() const {
    for (int64_t i = 0; adjoint && i < n; ++i) {
      T& x = c.data[i * c.row + i * c.column];
      x = T(std::real(x));
    }
  }
  bool adjoint, lower;
  int64_t n;
  View<T> c;
};

// The transposed or adjoint matrix.
template <class T>
View<T> Other(bool adjoint, View<T> a) {
  if (adjoint) a.conjugate = !a.conjugate;
  return a.Transposed();
}

// C = alpha A A' + beta C, where ' is the transposed or adjoint matrix, or alpha A' A.
template <class T>
void Syrk(bool adjoint, const char* triangle, const char* form, int n, int k, T alpha, const T* a,
          int a_step, T beta, T* c, int c_step) {
  if (n == 0 || ((alpha == T(0) || k == 0) && beta == T(1))) return;
  const SymmetricResult<T> result(adjoint, triangle, n, beta, c, c_step);
  const View<T> left = ViewOf(form, a, a_step);
  result.Add(k, alpha, left, Other(adjoint, left));
  result.MakeDiagonalReal();
}

// C = alpha A B' + alpha' B A' + beta C.
template <class T>
void Syr2k(bool adjoint, const char* triangle, const char* form, int n, int k, T alpha, const T* a,
           int a_step, const T* b, int b_step, T beta, T* c, int c_step) {
  if (n == 0 || ((alpha == T(0) || k == 0) && beta == T(1))) return;
  const SymmetricResult<T> result(adjoint, triangle, n, beta, c, c_step);
  const View<T> one = ViewOf(form, a, a_step), two = ViewOf(form, b, b_step);
  result.Add(k, alpha, one, Other(adjoint, two));
  result.Add(k, adjoint ? Conjugate(alpha) : alpha, two, Other(adjoint, one));
  result.MakeDiagonalReal();
}

}  // namespace

}  // namespace weir::blas

// Every argument is a pointer, and the lengths of strings come last.
extern "C" {

// The routines of all types: `symmetric` is the letters of a self-adjoint matrix's routines, whose
// alpha and beta have type A (syrk) and B (syr2k); `ger` those of an outer product with y^T or y*.
#define WEIR_DEFINE(T, p)                                                                          \
  void p##gemv_(const char* form, const int* m, const int* n, const T* alpha, const T* a,          \
                const int* lda, const T* x, const int* incx, const T* beta, T* y, const int* incy, \
                size_t) {                                                                          \
    weir::ThrowIfCancelled();                                                                      \
    weir::blas::Gemv(form, *m, *n, *alpha, a, *lda, x, *incx, *beta, y, *incy);                    \
  }                                                                                                \
  void p##gemm_(const char* form_a, const char* form_b, const int* m, const int* n, const int* k,  \
                const T* alpha, const T* a, const int* lda, const T* b, const int* ldb,            \
                const T* beta, T* c, const int* ldc, size_t, size_t) {                             \
    weir::ThrowIfCancelled();                                                                      \
    weir::blas::Gemm(form_a, form_b, *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);        \
  }                                                                                                \
  void p##trsm_(const char* side, const char* triangle, const char* form, const char* diagonal,    \
                const int* m, const int* n, const T* alpha, const T* a, const int* lda, T* b,      \
                const int* ldb, size_t, size_t, size_t, size_t) {                                  \
    weir::ThrowIfCancelled();                                                                      \
    weir::blas::ApplyTriangular(weir::blas::SolveLower<T>, side, triangle, form, diagonal, *m, *n, \
                                *alpha, a, *lda, b, *ldb);                                         \
  }                                                                                                \
  void p##trmm_(const char* side, const char* triangle, const char* form, const char* diagonal,    \
                const int* m, const int* n, const T* alpha, const T* a, const int* lda, T* b,      \
                const int* ldb, size_t, size_t, size_t, size_t) {                                  \
    weir::ThrowIfCancelled();                                                                      \
    weir::blas::ApplyTriangular(weir::blas::ScaleByLower<T>, side, triangle, form, diagonal, *m,   \
                                *n, *alpha, a, *lda, b, *ldb);                                     \
  }

#define WEIR_DEFINE_GER(T, name, conjugate)                                             \
  void name##_(const int* m, const int* n, const T* alpha, const T* x, const int* incx, \
               const T* y, const int* incy, T* a, const int* lda) {                     \
    weir::ThrowIfCancelled();                                                           \
    weir::blas::Ger(conjugate, *m, *n, *alpha, x, *incx, y, *incy, a, *lda);            \
  }

#define WEIR_DEFINE_SYMV(T, name, adjoint)                                                     \
  void name##_(const char* triangle, const int* n, const T* alpha, const T* a, const int* lda, \
               const T* x, const int* incx, const T* beta, T* y, const int* incy, size_t) {    \
    weir::ThrowIfCancelled();                                                                  \
    weir::blas::Symv(adjoint, triangle, *n, *alpha, a, *lda, x, *incx, *beta, y, *incy);       \
  }

// The factors that a self-adjoint result is scaled by are real: R for alpha of syrk and all betas.
#define WEIR_DEFINE_SYRK(T, R, syrk, syr2k, adjoint)                                               \
  void syrk##_(const char* triangle, const char* form, const int* n, const int* k, const R* alpha, \
               const T* a, const int* lda, const R* beta, T* c, const int* ldc, size_t, size_t) {  \
    weir::ThrowIfCancelled();                                                                      \
    weir::blas::Syrk(adjoint, triangle, form, *n, *k, T(*alpha), a, *lda, T(*beta), c, *ldc);      \
  }                                                                                                \
  void syr2k##_(const char* triangle, const char* form, const int* n, const int* k,                \
                const T* alpha, const T* a, const int* lda, const T* b, const int* ldb,            \
                const R* beta, T* c, const int* ldc, size_t, size_t) {                             \
    weir::ThrowIfCancelled();                                                                      \
    weir::blas::Syr2k(adjoint, triangle, form, *n, *k, *alpha, a, *lda, b, *ldb, T(*beta), c,      \
                      *ldc);                                                                       \
  }

WEIR_DEFINE(float, s)
WEIR_DEFINE(double, d)
WEIR_DEFINE(std::complex<float>, c)
WEIR_DEFINE(std::complex<double>, z)
WEIR_DEFINE_GER(float, sger, false)
WEIR_DEFINE_GER(double, dger, false)
WEIR_DEFINE_GER(std::complex<float>, cgeru, false)
WEIR_DEFINE_GER(std::complex<double>, zgeru, false)
WEIR_DEFINE_GER(std::complex<float>, cgerc, true)
WEIR_DEFINE_GER(std::complex<double>, zgerc, true)
WEIR_DEFINE_SYMV(float, ssymv, false)
WEIR_DEFINE_SYMV(double, dsymv, false)
WEIR_DEFINE_SYMV(std::complex<float>, chemv, true)
WEIR_DEFINE_SYMV(std::complex<double>, zhemv, true)
WEIR_DEFINE_SYRK(float, float, ssyrk, ssyr2k, false)
WEIR_DEFINE_SYRK(double, double, dsyrk, dsyr2k, false)
WEIR_DEFINE_SYRK(std::complex<float>, float, cherk, cher2k, true)
WEIR_DEFINE_SYRK(std::complex<double>, double, zherk, zher2k, true)

}  // extern "C"
