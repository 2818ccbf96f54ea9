#ifndef WEIR_KERNELS_NN_GLOBAL_NORM_H_
#define WEIR_KERNELS_NN_GLOBAL_NORM_H_

#include "weir/core/runtime/kernel.h"

namespace weir {

void AddGlobalNormCpu(KernelRegistry* r);  // global_norm_cpu.cc: BatchNormWithGlobalNormalization

}  // namespace weir

#endif  // WEIR_KERNELS_NN_GLOBAL_NORM_H_
