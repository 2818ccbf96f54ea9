#ifndef WEIR_KERNELS_LINALG_LAPACK_H_
#define WEIR_KERNELS_LINALG_LAPACK_H_

#include <complex>

// The LAPACK routines that kernels need, on the BLAS of blas.h, for T = float, double and their
// complex types. Matrices are column-major without padding. A call runs on the calling thread only,
// so that batches can be split over a thread pool. It throws StepCancelled soon after its step is
// cancelled. Results are LAPACK's `info`: 0, or a number > 0 that describes a problem with the
// matrix. Svd, the eigenvalues, Schur and LeastSquares are iterative and must not be called with
// NaN or infinity in a matrix.
namespace weir::lapack {

namespace internal {
template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
}  // namespace internal
template <class T>
using Real = typename internal::RealOf<T>::Type;

// The form in which a matrix is used in a product or an equation.
enum class Form : char { kPlain = 'N', kAdjoint = 'C' };
// The triangle of a triangular matrix that is read.
enum class Triangle : char { kLower = 'L', kUpper = 'U' };

// P L U = a, n x n, in place: row i was exchanged with row pivots[i] - 1, for i = 0, 1, ... in
// order. info > 0: U has a zero on its diagonal.
template <class T>
int LuFactor(int n, T* a, int* pivots);
// Solves a x = b for `columns` columns b, which are overwritten with x.
template <class T>
void LuSolve(Form form, int n, int columns, const T* lu, const int* pivots, T* b);
// Replaces the decomposition of a by a^-1.
template <class T>
void LuInverse(int n, T* lu, const int* pivots);
template <class T>
void TriangularSolve(Triangle triangle, Form form, int n, int columns, const T* a, T* b);

// L L* = a, in place in the lower triangle, the only part that is accessed. info > 0: a is not
// positive definite.
template <class T>
int CholeskyFactor(int n, T* a);

// Q R = a, m x n: R is on and above the diagonal. From the elements below it and tau, QrUnitary
// computes the first `columns` columns of Q; for that `a` must have m x columns elements.
template <class T>
void QrFactor(int m, int n, T* a, T* tau);
template <class T>
void QrUnitary(int m, int columns, int reflections, T* a, const T* tau);

// The parts of U and V that the decomposition U S V* = a computes.
enum class Vectors : char { kNone = 'N', kThin = 'S', kFull = 'A' };
// `v` receives V* (min(m, n) x n if thin). Overwrites a. info > 0: no convergence.
template <class T>
int Svd(Vectors vectors, int m, int n, T* a, Real<T>* s, T* u, T* v);

// Computes the eigenvalues of a self-adjoint matrix in ascending order. Reads the lower triangle;
// the eigenvectors overwrite the matrix if requested.
template <class T>
int SelfAdjointEigen(bool vectors, int n, T* a, Real<T>* e);
// Computes the eigenvalues and right eigenvectors of any matrix, which is overwritten.
template <class T>
int Eigen(bool vectors, int n, T* a, std::complex<Real<T>>* e, std::complex<Real<T>>* v);
// Z T Z* = a with T upper triangular, in place. T is complex.
template <class T>
int Schur(int n, T* a, T* z);

// Computes the x of least norm among those that minimize |a x - b|, where a is m x n of any rank. b
// has max(m, n) rows; x overwrites the first n.
template <class T>
void LeastSquares(int m, int n, int columns, T* a, T* b);

// c = a b, m x n; k is the contracted dimension.
template <class T>
void Multiply(Form form_a, Form form_b, int m, int n, int k, const T* a, const T* b, T* c);

}  // namespace weir::lapack

#endif  // WEIR_KERNELS_LINALG_LAPACK_H_
