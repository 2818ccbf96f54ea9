#ifndef WEIR_TESTS_KERNELS_LIB_NUMERIC_GRADIENT_H_
#define WEIR_TESTS_KERNELS_LIB_NUMERIC_GRADIENT_H_

#include <functional>

#include "weir/core/graph/graph.h"

// Compares gradients of expressions of several ops with finite differences, for ops whose inputs
// are special (a self-adjoint matrix) or complex, which rows of the sweep cannot express.
namespace weir {

// Returns the sum of the elements of a real tensor, of static shape, times fixed irregular weights.
Output WeightedSum(const Output& x);

// Builds `loss`, a scalar, from a double tensor x of this shape with fixed irregular elements in
// [-1, 1], and compares its gradient with central differences; for order 2 also the gradient of a
// weighted sum of the gradient.
void ExpectGradient(const std::function<Output(Output x)>& loss, const Shape& shape, int order,
                    double tolerance = 1e-6);

}  // namespace weir

#endif  // WEIR_TESTS_KERNELS_LIB_NUMERIC_GRADIENT_H_
