#include "weir/kernels/lib/registry.h"

#include <memory>
#include <utility>

#include "weir/kernels/gpu/gpu.h"
#include "weir/kernels/lib/backend.h"
#include "weir/kernels/linalg/matmul.h"
#include "weir/kernels/math/families.h"
#include "weir/kernels/math/fused_elementwise.h"
#include "weir/kernels/math/scalar_program.h"

namespace weir {

namespace {

constexpr Families<KernelRegistry>::Add kFamilies[] = {
    AddAccumulatorKernels,
    AddActivationKernels,
    AddArithmeticKernels,
    AddAudioCpu,
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
    AddFusedAttentionKernels,
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
    AddMapDefunKernels,
    AddMatMulCpu,
    AddOptionalKernels,
    AddPadCpu,
    AddParsingKernels,
    AddPatchesCpu,
    AddPoolArgmaxCpu,
    AddPoolCpu,
    AddProcessKernels,
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
    AddSdcaKernels,
    AddSearchCpu,
    AddSegmentCpu,
    AddSelectCpu,
    AddSendReceiveKernels,
    AddSeparableConvCpu,
    AddSequenceCpu,
    AddSessionTensorKernels,
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
    AddWord2vecKernels,
};

}  // namespace

absl::Span<const Families<KernelRegistry>::Add> KernelFamilies() { return kFamilies; }

const BackendRegistry& BuiltinBackends() {
  static const BackendRegistry* const registry = [] {
    auto* backends = new BackendRegistry(
        std::make_unique<const Families<KernelRegistry>>(KernelFamilies(), KernelFamilyIndex()));
    // In order of preference. They have different device types, so adding them does not fail.
    for (const auto create : {NewGpuBackend}) {
      if (std::unique_ptr<Backend> backend = create())
        backends->Add(std::move(backend)).IgnoreError();
    }
    return backends;
  }();
  return *registry;
}

const KernelRegistry& BuiltinKernels() { return BuiltinBackends().kernels(); }

}  // namespace weir
