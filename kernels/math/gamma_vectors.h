#ifndef WEIR_KERNELS_MATH_GAMMA_VECTORS_H_
#define WEIR_KERNELS_MATH_GAMMA_VECTORS_H_

#include "weir/kernels/math/elementwise_loops.h"

namespace weir {

// Adds the loops of Digamma for float and double, and that of Lgamma for float.
void AddGammaVectors(LoopRegistry* t);

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_GAMMA_VECTORS_H_
