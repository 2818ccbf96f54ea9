#ifndef WEIR_KERNELS_DATA_REMAP_H_
#define WEIR_KERNELS_DATA_REMAP_H_

#include "weir/core/runtime/kernel.h"

namespace weir {

void AddRemapKernels(KernelRegistry* r);  // remap.cc: warm starts from another vocabulary

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_REMAP_H_
