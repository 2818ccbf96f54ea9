#include "weir/kernels/registry.h"

#include "weir/kernels/families.h"
#include "weir/kernels/fused_elementwise.h"
#include "weir/kernels/gpu.h"
#include "weir/kernels/matmul.h"
#include "weir/kernels/scalar_program.h"

namespace weir {

namespace {

constexpr Families<KernelRegistry>::Add kFamilies[] = {
    AddAccumulatorKernels,
    AddActivationKernels,
    AddArithmeticKernels,
    AddBarrierKernels,
    AddBatchKernels,
    AddBatchNormCpu,
    AddBetaincCpu,
    AddBiasCpu,
    AddCastCpu,
    AddClusteringCpu,
    AddCompareKernels,
    AddConcatCpu,
    AddControlFlowKernels,
    AddConvCpu,
    AddCtcKernels,
    AddDataFlowKernels,
    AddDatasetKernels,
    AddDecompositionCpu,
    AddDeferredMatMulKernels,
    AddDiagCpu,
    AddEinsumCpu,
    AddEqualityCpu,
    AddFftCpu,
    AddFillCpu,
    AddFunctionKernels,
    AddFusedElementwiseKernels,
    AddFusedLayerNormKernels,
    AddFusedReductionKernels,
    AddGatherCpu,
    AddImageCodecKernels,
    AddImageCpu,
    AddIoCpu,
    AddIsotonicCpu,
    AddLinalgCpu,
    AddLrnCpu,
    AddMatMulCpu,
    AddOptionalKernels,
    AddPadCpu,
    AddParsingKernels,
    AddPatchesCpu,
    AddPoolArgmaxCpu,
    AddPoolCpu,
    AddQuantizeCpu,
    AddQueueKernels,
    AddRaggedKernels,
    AddRandomCpu,
    AddReaderKernels,
    AddReduceCpu,
    AddRnnCpu,
    AddSamplingCpu,
    AddScalarLoopKernels,
    AddScanCpu,
    AddScatterCpu,
    AddScatterNdCpu,
    AddSearchCpu,
    AddSegmentCpu,
    AddSelectCpu,
    AddSeparableConvCpu,
    AddSequenceCpu,
    AddSetsCpu,
    AddShapeOps,
    AddSliceCpu,
    AddSoftmaxCpu,
    AddSpaceBatchCpu,
    AddSparseCpu,
    AddSparseMapKernels,
    AddSparseMathCpu,
    AddSpecialKernels,
    AddStackKernels,
    AddStagingKernels,
    AddStateCpu,
    AddStringKernels,
    AddSummary,
    AddSummaryMedia,
    AddSummaryWriterKernels,
    AddTableKernels,
    AddTempVariableKernels,
    AddTensorArrayKernels,
    AddTensorListKernels,
    AddTensorMapKernels,
    AddTopKCpu,
    AddTrainingCpu,
    AddTranscendentalKernels,
    AddTransposeCpu,
    AddUnicodeKernels,
    AddUniqueCpu,
};

}  // namespace

absl::Span<const Families<KernelRegistry>::Add> KernelFamilies() { return kFamilies; }

const KernelRegistry& BuiltinKernels() {
  static const KernelRegistry* const registry = [] {
    auto* kernels = new KernelRegistry(
        std::make_unique<const Families<KernelRegistry>>(KernelFamilies(), KernelFamilyIndex()));
    AddGpuKernels(kernels);  // some are CPU kernels
    return kernels;
  }();
  return *registry;
}

}  // namespace weir
