#ifndef WEIR_KERNELS_MATH_ELEMENTWISE_H_
#define WEIR_KERNELS_MATH_ELEMENTWISE_H_

#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/math/functor.h"

// The functions of elementwise ops, defined once for all devices and types. Each is a functor: a
// struct, derived from Functor or GradientFunctor (kernels/math/functor.h), with
//   kOp       the name of the op,
//   Types     the element types that it supports (a List),
//   Apply<M>  the function of one or two values of type M::V, composed of the operations of M:
//             ScalarMath<T> for one element,
//             VectorMath<D> for a vector of floats or doubles,
// and everything else about the op that differs from its base. Another op with the same function is
// a struct derived from it, with its own kOp. 16-bit floats are computed in float, and rounded
// after each operation (RoundedMath) where the functor has kRoundsSteps.
//
// A family of functors is a file, kernels/math/<family>-inl.h, which ends with two lists: of its
// functors with one argument and of those with two. The CPU's loops (kernels/math/<family>_cpu.cc),
// from which its kernels and the stages of register fusion follow, and the GPU's kernels
// (unary_gpu.cu, binary_gpu.cu) are instantiated for these lists. So a functor and its name in a
// list are all that an op requires.
//
// The families are textual headers without include guards. This header includes them in namespace
// weir::functor for scalars: functor::Exp::Apply<ScalarMath<float>>(x). CPU kernels use these for
// integers and complex numbers, CUDA kernels for everything. Each *_cpu.cc file includes its family
// again inside each of Highway's target namespaces, because vector functions must be compiled for
// their target.
namespace weir::functor {

#include "weir/kernels/math/activation-inl.h"
#include "weir/kernels/math/arithmetic-inl.h"
#include "weir/kernels/math/transcendental-inl.h"

}  // namespace weir::functor

namespace weir {

// The operations by which a functor computes one element of type T, widened to Wide<T>.
template <class F, class T>
using ElementMath = std::conditional_t<F::kRoundsSteps && kIsNarrowFloat<T>,
                                       RoundedMath<ScalarMath<float>, T>, ScalarMath<Wide<T>>>;

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_ELEMENTWISE_H_
