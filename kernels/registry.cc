#include "weir/kernels/registry.h"

namespace weir {

const KernelRegistry& BuiltinKernels() {
  static const KernelRegistry* const registry = [] {
    auto* kernels = new KernelRegistry;
    AddAccumulatorKernels(kernels);
    AddConcatCpu(kernels);
    AddControlFlowKernels(kernels);
    AddDataFlowKernels(kernels);
    AddDiagCpu(kernels);
    AddFillCpu(kernels);
    AddGatherCpu(kernels);
    AddIoCpu(kernels);
    AddLinalgCpu(kernels);
    AddPadCpu(kernels);
    AddRandomCpu(kernels);
    AddSamplingCpu(kernels);
    AddScatterCpu(kernels);
    AddScatterNdCpu(kernels);
    AddShapeOps(kernels);
    AddSliceCpu(kernels);
    AddSpaceBatchCpu(kernels);
    AddStateCpu(kernels);
    AddTopKCpu(kernels);
    AddTrainingCpu(kernels);
    AddTransposeCpu(kernels);
    AddUniqueCpu(kernels);
    return kernels;
  }();
  return *registry;
}

}  // namespace weir
