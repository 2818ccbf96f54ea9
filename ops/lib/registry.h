#ifndef WEIR_OPS_LIB_REGISTRY_H_
#define WEIR_OPS_LIB_REGISTRY_H_

#include "weir/core/graph/op.h"

// The families of ops. Each function adds the op definitions of one source file. ops/registry.cc
// lists all of them, and BuiltinOps() calls one when one of its ops is first looked up.
namespace weir {

void AddActivationOps(OpRegistry* ops);        // nn_activation.cc
void AddArrayConcatOps(OpRegistry* ops);       // array_concat.cc
void AddArrayConstantOps(OpRegistry* ops);     // array_constant.cc
void AddArrayDiagOps(OpRegistry* ops);         // array_diag.cc
void AddArrayGatherOps(OpRegistry* ops);       // array_gather.cc
void AddArrayIdentityOps(OpRegistry* ops);     // array_identity.cc
void AddArrayLayoutOps(OpRegistry* ops);       // array_layout.cc
void AddArraySearchOps(OpRegistry* ops);       // array_search.cc
void AddArrayShapeOps(OpRegistry* ops);        // array_shape.cc
void AddArraySlicingOps(OpRegistry* ops);      // array_slicing.cc
void AddArraySpaceOps(OpRegistry* ops);        // array_space.cc
void AddAudioOps(OpRegistry* ops);             // audio.cc
void AddBarrierOps(OpRegistry* ops);           // barrier.cc
void AddBatchOps(OpRegistry* ops);             // batch.cc
void AddBiasOps(OpRegistry* ops);              // nn_bias.cc
void AddBinaryMathOps(OpRegistry* ops);        // math_binary.cc
void AddBoxOps(OpRegistry* ops);               // image_boxes.cc
void AddCandidateOps(OpRegistry* ops);         // candidate.cc
void AddCastOps(OpRegistry* ops);              // math_cast.cc
void AddColorOps(OpRegistry* ops);             // image_color.cc
void AddComplexOps(OpRegistry* ops);           // math_complex.cc
void AddControlFlowOps(OpRegistry* ops);       // control_flow.cc
void AddConvOps(OpRegistry* ops);              // nn_conv.cc
void AddCtcOps(OpRegistry* ops);               // ctc.cc
void AddDataFlowOps(OpRegistry* ops);          // data_flow.cc
void AddDatasetFileOps(OpRegistry* ops);       // dataset_files.cc
void AddDatasetHintOps(OpRegistry* ops);       // dataset_hints.cc
void AddDatasetIteratorOps(OpRegistry* ops);   // iterators.cc
void AddDatasetOps(OpRegistry* ops);           // dataset.cc
void AddDatasetTransformOps(OpRegistry* ops);  // dataset_transforms.cc
void AddDatasetValueOps(OpRegistry* ops);      // dataset_values.cc
void AddDecompositionOps(OpRegistry* ops);     // linalg_decompositions.cc
void AddDistributionOps(OpRegistry* ops);      // random_distributions.cc
void AddEinsumOps(OpRegistry* ops);            // einsum.cc
void AddFftOps(OpRegistry* ops);               // fft.cc
void AddFitOps(OpRegistry* ops);               // fit.cc
void AddFractionalPoolOps(OpRegistry* ops);    // image_pool.cc
void AddFunctionLoopOps(OpRegistry* ops);      // function_loop.cc
void AddFunctionOps(OpRegistry* ops);          // function.cc
void AddFusedOps(OpRegistry* ops);             // nn_fused.cc
void AddGeneratorOps(OpRegistry* ops);         // random_generator.cc
void AddGlobalNormOps(OpRegistry* ops);        // global_norm.cc
void AddImageCodecOps(OpRegistry* ops);        // image_codec.cc
void AddImageSamplingOps(OpRegistry* ops);     // image_sampling.cc
void AddInplaceOps(OpRegistry* ops);           // inplace.cc
void AddIoOps(OpRegistry* ops);                // io.cc
void AddLogicOps(OpRegistry* ops);             // math_logic.cc
void AddMatMulOps(OpRegistry* ops);            // math_matmul.cc
void AddMatrixFunctionOps(OpRegistry* ops);    // linalg_functions.cc
void AddNormOps(OpRegistry* ops);              // nn_norm.cc
void AddOptionalOps(OpRegistry* ops);          // optional.cc
void AddPadConvOps(OpRegistry* ops);           // nn_pad_conv.cc
void AddParseExampleOps(OpRegistry* ops);      // parse_example.cc
void AddParsingOps(OpRegistry* ops);           // parsing.cc
void AddPatchOps(OpRegistry* ops);             // image_patches.cc
void AddPoolOps(OpRegistry* ops);              // nn_pool.cc
void AddProcessOps(OpRegistry* ops);           // process.cc
void AddQuantizeOps(OpRegistry* ops);          // quantize.cc
void AddQuantizedOps(OpRegistry* ops);         // quantized.cc
void AddQueueOps(OpRegistry* ops);             // queue.cc
void AddRaggedOps(OpRegistry* ops);            // ragged.cc
void AddRandomOps(OpRegistry* ops);            // random.cc
void AddReaderOps(OpRegistry* ops);            // reader.cc
void AddReductionOps(OpRegistry* ops);         // math_reduction.cc
void AddRemapOps(OpRegistry* ops);             // remap.cc
void AddResizeOps(OpRegistry* ops);            // image_resize.cc
void AddRnnOps(OpRegistry* ops);               // rnn.cc
void AddScanOps(OpRegistry* ops);              // math_scan.cc
void AddSdcaOps(OpRegistry* ops);              // sdca.cc
void AddSearchOps(OpRegistry* ops);            // search.cc
void AddSegmentOps(OpRegistry* ops);           // math_segment.cc
void AddSelectOps(OpRegistry* ops);            // math_select.cc
void AddSendReceiveOps(OpRegistry* ops);       // send_receive.cc
void AddSessionTensorOps(OpRegistry* ops);     // session_tensor.cc
void AddSetOps(OpRegistry* ops);               // sets.cc
void AddSoftmaxOps(OpRegistry* ops);           // nn_losses.cc
void AddSolveOps(OpRegistry* ops);             // linalg_solve.cc
void AddSparseCountOps(OpRegistry* ops);       // sparse_count.cc
void AddSparseCrossOps(OpRegistry* ops);       // sparse_cross.cc
void AddSparseMathOps(OpRegistry* ops);        // sparse_math.cc
void AddSparseOps(OpRegistry* ops);            // sparse.cc
void AddSparsePackOps(OpRegistry* ops);        // sparse_pack.cc
void AddSparseReductionOps(OpRegistry* ops);   // sparse_reduction.cc
void AddSpecialMathOps(OpRegistry* ops);       // math_special.cc
void AddStackOps(OpRegistry* ops);             // stack.cc
void AddStagingOps(OpRegistry* ops);           // staging.cc
void AddStateOps(OpRegistry* ops);             // state.cc
void AddStringOps(OpRegistry* ops);            // string.cc
void AddSummaryOps(OpRegistry* ops);           // summary.cc
void AddSummaryWriterOps(OpRegistry* ops);     // summary_writer.cc
void AddTableOps(OpRegistry* ops);             // table.cc
void AddTensorArrayOps(OpRegistry* ops);       // tensor_array.cc
void AddTensorListOps(OpRegistry* ops);        // tensor_list.cc
void AddTensorMapOps(OpRegistry* ops);         // tensor_map.cc
void AddTrainingOps(OpRegistry* ops);          // training.cc
void AddUnaryMathOps(OpRegistry* ops);         // math_unary.cc
void AddUnicodeOps(OpRegistry* ops);           // string_unicode.cc
void AddWord2vecOps(OpRegistry* ops);          // word2vec.cc

}  // namespace weir

#endif  // WEIR_OPS_LIB_REGISTRY_H_
