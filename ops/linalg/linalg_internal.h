#ifndef WEIR_OPS_LINALG_LINALG_INTERNAL_H_
#define WEIR_OPS_LINALG_LINALG_INTERNAL_H_

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/op.h"
#include "weir/core/graph/shape_context.h"

// Helpers shared by the sources of linear algebra. Matrices are the last two dimensions; the
// dimensions before them are the batch.
namespace weir {

// Multiplies two matrices, or two batches of matrices.
Output Product(Output a, Output b, bool adjoint_a = false, bool adjoint_b = false);
// Returns the batch dimensions of a shape.
Output OuterShape(const Output& shape);

// Returns the shape of input i, which must hold square matrices.
absl::StatusOr<Shape> SquareInput(ShapeContext& c, int i);
// Output 0 has the shape of input 0, which must hold square matrices.
absl::Status SquareShape(ShapeContext& c);

// Type constraints used in op definitions.
inline constexpr char kAllTypes[] = "T: {double, float, half, complex64, complex128}";
inline constexpr char kFloatFirst[] = "T: {half, float, double, complex64, complex128}";
inline constexpr char kNoHalf[] = "T: {double, float, complex64, complex128}";
inline constexpr char kDoubleFloat[] = "T: {double, float}";

// Adds an op and its older Batch* form, which has fewer dtypes and no gradient and is rejected in
// newer graphs. `describe` sets the remaining properties of both.
void AddWithBatchForm(OpRegistry* ops, const char* op, const char* types,
                      const GradientFn& gradient, const char* batch_op, const char* batch_types,
                      OpSpec (*describe)(OpSpec spec, const char* types));

}  // namespace weir

#endif  // WEIR_OPS_LINALG_LINALG_INTERNAL_H_
