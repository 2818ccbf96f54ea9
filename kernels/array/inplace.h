#ifndef WEIR_KERNELS_ARRAY_INPLACE_H_
#define WEIR_KERNELS_ARRAY_INPLACE_H_

#include "weir/core/runtime/kernel.h"

namespace weir {

void AddInplaceCpu(KernelRegistry* r);  // inplace_cpu.cc: ops on rows of a forwarded tensor

}  // namespace weir

#endif  // WEIR_KERNELS_ARRAY_INPLACE_H_
