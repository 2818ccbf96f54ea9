#include "weir/kernels/linalg/lapack.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

// Every argument of a Fortran routine is a pointer, and the lengths of strings come last.
extern "C" {

#define WEIR_DECLARE(T, p)                                                                        \
  void p##getrf_(const int*, const int*, T*, const int*, int*, int*);                             \
  void p##getf2_(const int*, const int*, T*, const int*, int*, int*);                             \
  void p##getrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*,       \
                 const int*, int*, size_t);                                                       \
  void p##getri_(const int*, T*, const int*, const int*, T*, const int*, int*);                   \
  void p##potrf_(const char*, const int*, T*, const int*, int*, size_t);                          \
  void p##potf2_(const char*, const int*, T*, const int*, int*, size_t);                          \
  void p##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);               \
  void p##trsm_(const char*, const char*, const char*, const char*, const int*, const int*,       \
                const T*, const T*, const int*, T*, const int*, size_t, size_t, size_t, size_t);  \
  void p##gemm_(const char*, const char*, const int*, const int*, const int*, const T*, const T*, \
                const int*, const T*, const int*, const T*, T*, const int*, size_t, size_t);

#define WEIR_DECLARE_REAL(T, p)                                                                   \
  WEIR_DECLARE(T, p)                                                                              \
  void p##orgqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*,    \
                 int*);                                                                           \
  void p##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*,     \
                 const int*, T*, const int*, int*, int*, size_t);                                 \
  void p##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*,  \
                 const int*, int*, size_t, size_t);                                               \
  void p##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*, \
                const int*, T*, const int*, int*, size_t, size_t);                                \
  void p##gelsy_(const int*, const int*, const int*, T*, const int*, T*, const int*, int*,        \
                 const T*, int*, T*, const int*, int*);

#define WEIR_DECLARE_COMPLEX(T, R, p)                                                              \
  WEIR_DECLARE(T, p)                                                                               \
  void p##ungqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*,     \
                 int*);                                                                            \
  void p##gesdd_(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,      \
                 const int*, T*, const int*, R*, int*, int*, size_t);                              \
  void p##heevd_(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*,     \
                 const int*, int*, const int*, int*, size_t, size_t);                              \
  void p##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*,      \
                const int*, T*, const int*, R*, int*, size_t, size_t);                             \
  void p##gees_(const char*, const char*, int (*)(const T*), const int*, T*, const int*, int*, T*, \
                T*, const int*, T*, const int*, R*, int*, int*, size_t, size_t);                   \
  void p##gelsy_(const int*, const int*, const int*, T*, const int*, T*, const int*, int*,         \
                 const R*, int*, T*, const int*, R*, int*);

WEIR_DECLARE_REAL(float, s)
WEIR_DECLARE_REAL(double, d)
WEIR_DECLARE_COMPLEX(std::complex<float>, float, c)
WEIR_DECLARE_COMPLEX(std::complex<double>, double, z)

// LAPACK's handler for invalid arguments. The default one prints a message and exits; `info`
// reports the same error.
void xerbla_(const char*, const int*, size_t) {}

}  // extern "C"

