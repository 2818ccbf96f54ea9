#ifndef WEIR_OPS_SPARSE_CSR_INTERNAL_H_
#define WEIR_OPS_SPARSE_CSR_INTERNAL_H_

#include "weir/core/graph/op.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/sparse/csr.h"

// Declarations shared by the sources of the ops on CSR matrices. The handle data of a matrix is its
// dtype and shape.
namespace weir {

// The parts of AddSparseOps that define them, one source file each.
void AddCsrOps(OpRegistry* ops);         // csr.cc
void AddCsrProductOps(OpRegistry* ops);  // csr_product.cc

// The values of attribute "type".
inline constexpr char kCsrType[] = "type: {float, double, complex64, complex128}";

// Returns the shape of the matrix at input i, of rank 2 or 3; unknown rank if nothing is known.
absl::StatusOr<Shape> MatrixShape(ShapeContext& c, int i);
// Returns its dtype, or DT_INVALID.
DataType MatrixType(ShapeContext& c, int i);
// Sets output 0 to a matrix of this type and shape.
absl::Status SetMatrix(ShapeContext& c, DataType type, Shape shape);

// Returns attribute "type": the given one, or else that of the matrix if it is known.
Attrs TypeAttr(Output matrix, DataType type);

}  // namespace weir

#endif  // WEIR_OPS_SPARSE_CSR_INTERNAL_H_
