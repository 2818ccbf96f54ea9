#ifndef WEIR_OPS_LINALG_H_
#define WEIR_OPS_LINALG_H_

#include "weir/core/graph.h"
#include "weir/ops/array.h"

// Builders of linear algebra: TensorFlow's linalg. Tensors hold stacks of matrices in their last
// two dimensions. The functions add the nodes that the Python functions of these names add; the
// last argument is the name. A matrix that is singular where it must not be fails the step with
// INVALID_ARGUMENT "Input matrix is not invertible."
namespace weir {

// ---- products of matrices

// The transpose, and its conjugate.
Output MatrixTranspose(Output x, bool conjugate = false,
                       absl::string_view name = "matrix_transpose");
Output Adjoint(Output x, absl::string_view name = "adjoint");
// Identity matrices of `rows` rows, in a stack of shape `batch`.
Output Eye(Graph& graph, const Ints& rows, const Ints& batch = {}, DataType dtype = DT_FLOAT,
           absl::string_view name = "eye");

// The lower triangular L with L L* = x, for a self-adjoint and positive definite x, of which only
// the lower triangle is read. NaN if x is not positive definite.
Output Cholesky(Output x, absl::string_view name = {});
struct LuResult {
  Output lu, p;
};
// L and U, below and above the diagonal (L's is 1), of a matrix with its rows in the order p.
LuResult Lu(Output x, DataType output_idx_type = DT_INT32, absl::string_view name = {});
struct QrResult {
  Output q, r;
};
QrResult Qr(Output x, bool full_matrices = false, absl::string_view name = {});
struct SvdResult {
  Output s, u, v;
};
// x = u diag(s) v*. The singular values are real numbers, also of a complex matrix.
SvdResult Svd(Output x, bool full_matrices = false, absl::string_view name = {});
Output SingularValues(Output x, absl::string_view name = {});

// ---- eigenvalues

struct EigenResult {
  Output e, v;
};
// Of a self-adjoint matrix, of which the lower triangle is read: in ascending order, and vectors in
// the columns of v.
EigenResult SelfAdjointEig(Output x, absl::string_view name = {});
Output SelfAdjointEigvals(Output x, absl::string_view name = {});
// Of any square matrix; complex numbers.
EigenResult Eig(Output x, absl::string_view name = {});
Output Eigvals(Output x, absl::string_view name = {});

// ---- systems of equations. `adjoint`: of the adjoint matrix.

Output MatrixSolve(Output matrix, Output rhs, bool adjoint = false, absl::string_view name = {});
// Batch dimensions of the two broadcast.
Output MatrixTriangularSolve(Output matrix, Output rhs, bool lower = true, bool adjoint = false,
                             absl::string_view name = {});
// The same for a matrix given as its diagonals, a row each.
Output BandedTriangularSolve(Output bands, Output rhs, bool lower = true, bool adjoint = false,
                             absl::string_view name = {});
// Solves A x = rhs, given A's lower factor of Cholesky.
Output CholeskySolve(Output chol, Output rhs, absl::string_view name = "cholesky_solve");
// Least squares: minimizes |matrix x - rhs|^2 + l2_regularizer |x|^2. `fast` goes by Cholesky's
// decomposition and wants full rank; else the regularizer is not used.
Output MatrixSolveLs(Output matrix, Output rhs, double l2_regularizer = 0, bool fast = true,
                     absl::string_view name = {});
struct TridiagonalSolveOptions {
  bool partial_pivoting = true;
  bool perturb_singular = false;
};
// `diagonals` are three rows: above, on and below the diagonal. The last element of the first and
// the first of the last are not used.
Output TridiagonalSolve(Output diagonals, Output rhs, const TridiagonalSolveOptions& options = {},
                        absl::string_view name = {});
Output TridiagonalMatMul(Output superdiag, Output maindiag, Output subdiag, Output rhs,
                         absl::string_view name = {});

// ---- functions of a square matrix

Output MatrixInverse(Output x, bool adjoint = false, absl::string_view name = {});
Output MatrixDeterminant(Output x, absl::string_view name = {});
struct LogDeterminantResult {
  Output sign, log_abs_determinant;
};
LogDeterminantResult LogMatrixDeterminant(Output x, absl::string_view name = {});
Output MatrixSquareRoot(Output x, absl::string_view name = {});
// Of a complex matrix.
Output MatrixLogarithm(Output x, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_LINALG_H_
