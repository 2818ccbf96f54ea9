#ifndef WEIR_KERNELS_LINALG_BLAS_H_
#define WEIR_KERNELS_LINALG_BLAS_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

// The parts of BLAS in which LAPACK spends its time, vectorized for the processor at hand, for T =
// float, double and their complex types. fortran_blas.cc gives them the names that LAPACK calls.
// Everything runs on the calling thread, and the order of additions follows from the sizes alone.
// Sizes may be 0. Large products throw StepCancelled if the step is cancelled.
namespace weir::blas {

template <class T>
inline T Conjugate(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x;
  } else {
    return std::conj(x);
  }
}

// Products as in Fortran: std::complex's would look for infinities among NaN.
template <class T>
inline T Product(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return x * y;
  } else {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  }
}

// Elements that are not initialized, which std::complex's constructor would do.
template <class T, int64_t kSize>
class Uninitialized {
 public:
  T* data() { return reinterpret_cast<T*>(bytes_); }

 private:
  alignas(64) unsigned char bytes_[static_cast<size_t>(kSize) * sizeof(T)];
};

// Memory for `size` elements, which are not initialized: on the stack if they are few.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t size)
      : on_heap_(size <= kFew ? nullptr : new unsigned char[static_cast<size_t>(size) * sizeof(T)]),
        data_(on_heap_ == nullptr ? on_stack_.data() : reinterpret_cast<T*>(on_heap_.get())) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() { return data_; }

 private:
  static constexpr int64_t kFew = 16384 / sizeof(T);
  Uninitialized<T, kFew> on_stack_;
  const std::unique_ptr<unsigned char[]> on_heap_;
  T* const data_;
};

// A matrix in place: element (i, j) is at data[i * row + j * column], and is its conjugate if
// `conjugate`. One of the strides is 1 or -1; a stride may be negative.
template <class T>
struct View {
  T* data;
  int64_t row, column;
  bool conjugate = false;

  T operator()(int64_t i, int64_t j) const {
    const T x = data[i * row + j * column];
    return conjugate ? Conjugate(x) : x;
  }
  // The matrix that begins at element (i, j).
  View At(int64_t i, int64_t j) const {
    return {data + i * row + j * column, row, column, conjugate};
  }
  View Transposed() const { return {data, column, row, conjugate}; }
  // The rows (columns) in reverse order, of `count`.
  View RowsReversed(int64_t count) const {
    return {data + (count - 1) * row, -row, column, conjugate};
  }
  View ColumnsReversed(int64_t count) const {
    return {data + (count - 1) * column, row, -column, conjugate};
  }
};

// Up to this many products are computed without vectors: matrices of a batch are often as small as
// 4 x 4, and recursion reaches 1 x 1.
inline constexpr int64_t kTiny = 16;
// The order of the diagonal blocks of a triangular matrix that kernels handle.
inline constexpr int64_t kBlock = 16;

// The vectorized loops (blas_kernels.cc). Vectors x, y and z are contiguous; the columns of `a` are
// `step` elements apart.
template <class T>
struct Kernels {
  // c[m, n] += alpha a[m, k] b[k, n].
  void (*multiply)(int64_t m, int64_t n, int64_t k, T alpha, const View<T>& a, const View<T>& b,
                   T* c, int64_t step);
  // y[m] += a[m, n] x[n].
  void (*add_columns)(int64_t m, int64_t n, const T* a, int64_t step, const T* x, T* y);
  // z[n] += a[m, n]^T x[m].
  void (*add_dots)(int64_t m, int64_t n, const T* a, int64_t step, const T* x, T* z);
  // Both: y[m] += a[m, n] x[n] and z[n] += a[m, n]^T w[m], for n <= 4.
  void (*add_both)(int64_t m, int64_t n, const T* a, int64_t step, const T* x, T* y, const T* w,
                   T* z);
  // a[m, n] += x[m] y[n]^T.
  void (*add_outer)(int64_t m, int64_t n, const T* x, const T* y, T* a, int64_t step);
  // b = t^-1 b or t b with a lower triangular t[n, n], n <= kBlock, and row-major b[n, columns]
  // with rows `row` elements apart. `unit`: t's diagonal is 1 and not read.
  void (*solve_block)(int64_t n, int64_t columns, const View<T>& t, bool unit, T* b, int64_t row);
  void (*scale_block)(int64_t n, int64_t columns, const View<T>& t, bool unit, T* b, int64_t row);
};
template <class T>
const Kernels<T>& KernelsOf();

// C[m, n] += alpha A[m, k] B[k, n].
template <class T>
void Multiply(int64_t m, int64_t n, int64_t k, T alpha, View<T> a, View<T> b, View<T> c);
// The lower triangle of C[n, n] += that of alpha A[n, k] B[k, n].
template <class T>
void MultiplyLower(int64_t n, int64_t k, T alpha, const View<T>& a, const View<T>& b,
                   const View<T>& c);
// B = T^-1 B or T B with a lower triangular T[n, n] and B[n, columns].
template <class T>
void SolveLower(int64_t n, int64_t columns, const View<T>& t, bool unit, const View<T>& b);
template <class T>
void ScaleByLower(int64_t n, int64_t columns, const View<T>& t, bool unit, const View<T>& b);
// y[n] += A[n, n] x[n] with a self-adjoint (`adjoint`) or symmetric A, of which the lower or the
// upper triangle is read.
template <class T>
void MultiplySymmetric(bool lower, bool adjoint, int64_t n, const T* a, int64_t step, const T* x,
                       T* y);

}  // namespace weir::blas

#endif  // WEIR_KERNELS_LINALG_BLAS_H_
