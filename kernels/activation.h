#ifndef WEIR_KERNELS_ACTIVATION_H_
#define WEIR_KERNELS_ACTIVATION_H_

#include "weir/core/dtype.h"
#include "weir/kernels/scalar_math.h"

// The functors of kernels/activation-inl.h for scalars.
namespace weir::functor {
#include "weir/kernels/activation-inl.h"
}  // namespace weir::functor

#endif  // WEIR_KERNELS_ACTIVATION_H_
