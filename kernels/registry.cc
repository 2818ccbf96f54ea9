#include "weir/kernels/registry.h"

#include "weir/kernels/fused_elementwise.h"
#include "weir/kernels/gpu.h"
#include "weir/kernels/scalar_program.h"

namespace weir {

const KernelRegistry& BuiltinKernels() {
  static const KernelRegistry* const registry = [] {
    auto* kernels = new KernelRegistry;
    AddAccumulatorKernels(kernels);
    AddBarrierKernels(kernels);
    AddBatchKernels(kernels);
    AddBatchNormCpu(kernels);
    AddBetaincCpu(kernels);
    AddBiasCpu(kernels);
    AddCastCpu(kernels);
    AddClusteringCpu(kernels);
    AddConcatCpu(kernels);
    AddControlFlowKernels(kernels);
    AddConvCpu(kernels);
    AddCtcKernels(kernels);
    AddDataFlowKernels(kernels);
    AddDatasetKernels(kernels);
    AddDecompositionCpu(kernels);
    AddDiagCpu(kernels);
    AddEinsumCpu(kernels);
    AddEqualityCpu(kernels);
    AddFftCpu(kernels);
    AddFillCpu(kernels);
    AddFunctionKernels(kernels);
    AddFusedLayerNormKernels(kernels);
    AddFusedReductionKernels(kernels);
    AddGatherCpu(kernels);
    AddImageCodecKernels(kernels);
    AddImageCpu(kernels);
    AddIoCpu(kernels);
    AddIsotonicCpu(kernels);
    AddLinalgCpu(kernels);
    AddLrnCpu(kernels);
    AddMatMulCpu(kernels);
    AddOptionalKernels(kernels);
    AddPadCpu(kernels);
    AddParsingKernels(kernels);
    AddPatchesCpu(kernels);
    AddPoolArgmaxCpu(kernels);
    AddPoolCpu(kernels);
    AddQuantizeCpu(kernels);
    AddQueueKernels(kernels);
    AddRaggedKernels(kernels);
    AddRandomCpu(kernels);
    AddReaderKernels(kernels);
    AddReduceCpu(kernels);
    AddRnnCpu(kernels);
    AddSamplingCpu(kernels);
    AddScalarLoopKernels(kernels);
    AddScanCpu(kernels);
    AddScatterCpu(kernels);
    AddScatterNdCpu(kernels);
    AddSearchCpu(kernels);
    AddSegmentCpu(kernels);
    AddSelectCpu(kernels);
    AddSequenceCpu(kernels);
    AddSetsCpu(kernels);
    AddShapeOps(kernels);
    AddSliceCpu(kernels);
    AddSoftmaxCpu(kernels);
    AddSpaceBatchCpu(kernels);
    AddSpanKernels(kernels);
    AddSparseCpu(kernels);
    AddSparseMapKernels(kernels);
    AddSparseMathCpu(kernels);
    AddStackKernels(kernels);
    AddStagingKernels(kernels);
    AddStateCpu(kernels);
    AddStringKernels(kernels);
    AddSummary(kernels);
    AddSummaryMedia(kernels);
    AddSummaryWriterKernels(kernels);
    AddTableKernels(kernels);
    AddTensorArrayKernels(kernels);
    AddTensorListKernels(kernels);
    AddTensorMapKernels(kernels);
    AddTopKCpu(kernels);
    AddTrainingCpu(kernels);
    AddTransposeCpu(kernels);
    AddUnicodeKernels(kernels);
    AddUniqueCpu(kernels);
    AddGpuKernels(kernels);  // last: some are the CPU's
    return kernels;
  }();
  return *registry;
}

}  // namespace weir
