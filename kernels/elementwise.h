#ifndef WEIR_KERNELS_ELEMENTWISE_H_
#define WEIR_KERNELS_ELEMENTWISE_H_

#include "weir/core/dtype.h"
#include "weir/kernels/scalar_math.h"

// The functors of kernels/elementwise-inl.h for scalars: functor::Exp::Apply<ScalarMath<float>>(x).
// CPU kernels use them for integers and complex numbers, CUDA kernels for everything.
namespace weir {

// Type lists of functors, named so that the textual header finds them from every namespace that
// includes it.
using FloatsAndComplexes =
    List<half, bfloat16, float, double, std::complex<float>, std::complex<double>>;
using SignedNumbers = List<half, bfloat16, float, double, int8_t, int16_t, int32_t, int64_t,
                           std::complex<float>, std::complex<double>>;

namespace functor {
#include "weir/kernels/elementwise-inl.h"
}  // namespace functor
}  // namespace weir

#endif  // WEIR_KERNELS_ELEMENTWISE_H_
