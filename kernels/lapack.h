#ifndef WEIR_KERNELS_LAPACK_H_
#define WEIR_KERNELS_LAPACK_H_

#include <complex>

// The routines of LAPACK that kernels need, for T = float, double and their complex types. Matrices
// lie column by column without gaps. A call works on the calling thread alone, so that batches can
// be split over a thread pool. Results are LAPACK's `info`: 0, or a number > 0 that tells what is
// wrong with the matrix. Svd, the eigenvalues, Schur and LeastSquares iterate, and may not be
// called with NaN or infinity in a matrix.
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

// How a matrix enters a product or an equation.
enum class Form : char { kPlain = 'N', kAdjoint = 'C' };
// The part of a triangular matrix that is read.
enum class Triangle : char { kLower = 'L', kUpper = 'U' };

// P L U = a, n x n, in its place: row i was exchanged with row pivots[i] - 1, i = 0, 1, ... in
// turn. info > 0: U has a zero on its diagonal.
template <class T>
int LuFactor(int n, T* a, int* pivots);
// Solves a x = b for `columns` columns b, which x replaces.
template <class T>
void LuSolve(Form form, int n, int columns, const T* lu, const int* pivots, T* b);
template <class T>
void TriangularSolve(Triangle triangle, Form form, int n, int columns, const T* a, T* b);

// L L* = a, in the lower triangle, the only part that is read or written. info > 0: a is not
// positive definite.
template <class T>
int CholeskyFactor(int n, T* a);

// Q R = a, m x n: R on and above the diagonal, below it and in tau what QrUnitary makes the first
// `columns` columns of Q of. For that `a` has m x columns elements.
template <class T>
void QrFactor(int m, int n, T* a, T* tau);
template <class T>
void QrUnitary(int m, int columns, int reflections, T* a, const T* tau);

// What of U and V the decomposition U S V* = a gives.
enum class Vectors : char { kNone = 'N', kThin = 'S', kFull = 'A' };
// `v` gets V* (min(m, n) x n if thin). Destroys a. info > 0: no convergence.
template <class T>
int Svd(Vectors vectors, int m, int n, T* a, Real<T>* s, T* u, T* v);

// Eigenvalues in ascending order of a self-adjoint matrix, of which the lower triangle is read; its
// eigenvectors replace it if they are wanted.
template <class T>
int SelfAdjointEigen(bool vectors, int n, T* a, Real<T>* e);
// Eigenvalues and right eigenvectors of any matrix, which is destroyed.
template <class T>
int Eigen(bool vectors, int n, T* a, std::complex<Real<T>>* e, std::complex<Real<T>>* v);
// Z T Z* = a with T upper triangular, in its place. T is complex.
template <class T>
int Schur(int n, T* a, T* z);

// The x of least norm among those that minimize |a x - b|, a m x n of any rank; b has max(m, n)
// rows, of which x takes the first n.
template <class T>
void LeastSquares(int m, int n, int columns, T* a, T* b);

// c = a b, m x n, where k is what is summed over.
template <class T>
void Multiply(Form form_a, Form form_b, int m, int n, int k, const T* a, const T* b, T* c);

}  // namespace weir::lapack

#endif  // WEIR_KERNELS_LAPACK_H_
