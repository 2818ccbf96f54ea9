#ifndef WEIR_OPS_LINALG_LINALG_H_
#define WEIR_OPS_LINALG_LINALG_H_

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"

// Builders of linear algebra ops: TensorFlow's tf.linalg. The last two dimensions of a tensor are
// matrices; the others are the batch. Each function adds the nodes that the Python function of that
// name adds; the last argument is the name. If a matrix that must be invertible is singular, the
// step fails with INVALID_ARGUMENT "Input matrix is not invertible."
namespace WEIR_API weir {

// ---- transposes and decompositions

// Return the transpose and the conjugate transpose.
Output MatrixTranspose(Output x, bool conjugate = false,
                       absl::string_view name = "matrix_transpose");
Output Adjoint(Output x, absl::string_view name = "adjoint");
// Returns a batch of shape `batch` of identity matrices with `rows` rows.
Output Eye(Graph& graph, const Ints& rows, const Ints& batch = {}, DataType dtype = DT_FLOAT,
           absl::string_view name = "eye");

// Returns the lower triangular L with L L* = x for a self-adjoint, positive definite x. Only the
// lower triangle of x is read. NaN if x is not positive definite.
Output Cholesky(Output x, absl::string_view name = {});
struct LuResult {
  Output lu, p;  // lu: as x; p: [..., rows]
};
// The LU decomposition with rows permuted by p. `lu` holds L below the diagonal (its diagonal is 1)
// and U on and above it.
LuResult Lu(Output x, DataType output_idx_type = DT_INT32, absl::string_view name = {});
struct QrResult {
  Output q, r;  // the factors
};
// Computes x = q r with orthonormal columns in q and an upper triangular r. With `full_matrices` q
// is square.
QrResult Qr(Output x, bool full_matrices = false, absl::string_view name = {});
// What Svd returns.
struct SvdResult {
  Output s, u, v;  // s: [..., min(rows, columns)], descending
};
// Computes x = u diag(s) v*. The singular values are real, also for a complex matrix.
SvdResult Svd(Output x, bool full_matrices = false, absl::string_view name = {});
Output SingularValues(Output x, absl::string_view name = {});

// ---- eigenvalues

struct EigenResult {
  Output e, v;  // e: [..., rows]; v: as x
};
// Eigenvalues in ascending order, and eigenvectors in the columns of v, of a self-adjoint matrix.
// Only the lower triangle is read.
EigenResult SelfAdjointEig(Output x, absl::string_view name = {});
Output SelfAdjointEigvals(Output x, absl::string_view name = {});
// Complex eigenvalues and eigenvectors of any square matrix.
EigenResult Eig(Output x, absl::string_view name = {});
Output Eigvals(Output x, absl::string_view name = {});

// ---- systems of equations. `adjoint` solves with the adjoint matrix.

Output MatrixSolve(Output matrix, Output rhs, bool adjoint = false, absl::string_view name = {});
// Batch dimensions of `matrix` and `rhs` broadcast.
Output MatrixTriangularSolve(Output matrix, Output rhs, bool lower = true, bool adjoint = false,
                             absl::string_view name = {});
// Like MatrixTriangularSolve, for a matrix given by its diagonals, one per row.
Output BandedTriangularSolve(Output bands, Output rhs, bool lower = true, bool adjoint = false,
                             absl::string_view name = {});
// Solves A x = rhs, given the lower Cholesky factor of A.
Output CholeskySolve(Output chol, Output rhs, absl::string_view name = "cholesky_solve");
// Least squares: minimizes |matrix x - rhs|^2 + l2_regularizer |x|^2. `fast` uses the Cholesky
// decomposition and requires full rank; otherwise the regularizer is ignored.
Output MatrixSolveLs(Output matrix, Output rhs, double l2_regularizer = 0, bool fast = true,
                     absl::string_view name = {});
struct TridiagonalSolveOptions {
  bool partial_pivoting = true;   // exchange rows; needed where a pivot is small
  bool perturb_singular = false;  // perturb a singular matrix slightly; requires partial_pivoting
};
// `diagonals` has three rows: the superdiagonal, the main diagonal and the subdiagonal. The last
// element of the first row and the first element of the last row are ignored.
Output TridiagonalSolve(Output diagonals, Output rhs, const TridiagonalSolveOptions& options = {},
                        absl::string_view name = {});
Output TridiagonalMatMul(Output superdiag, Output maindiag, Output subdiag, Output rhs,
                         absl::string_view name = {});

// ---- functions of a square matrix

Output MatrixInverse(Output x, bool adjoint = false, absl::string_view name = {});
Output MatrixDeterminant(Output x, absl::string_view name = {});
struct LogDeterminantResult {
  Output sign, log_abs_determinant;  // [...]: the batch
};
// Returns the sign (for complex matrices a number of magnitude 1) and the logarithm of the
// magnitude of the determinant.
LogDeterminantResult LogMatrixDeterminant(Output x, absl::string_view name = {});
// Returns a matrix whose square is x, which must be invertible.
Output MatrixSquareRoot(Output x, absl::string_view name = {});
// Requires a complex matrix.
Output MatrixLogarithm(Output x, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_LINALG_LINALG_H_
