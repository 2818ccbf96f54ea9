#include "weir/ops/lib/registry.h"

#include "weir/ops/data/dataset_files_internal.h"
#include "weir/ops/data/dataset_internal.h"
#include "weir/ops/lib/families.h"

namespace weir {

namespace {

constexpr Families<OpRegistry>::Add kFamilies[] = {
    AddActivationOps,
    AddArrayConcatOps,
    AddArrayConstantOps,
    AddArrayDiagOps,
    AddArrayGatherOps,
    AddArrayIdentityOps,
    AddArrayLayoutOps,
    AddArraySearchOps,
    AddArrayShapeOps,
    AddArraySlicingOps,
    AddArraySpaceOps,
    AddAudioOps,
    AddBarrierOps,
    AddBatchOps,
    AddBiasOps,
    AddBinaryMathOps,
    AddBoxOps,
    AddCandidateOps,
    AddCastOps,
    AddColorOps,
    AddComplexOps,
    AddControlFlowOps,
    AddConvOps,
    AddCtcOps,
    AddDataFlowOps,
    AddDatasetFileOps,
    AddDatasetHintOps,
    AddDatasetIteratorOps,
    AddDatasetOps,
    AddDatasetTransformOps,
    AddDatasetValueOps,
    AddDecompositionOps,
    AddDistributionOps,
    AddEinsumOps,
    AddFftOps,
    AddFitOps,
    AddFractionalPoolOps,
    AddFunctionLoopOps,
    AddFunctionOps,
    AddFusedOps,
    AddGeneratorOps,
    AddGlobalNormOps,
    AddImageCodecOps,
    AddImageSamplingOps,
    AddInplaceOps,
    AddIoOps,
    AddLogicOps,
    AddMatMulOps,
    AddMatrixFunctionOps,
    AddNormOps,
    AddOptionalOps,
    AddPadConvOps,
    AddParseExampleOps,
    AddParsingOps,
    AddPatchOps,
    AddPoolOps,
    AddProcessOps,
    AddQuantizeOps,
    AddQuantizedOps,
    AddQueueOps,
    AddRaggedOps,
    AddRandomOps,
    AddReaderOps,
    AddReductionOps,
    AddRemapOps,
    AddResizeOps,
    AddRnnOps,
    AddScanOps,
    AddSdcaOps,
    AddSearchOps,
    AddSegmentOps,
    AddSelectOps,
    AddSessionTensorOps,
    AddSetOps,
    AddSoftmaxOps,
    AddSolveOps,
    AddSparseCountOps,
    AddSparseCrossOps,
    AddSparseMathOps,
    AddSparseOps,
    AddSparsePackOps,
    AddSparseReductionOps,
    AddSpecialMathOps,
    AddStackOps,
    AddStagingOps,
    AddStateOps,
    AddStringOps,
    AddSummaryOps,
    AddSummaryWriterOps,
    AddTableOps,
    AddTensorArrayOps,
    AddTensorListOps,
    AddTensorMapOps,
    AddTrainingOps,
    AddUnaryMathOps,
    AddUnicodeOps,
    AddWord2vecOps,
};

}  // namespace

absl::Span<const Families<OpRegistry>::Add> OpFamilies() { return kFamilies; }

const OpRegistry& BuiltinOps() {
  static const auto* const registry =
      new OpRegistry(std::make_unique<const Families<OpRegistry>>(OpFamilies(), OpFamilyIndex()));
  return *registry;
}

}  // namespace weir
