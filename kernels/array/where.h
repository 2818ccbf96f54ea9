#ifndef WEIR_KERNELS_ARRAY_WHERE_H_
#define WEIR_KERNELS_ARRAY_WHERE_H_

#include "weir/core/runtime/kernel.h"

namespace weir {

// Makes the kernel of Where: the index vectors of the elements that are not zero, in order.
absl::StatusOr<Kernel> MakeWhere(const KernelInit& init);

}  // namespace weir

#endif  // WEIR_KERNELS_ARRAY_WHERE_H_
