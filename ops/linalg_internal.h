#ifndef WEIR_OPS_LINALG_INTERNAL_H_
#define WEIR_OPS_LINALG_INTERNAL_H_

#include "weir/core/gradient.h"

// Gradient rules of linear algebra (linalg_gradients.cc, linalg_decomposition_gradients.cc).
namespace weir {

Grads MatrixInverseGradient(GradContext& g);
Grads MatrixDeterminantGradient(GradContext& g);
Grads LogMatrixDeterminantGradient(GradContext& g);
Grads MatrixSquareRootGradient(GradContext& g);
Grads MatrixSolveGradient(GradContext& g);
Grads MatrixSolveLsGradient(GradContext& g);
Grads MatrixTriangularSolveGradient(GradContext& g);
Grads BandedTriangularSolveGradient(GradContext& g);
Grads TridiagonalSolveGradient(GradContext& g);
Grads TridiagonalMatMulGradient(GradContext& g);

Grads CholeskyGradient(GradContext& g);
Grads QrGradient(GradContext& g);
Grads EigGradient(GradContext& g);
Grads SelfAdjointEigGradient(GradContext& g);
Grads SvdGradient(GradContext& g);

// Multiplies two matrices, or two batches of matrices.
Output Product(Output a, Output b, bool adjoint_a = false, bool adjoint_b = false);

}  // namespace weir

#endif  // WEIR_OPS_LINALG_INTERNAL_H_
