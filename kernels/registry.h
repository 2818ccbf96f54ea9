#ifndef WEIR_KERNELS_REGISTRY_H_
#define WEIR_KERNELS_REGISTRY_H_

#include "weir/core/kernel.h"

// The families of kernels. Each function adds the kernels of one source file (or a few); kernels/registry.cc calls them
// all, once, for BuiltinKernels().
namespace weir {

void AddAccumulatorKernels(KernelRegistry* r);    // accumulator.cc
void AddConcatCpu(KernelRegistry* r);             // concat_cpu.cc
void AddControlFlowKernels(KernelRegistry* r);    // control_flow.cc
void AddDataFlowKernels(KernelRegistry* r);       // data_flow.cc
void AddDiagCpu(KernelRegistry* r);               // diag_cpu.cc
void AddFillCpu(KernelRegistry* r);               // fill_cpu.cc
void AddGatherCpu(KernelRegistry* r);             // gather_cpu.cc
void AddIoCpu(KernelRegistry* r);                 // io.cc
void AddLinalgCpu(KernelRegistry* r);             // qr_cpu.cc
void AddPadCpu(KernelRegistry* r);                // pad_cpu.cc
void AddRandomCpu(KernelRegistry* r);             // random_cpu.cc
void AddSamplingCpu(KernelRegistry* r);           // sampling_cpu.cc
void AddScatterCpu(KernelRegistry* r);            // scatter_cpu.cc
void AddScatterNdCpu(KernelRegistry* r);          // scatter_nd_cpu.cc
void AddShapeOps(KernelRegistry* r);              // shape_ops.cc
void AddSliceCpu(KernelRegistry* r);              // slice_cpu.cc
void AddSpaceBatchCpu(KernelRegistry* r);         // space_batch_cpu.cc
void AddStateCpu(KernelRegistry* r);              // state.cc
void AddTopKCpu(KernelRegistry* r);               // topk_cpu.cc
void AddTrainingCpu(KernelRegistry* r);           // training_cpu.cc
void AddTransposeCpu(KernelRegistry* r);          // transpose_cpu.cc
void AddUniqueCpu(KernelRegistry* r);             // unique_cpu.cc

}  // namespace weir

#endif  // WEIR_KERNELS_REGISTRY_H_
