#ifndef WEIR_KERNELS_SPARSE_RAGGED_H_
#define WEIR_KERNELS_SPARSE_RAGGED_H_

#include "weir/core/runtime/kernel.h"

namespace weir {

// The parts of AddRaggedKernels, one source file each.
void AddRaggedCrossCpu(KernelRegistry* r);        // ragged_cross_cpu.cc
void AddRaggedToTensorCpu(KernelRegistry* r);     // ragged_to_tensor_cpu.cc
void AddRaggedVariantKernels(KernelRegistry* r);  // ragged_variant.cc

}  // namespace weir

#endif  // WEIR_KERNELS_SPARSE_RAGGED_H_
