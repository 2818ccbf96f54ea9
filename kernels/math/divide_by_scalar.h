#ifndef WEIR_KERNELS_MATH_DIVIDE_BY_SCALAR_H_
#define WEIR_KERNELS_MATH_DIVIDE_BY_SCALAR_H_

#include "weir/kernels/math/elementwise_loops.h"

namespace weir {

// Gives the loops of integer division and remainder, which are in the registry already, their
// variants for a scalar divisor.
void AddScalarDivisors(LoopRegistry* t);

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_DIVIDE_BY_SCALAR_H_
