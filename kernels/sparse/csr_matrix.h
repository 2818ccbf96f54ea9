#ifndef WEIR_KERNELS_SPARSE_CSR_MATRIX_H_
#define WEIR_KERNELS_SPARSE_CSR_MATRIX_H_

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/lib/arguments.h"

// Matrices in compressed sparse rows (CSR): the values of scalar variant tensors, in TensorFlow's
// encoding.
namespace weir {

// A matrix, or a batch of matrices of one shape. Row r of matrix b has the elements
// [row(b)[r], row(b)[r + 1]) of columns_of(b) and values_of<T>(b). The columns of a row may be in
// any order.
struct CsrMatrix {
  Dims dims;              // [rows, columns] or [batch, rows, columns]
  Tensor batch_pointers;  // int32 [batch + 1]: where the elements of each matrix begin
  Tensor row_pointers;    // int32 [batch * (rows + 1)]: where the elements of each row begin
  Tensor columns;         // int32 [elements]
  Tensor values;          // [elements]: float, double, complex64 or complex128

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t batch() const { return rank() == 3 ? dims[0] : 1; }
  int64_t rows() const { return dims[rank() - 2]; }
  int64_t cols() const { return dims[rank() - 1]; }
  int64_t count() const { return values.num_elements(); }
  // The first element of matrix b, and the number of its elements.
  int64_t first(int64_t b) const { return batch_pointers.data<int32_t>()[b]; }
  int64_t count_of(int64_t b) const { return first(b + 1) - first(b); }
  // The pointers, columns and values of matrix b.
  const int32_t* row(int64_t b) const { return row_pointers.data<int32_t>() + b * (rows() + 1); }
  const int32_t* columns_of(int64_t b) const { return columns.data<int32_t>() + first(b); }
  template <class T>
  const T* values_of(int64_t b) const {
    return values.data<T>() + first(b);
  }
  // The same for the kernel that makes the matrix.
  int32_t* row(int64_t b) { return row_pointers.data<int32_t>() + b * (rows() + 1); }
  int32_t* columns_of(int64_t b) { return columns.data<int32_t>() + first(b); }
  template <class T>
  T* values_of(int64_t b) {
    return values.data<T>() + first(b);
  }
};

// Returns the matrix in input i. Returns INVALID_ARGUMENT if the input is not a scalar variant of
// such a matrix, or if its pointers or columns are out of range: it may come from a file.
absl::StatusOr<CsrMatrix> ReadCsr(const KernelContext& c, int i);
// The same for a matrix that must have this type.
absl::StatusOr<CsrMatrix> ReadCsr(const KernelContext& c, int i, DataType type);

// Allocates the pointers of a matrix of these extents, all 0. Returns INVALID_ARGUMENT if they do
// not fit in 32 bits.
absl::StatusOr<CsrMatrix> NewCsr(const Dims& dims);
// Allocates columns and values for as many elements as batch_pointers says.
absl::Status AllocateElements(DataType type, CsrMatrix* matrix);
// Writes output i, a scalar variant.
absl::Status OutputCsr(KernelContext& c, int i, const CsrMatrix& matrix);

// Returns the transpose of each matrix, conjugated if `conjugate`. The columns of its rows are in
// order if the rows of the argument are read in order.
absl::StatusOr<CsrMatrix> TransposeCsr(const CsrMatrix& matrix, bool conjugate);

// The types of the elements.
using CsrTypes = JoinLists<List<float, double>, Complexes>;

// The parts of AddSparseCpu that add the kernels, one source file each.
void AddCsrKernels(KernelRegistry* r);               // csr.cc
void AddCsrProductKernels(KernelRegistry* r);        // csr_product.cc
void AddCsrFactorizationKernels(KernelRegistry* r);  // csr_cholesky.cc

}  // namespace weir

#endif  // WEIR_KERNELS_SPARSE_CSR_MATRIX_H_
