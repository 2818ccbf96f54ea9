#ifndef WEIR_KERNELS_INPLACE_H_
#define WEIR_KERNELS_INPLACE_H_

#include "weir/core/kernel.h"

namespace weir {

void AddInplaceCpu(KernelRegistry* r);  // inplace_cpu.cc: rows of a tensor that is passed on

}  // namespace weir

#endif  // WEIR_KERNELS_INPLACE_H_