namespace weir::lapack {

namespace {

// The routines, named without the type letter.
template <class T>
struct Routines;

#define WEIR_ROUTINES(p, unitary, self_adjoint)     \
  static constexpr auto getrf = p##getrf_;          \
  static constexpr auto getf2 = p##getf2_;          \
  static constexpr auto getrs = p##getrs_;          \
  static constexpr auto getri = p##getri_;          \
  static constexpr auto potrf = p##potrf_;          \
  static constexpr auto potf2 = p##potf2_;          \
  static constexpr auto geqrf = p##geqrf_;          \
  static constexpr auto trsm = p##trsm_;            \
  static constexpr auto gemm = p##gemm_;            \
  static constexpr auto ungqr = p##unitary##_;      \
  static constexpr auto heevd = p##self_adjoint##_; \
  static constexpr auto gesdd = p##gesdd_;          \
  static constexpr auto geev = p##geev_;            \
  static constexpr auto gelsy = p##gelsy_;

template <>
struct Routines<float> {
  WEIR_ROUTINES(s, orgqr, syevd)
};
template <>
struct Routines<double> {
  WEIR_ROUTINES(d, orgqr, syevd)
};
template <>
struct Routines<std::complex<float>> {
  WEIR_ROUTINES(c, ungqr, heevd)
  static constexpr auto gees = cgees_;
};
template <>
struct Routines<std::complex<double>> {
  WEIR_ROUTINES(z, ungqr, heevd)
  static constexpr auto gees = zgees_;
};

template <class T>
inline constexpr bool kComplex = !std::is_same_v<T, Real<T>>;

// Calls routine(work, size) twice: with size -1 it returns the required size in *work. As a float,
// that size may be rounded down.
template <class T, class F>
void WithWork(const F& routine) {
  T wanted(0);
  routine(&wanted, -1);
  const double size = static_cast<double>(std::real(wanted)) * (1 + 1e-6) + 1;
  constexpr double kMost = std::numeric_limits<int>::max();
  std::vector<T> work(static_cast<size_t>(std::min(size, kMost)));
  routine(work.data(), static_cast<int>(work.size()));
}

const char* Letter(const Form& form) { return reinterpret_cast<const char*>(&form); }
const char* Letter(const Triangle& t) { return reinterpret_cast<const char*>(&t); }
const char* Letter(const Vectors& v) { return reinterpret_cast<const char*>(&v); }
const char* VectorsOrNot(bool vectors) { return vectors ? "V" : "N"; }

// Up to this order, one column after the other is faster than LAPACK's recursion: twice as fast for
// 16 x 16.
constexpr int kSmall = 32;

}  // namespace

template <class T>
int LuFactor(int n, T* a, int* pivots) {
  int info = 0;
  (n <= kSmall ? Routines<T>::getf2 : Routines<T>::getrf)(&n, &n, a, &n, pivots, &info);
  return info;
}

template <class T>
void LuSolve(Form form, int n, int columns, const T* lu, const int* pivots, T* b) {
  int info = 0;
  Routines<T>::getrs(Letter(form), &n, &columns, lu, &n, pivots, b, &n, &info, 1);
}

template <class T>
void LuInverse(int n, T* lu, const int* pivots) {
  int info = 0;
  constexpr int kPanel = 64;
  std::vector<T> work(static_cast<size_t>(n) * kPanel);
  const int size = static_cast<int>(work.size());
  Routines<T>::getri(&n, lu, &n, pivots, work.data(), &size, &info);
}

template <class T>
void TriangularSolve(Triangle triangle, Form form, int n, int columns, const T* a, T* b) {
  const T one(1);
  Routines<T>::trsm("L", Letter(triangle), Letter(form), "N", &n, &columns, &one, a, &n, b, &n, 1,
                    1, 1, 1);
}

template <class T>
int CholeskyFactor(int n, T* a) {
  int info = 0;
  (n <= kSmall ? Routines<T>::potf2 : Routines<T>::potrf)("L", &n, a, &n, &info, 1);
  return info;
}

// Returns the workspace that the QR decomposition of n columns uses: its panels have up to 32
// columns, and fewer if there is less. (To ask for the size takes as long as to factor a small
// matrix.)
template <class T>
std::vector<T> QrWork(int n) {
  constexpr int64_t kPanel = 32, kMost = std::numeric_limits<int>::max();
  return std::vector<T>(static_cast<size_t>(std::min(kPanel * n, kMost)));
}

template <class T>
void QrFactor(int m, int n, T* a, T* tau) {
  int info = 0;
  std::vector<T> work = QrWork<T>(n);
  const int size = static_cast<int>(work.size());
  Routines<T>::geqrf(&m, &n, a, &m, tau, work.data(), &size, &info);
}

template <class T>
void QrUnitary(int m, int columns, int reflections, T* a, const T* tau) {
  int info = 0;
  std::vector<T> work = QrWork<T>(columns);
  const int size = static_cast<int>(work.size());
  Routines<T>::ungqr(&m, &columns, &reflections, a, &m, tau, work.data(), &size, &info);
}

template <class T>
int Svd(Vectors vectors, int m, int n, T* a, Real<T>* s, T* u, T* v) {
  int info = 0;
  const size_t least = static_cast<size_t>(std::min(m, n)),
               most = static_cast<size_t>(std::max(m, n));
  const int v_rows = vectors == Vectors::kFull ? n : static_cast<int>(least);
  std::vector<int> int_work(8 * least);
  if constexpr (kComplex<T>) {
    const size_t wanted = vectors == Vectors::kNone
                              ? 7 * least
                              : least * std::max(5 * least + 7, 2 * most + 2 * least + 1);
    std::vector<Real<T>> real_work(wanted);
    WithWork<T>([&](T* work, int size) {
      Routines<T>::gesdd(Letter(vectors), &m, &n, a, &m, s, u, &m, v, &v_rows, work, &size,
                         real_work.data(), int_work.data(), &info, 1);
    });
  } else {
    WithWork<T>([&](T* work, int size) {
      Routines<T>::gesdd(Letter(vectors), &m, &n, a, &m, s, u, &m, v, &v_rows, work, &size,
                         int_work.data(), &info, 1);
    });
  }
  return info;
}

template <class T>
int SelfAdjointEigen(bool vectors, int n, T* a, Real<T>* e) {
  int info = 0;
  const size_t rows = static_cast<size_t>(n);
  std::vector<int> int_work(vectors ? 3 + 5 * rows : 1);
  const int int_size = static_cast<int>(int_work.size());
  const char* job = VectorsOrNot(vectors);
  if constexpr (kComplex<T>) {
    std::vector<Real<T>> real_work(vectors ? 1 + 5 * rows + 2 * rows * rows : rows);
    const int real_size = static_cast<int>(real_work.size());
    WithWork<T>([&](T* work, int size) {
      Routines<T>::heevd(job, "L", &n, a, &n, e, work, &size, real_work.data(), &real_size,
                         int_work.data(), &int_size, &info, 1, 1);
    });
  } else {
    WithWork<T>([&](T* work, int size) {
      Routines<T>::heevd(job, "L", &n, a, &n, e, work, &size, int_work.data(), &int_size, &info, 1,
                         1);
    });
  }
  return info;
}

namespace {

// Real matrices have real eigenvalues and conjugate pairs of complex ones. The eigenvectors of a
// pair are stored as the real and the imaginary part of the first.
template <class T>
void WriteEigen(bool vectors, int n, const std::vector<T>& re, const std::vector<T>& im,
                const std::vector<T>& packed, std::complex<T>* e, std::complex<T>* v) {
  for (int j = 0; j < n; ++j) e[j] = {re[j], im[j]};
  if (!vectors) return;
  const size_t rows = static_cast<size_t>(n);
  for (size_t j = 0; j < rows; ++j) {
    const T* x = packed.data() + j * rows;
    if (im[j] == 0) {
      std::copy_n(x, rows, v + j * rows);
      continue;
    }
    for (size_t i = 0; i < rows; ++i) {
      v[j * rows + i] = {x[i], x[rows + i]};
      v[(j + 1) * rows + i] = {x[i], -x[rows + i]};
    }
    ++j;
  }
}

}  // namespace

template <class T>
int Eigen(bool vectors, int n, T* a, std::complex<Real<T>>* e, std::complex<Real<T>>* v) {
  int info = 0;
  const size_t rows = static_cast<size_t>(n);
  const char* job = VectorsOrNot(vectors);
  T* const no_left = nullptr;
  if constexpr (kComplex<T>) {
    std::vector<Real<T>> real_work(2 * rows);
    WithWork<T>([&](T* work, int size) {
      Routines<T>::geev("N", job, &n, a, &n, e, no_left, &n, v, &n, work, &size, real_work.data(),
                        &info, 1, 1);
    });
  } else {
    std::vector<T> re(rows), im(rows), packed(vectors ? rows * rows : 0);
    WithWork<T>([&](T* work, int size) {
      Routines<T>::geev("N", job, &n, a, &n, re.data(), im.data(), no_left, &n, packed.data(), &n,
                        work, &size, &info, 1, 1);
    });
    if (info == 0) WriteEigen(vectors, n, re, im, packed, e, v);
  }
  return info;
}

template <class T>
int Schur(int n, T* a, T* z) {
  int info = 0, sorted = 0;
  const size_t rows = static_cast<size_t>(n);
  std::vector<T> e(rows);
  std::vector<Real<T>> real_work(rows);
  WithWork<T>([&](T* work, int size) {
    Routines<T>::gees("V", "N", nullptr, &n, a, &n, &sorted, e.data(), z, &n, work, &size,
                      real_work.data(), nullptr, &info, 1, 1);
  });
  return info;
}

template <class T>
void LeastSquares(int m, int n, int columns, T* a, T* b) {
  int info = 0, rank = 0;
  const int b_rows = std::max(m, n);
  // Singular values below this fraction of the largest count as zero.
  const Real<T> negligible = std::numeric_limits<Real<T>>::epsilon() * Real<T>(std::min(m, n));
  std::vector<int> free_columns(static_cast<size_t>(n), 0);
  if constexpr (kComplex<T>) {
    std::vector<Real<T>> real_work(2 * static_cast<size_t>(n));
    WithWork<T>([&](T* work, int size) {
      Routines<T>::gelsy(&m, &n, &columns, a, &m, b, &b_rows, free_columns.data(), &negligible,
                         &rank, work, &size, real_work.data(), &info);
    });
  } else {
    WithWork<T>([&](T* work, int size) {
      Routines<T>::gelsy(&m, &n, &columns, a, &m, b, &b_rows, free_columns.data(), &negligible,
                         &rank, work, &size, &info);
    });
  }
}

template <class T>
void Multiply(Form form_a, Form form_b, int m, int n, int k, const T* a, const T* b, T* c) {
  const T one(1), zero(0);
  const int a_rows = form_a == Form::kPlain ? m : k, b_rows = form_b == Form::kPlain ? k : n;
  Routines<T>::gemm(Letter(form_a), Letter(form_b), &m, &n, &k, &one, a, &a_rows, b, &b_rows, &zero,
                    c, &m, 1, 1);
}

#define WEIR_INSTANTIATE(T)                                                          \
  template int LuFactor(int, T*, int*);                                              \
  template void LuSolve(Form, int, int, const T*, const int*, T*);                   \
  template void LuInverse(int, T*, const int*);                                      \
  template void TriangularSolve(Triangle, Form, int, int, const T*, T*);             \
  template int CholeskyFactor(int, T*);                                              \
  template void QrFactor(int, int, T*, T*);                                          \
  template void QrUnitary(int, int, int, T*, const T*);                              \
  template int Svd(Vectors, int, int, T*, Real<T>*, T*, T*);                         \
  template int SelfAdjointEigen(bool, int, T*, Real<T>*);                            \
  template int Eigen(bool, int, T*, std::complex<Real<T>>*, std::complex<Real<T>>*); \
  template void LeastSquares(int, int, int, T*, T*);                                 \
  template void Multiply(Form, Form, int, int, int, const T*, const T*, T*);

WEIR_INSTANTIATE(float)
WEIR_INSTANTIATE(double)
WEIR_INSTANTIATE(std::complex<float>)
WEIR_INSTANTIATE(std::complex<double>)
template int Schur(int, std::complex<float>*, std::complex<float>*);
template int Schur(int, std::complex<double>*, std::complex<double>*);

}  // namespace weir::lapack
