#ifndef WEIR_OPS_SPARSE_CSR_H_
#define WEIR_OPS_SPARSE_CSR_H_

#include <string>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/sparse/sparse.h"

// Sparse matrices in compressed rows (CSR), whose products take less time than those of sparse
// tensors: TensorFlow's sparse_csr_matrix_ops. A CSR matrix is a scalar of DT_VARIANT that holds a
// matrix, or a batch of matrices of one shape, of float, double, complex64 or complex128. All
// functions that take one accept both.
namespace WEIR_API weir {

// ---- conversions

// Returns the CSR matrix with the elements of a sparse tensor of rank 2 or 3. The elements must be
// in order of their rows, otherwise the step returns INVALID_ARGUMENT.
Output SparseTensorToCSRSparseMatrix(const SparseTensor& x, absl::string_view name = {});
// Returns the CSR matrix with the elements of `dense` ([rows, columns] or [batch, rows, columns])
// at the positions in the rows of `indices` (int64 [n, rank of dense]), which must be in order.
Output DenseToCSRSparseMatrix(Output dense, Output indices, absl::string_view name = {});
// Return the elements in another form. `type` is the type of the elements; it may be left out if it
// is known when the graph is built (CSRTypeOf).
Output CSRSparseMatrixToDense(Output matrix, DataType type = DT_INVALID,
                              absl::string_view name = {});
SparseTensor CSRSparseMatrixToSparseTensor(Output matrix, DataType type = DT_INVALID,
                                           absl::string_view name = {});
// Returns the type of the elements as far as it is known when the graph is built; DT_INVALID if it
// is not.
DataType CSRTypeOf(Output matrix);

// One matrix of a batch. Row r has the elements [row_pointers[r], row_pointers[r + 1]).
struct CSRComponents {
  Output row_pointers;  // int32 [rows + 1]
  Output columns;       // int32 [elements]
  Output values;        // [elements]
};
// Returns the parts of matrix `index` (an int32 scalar; 0 if there is no batch).
CSRComponents CSRSparseMatrixComponents(Output matrix, const Ints& index,
                                        DataType type = DT_INVALID, absl::string_view name = {});
// Returns the number of elements, an int32 scalar, or one for each matrix of a batch.
Output SparseMatrixNNZ(Output matrix, absl::string_view name = {});

// ---- products

// What is done to the factors, and to the product with a dense matrix. Only one of transpose and
// adjoint (transposed and conjugated) may be set for a factor.
struct CSRMatMulOptions {
  bool transpose_a = false, transpose_b = false;            // transposes a factor
  bool adjoint_a = false, adjoint_b = false;                // transposes and conjugates it
  bool transpose_output = false, conjugate_output = false;  // for SparseMatrixMatMul
};
// Returns the dense product of a CSR matrix and a dense one of the same rank.
Output SparseMatrixMatMul(Output a, Output b, const CSRMatMulOptions& options = {},
                          absl::string_view name = {});
// Returns the product of two CSR matrices, with an element wherever a product of elements is
// summed.
Output SparseMatrixSparseMatMul(Output a, Output b, const CSRMatMulOptions& options = {},
                                DataType type = DT_INVALID, absl::string_view name = {});
Output SparseMatrixTranspose(Output matrix, bool conjugate = false, DataType type = DT_INVALID,
                             absl::string_view name = {});

// ---- factors

// Returns an order of the rows (int32 [rows] or [batch, rows]) that keeps the Cholesky factor
// sparse: the approximate minimum degree ordering of Amestoy, Davis and Duff (1996). Only the lower
// triangle of the square matrix is read.
Output SparseMatrixOrderingAMD(Output matrix, absl::string_view name = {});
// Returns the lower triangular Cholesky factor of the Hermitian matrix whose row i and column i are
// row and column permutation[i] of the argument. Only the lower triangle of the argument is read.
// If the matrix is not positive definite, the step returns INVALID_ARGUMENT.
Output SparseMatrixSparseCholesky(Output matrix, Output permutation, DataType type = DT_INVALID,
                                  absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_SPARSE_CSR_H_
