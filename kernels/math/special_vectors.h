#ifndef WEIR_KERNELS_MATH_SPECIAL_VECTORS_H_
#define WEIR_KERNELS_MATH_SPECIAL_VECTORS_H_

#include "weir/kernels/math/elementwise_loops.h"

// Special functions by vectors of doubles (kernels/math/wide_vectors-inl.h).
namespace weir {

// Digamma for float and double; Lgamma, Igamma, Igammac and Zeta for float.
void AddGammaVectors(LoopRegistry* t);  // gamma_vectors_cpu.cc
// Erfinv and Ndtri for float and double.
void AddQuantileVectors(LoopRegistry* t);  // quantile_vectors_cpu.cc

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_SPECIAL_VECTORS_H_
