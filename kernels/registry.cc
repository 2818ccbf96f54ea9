#include "weir/kernels/registry.h"

namespace weir {

const KernelRegistry& BuiltinKernels() {
  static const KernelRegistry* const registry = [] {
    auto* kernels = new KernelRegistry;
    AddIoCpu(kernels);
    AddRandomCpu(kernels);
    AddSamplingCpu(kernels);
    AddScatterCpu(kernels);
    AddStateCpu(kernels);
    AddTrainingCpu(kernels);
    return kernels;
  }();
  return *registry;
}

}  // namespace weir
