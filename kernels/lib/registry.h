#ifndef WEIR_KERNELS_LIB_REGISTRY_H_
#define WEIR_KERNELS_LIB_REGISTRY_H_

#include "weir/core/runtime/kernel.h"

// The kernel families. Each function adds the kernels of one source file (or a few);
// kernels/registry.cc lists them all. BuiltinKernels() calls a function when a kernel of one of its
// ops is first looked up.
namespace weir {

void AddAccumulatorKernels(KernelRegistry* r);     // accumulator.cc
void AddActivationKernels(KernelRegistry* r);      // elementwise_loops.cc
void AddArithmeticKernels(KernelRegistry* r);      // elementwise_loops.cc
void AddAudioCpu(KernelRegistry* r);               // spectrogram_cpu.cc
void AddBarrierKernels(KernelRegistry* r);         // barrier.cc
void AddBatchKernels(KernelRegistry* r);           // batch.cc
void AddBatchNormCpu(KernelRegistry* r);           // batch_norm_cpu.cc
void AddBetaincCpu(KernelRegistry* r);             // betainc_cpu.cc
void AddBiasCpu(KernelRegistry* r);                // bias_cpu.cc
void AddCastCpu(KernelRegistry* r);                // cast_cpu.cc
void AddClusteringCpu(KernelRegistry* r);          // clustering_cpu.cc
void AddCompareKernels(KernelRegistry* r);         // elementwise_loops.cc
void AddConcatCpu(KernelRegistry* r);              // concat_cpu.cc
void AddControlFlowKernels(KernelRegistry* r);     // control_flow.cc
void AddConvCpu(KernelRegistry* r);                // conv_cpu.cc
void AddCtcKernels(KernelRegistry* r);             // ctc.cc
void AddDataFlowKernels(KernelRegistry* r);        // data_flow.cc
void AddDatasetKernels(KernelRegistry* r);         // dataset.cc
void AddDecompositionCpu(KernelRegistry* r);       // decomposition_cpu.cc
void AddDiagCpu(KernelRegistry* r);                // diag_cpu.cc
void AddEinsumCpu(KernelRegistry* r);              // einsum_cpu.cc
void AddEqualityCpu(KernelRegistry* r);            // compare_cpu.cc
void AddFftCpu(KernelRegistry* r);                 // fft_cpu.cc
void AddFillCpu(KernelRegistry* r);                // fill_cpu.cc
void AddFunctionKernels(KernelRegistry* r);        // function.cc
void AddGatherCpu(KernelRegistry* r);              // gather_cpu.cc
void AddImageCodecKernels(KernelRegistry* r);      // image_codec.cc
void AddImageCpu(KernelRegistry* r);               // image_cpu.cc
void AddIoCpu(KernelRegistry* r);                  // io.cc
void AddIsotonicCpu(KernelRegistry* r);            // isotonic_cpu.cc
void AddLinalgCpu(KernelRegistry* r);              // linalg.cc
void AddLrnCpu(KernelRegistry* r);                 // lrn_cpu.cc
void AddMapDefunKernels(KernelRegistry* r);        // map_defun.cc
void AddMatMulCpu(KernelRegistry* r);              // matmul_cpu.cc
void AddOptionalKernels(KernelRegistry* r);        // optional.cc
void AddPadCpu(KernelRegistry* r);                 // pad_cpu.cc
void AddParsingKernels(KernelRegistry* r);         // parsing.cc
void AddPatchesCpu(KernelRegistry* r);             // patches_cpu.cc
void AddPoolArgmaxCpu(KernelRegistry* r);          // pool_argmax_cpu.cc
void AddPoolCpu(KernelRegistry* r);                // pool_cpu.cc
void AddProcessKernels(KernelRegistry* r);         // process.cc
void AddQuantizeCpu(KernelRegistry* r);            // quantize_cpu.cc
void AddQueueKernels(KernelRegistry* r);           // queue.cc
void AddRaggedKernels(KernelRegistry* r);          // ragged.cc
void AddRandomCpu(KernelRegistry* r);              // random_cpu.cc
void AddReaderKernels(KernelRegistry* r);          // reader.cc
void AddReduceCpu(KernelRegistry* r);              // reduce.cc
void AddRnnCpu(KernelRegistry* r);                 // rnn_cpu.cc
void AddSamplingCpu(KernelRegistry* r);            // sampling_cpu.cc
void AddScanCpu(KernelRegistry* r);                // scan_cpu.cc
void AddScatterCpu(KernelRegistry* r);             // scatter_cpu.cc
void AddScatterNdCpu(KernelRegistry* r);           // scatter_nd_cpu.cc
void AddSdcaKernels(KernelRegistry* r);            // sdca_cpu.cc
void AddSearchCpu(KernelRegistry* r);              // search_cpu.cc
void AddSegmentCpu(KernelRegistry* r);             // segment_cpu.cc
void AddSelectCpu(KernelRegistry* r);              // select_cpu.cc
void AddSendReceiveKernels(KernelRegistry* r);     // send_receive.cc
void AddSeparableConvCpu(KernelRegistry* r);       // separable_conv_cpu.cc
void AddSequenceCpu(KernelRegistry* r);            // sequence_cpu.cc
void AddSessionTensorKernels(KernelRegistry* r);   // session_tensor.cc
void AddSetsCpu(KernelRegistry* r);                // sets_cpu.cc
void AddShapeOps(KernelRegistry* r);               // shape_ops.cc
void AddSliceCpu(KernelRegistry* r);               // slice_cpu.cc
void AddSoftmaxCpu(KernelRegistry* r);             // softmax_cpu.cc
void AddSpaceBatchCpu(KernelRegistry* r);          // space_batch_cpu.cc
void AddSparseCpu(KernelRegistry* r);              // sparse_cpu.cc
void AddSparseMapKernels(KernelRegistry* r);       // sparse_map.cc
void AddSparseMathCpu(KernelRegistry* r);          // sparse_math_cpu.cc
void AddSpecialKernels(KernelRegistry* r);         // elementwise_loops.cc
void AddStackKernels(KernelRegistry* r);           // stack.cc
void AddStagingKernels(KernelRegistry* r);         // staging.cc
void AddStateCpu(KernelRegistry* r);               // state.cc
void AddStringKernels(KernelRegistry* r);          // string.cc
void AddSummary(KernelRegistry* r);                // summary.cc
void AddSummaryMedia(KernelRegistry* r);           // summary_media.cc
void AddSummaryWriterKernels(KernelRegistry* r);   // summary_writer.cc
void AddTableKernels(KernelRegistry* r);           // table.cc
void AddTempVariableKernels(KernelRegistry* r);    // temporary_variable.cc
void AddTensorArrayKernels(KernelRegistry* r);     // tensor_array.cc
void AddTensorListKernels(KernelRegistry* r);      // tensor_list.cc
void AddTensorMapKernels(KernelRegistry* r);       // tensor_map.cc
void AddTopKCpu(KernelRegistry* r);                // topk_cpu.cc
void AddTrainingCpu(KernelRegistry* r);            // training_cpu.cc
void AddTranscendentalKernels(KernelRegistry* r);  // elementwise_loops.cc
void AddTransposeCpu(KernelRegistry* r);           // transpose_cpu.cc
void AddUnicodeKernels(KernelRegistry* r);         // unicode.cc
void AddUniqueCpu(KernelRegistry* r);              // unique_cpu.cc
void AddWord2vecKernels(KernelRegistry* r);        // word2vec.cc

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_REGISTRY_H_
