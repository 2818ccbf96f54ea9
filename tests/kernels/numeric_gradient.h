#ifndef WEIR_TESTS_KERNELS_NUMERIC_GRADIENT_H_
#define WEIR_TESTS_KERNELS_NUMERIC_GRADIENT_H_

#include <functional>

#include "weir/core/graph.h"

// Gradients of what is built of several ops, compared with finite differences: for ops whose inputs
// are special (a self-adjoint matrix) or complex, which rows of the sweep cannot give.
namespace weir {

// The sum of the elements of a real tensor, of static shape, times fixed irregular weights.
Output WeightedSum(const Output& x);

// Builds `loss`, a scalar, of a double tensor x of this shape with fixed irregular elements in
// [-1, 1], and compares its gradient with central differences; to order 2 also that of a weighted
// sum of the gradient.
void ExpectGradient(const std::function<Output(Output x)>& loss, const Shape& shape, int order,
                    double tolerance = 1e-6);

}  // namespace weir

#endif  // WEIR_TESTS_KERNELS_NUMERIC_GRADIENT_H_
