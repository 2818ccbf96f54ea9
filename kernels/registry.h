#ifndef WEIR_KERNELS_REGISTRY_H_
#define WEIR_KERNELS_REGISTRY_H_

#include "weir/core/kernel.h"

// The families of kernels. Each function adds the kernels of one source file (or a few); kernels/registry.cc calls them
// all, once, for BuiltinKernels().
namespace weir {

void AddIoCpu(KernelRegistry* r);        // io.cc
void AddRandomCpu(KernelRegistry* r);  // random_cpu.cc
void AddSamplingCpu(KernelRegistry* r);  // sampling_cpu.cc
void AddScatterCpu(KernelRegistry* r);  // scatter_cpu.cc

void AddStateCpu(KernelRegistry* r);  // state.cc
void AddTrainingCpu(KernelRegistry* r);  // training_cpu.cc
}  // namespace weir

#endif  // WEIR_KERNELS_REGISTRY_H_
