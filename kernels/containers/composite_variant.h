#ifndef WEIR_KERNELS_CONTAINERS_COMPOSITE_VARIANT_H_
#define WEIR_KERNELS_CONTAINERS_COMPOSITE_VARIANT_H_

#include "weir/core/runtime/kernel.h"

namespace weir {

// The part of AddTensorMapKernels in composite_variant.cc.
void AddCompositeVariantKernels(KernelRegistry* r);

}  // namespace weir

#endif  // WEIR_KERNELS_CONTAINERS_COMPOSITE_VARIANT_H_
