#ifndef WEIR_OPS_REGISTRY_H_
#define WEIR_OPS_REGISTRY_H_

#include "weir/core/op.h"

// The families of ops. Each function adds the records of one source file; ops/registry.cc calls
// them all, once, for BuiltinOps().
namespace weir {

void AddArrayOps(OpRegistry* ops);          // array.cc
void AddBatchOps(OpRegistry* ops);          // batch.cc
void AddControlFlowOps(OpRegistry* ops);    // control_flow.cc
void AddCtcOps(OpRegistry* ops);            // ctc.cc
void AddDataFlowOps(OpRegistry* ops);       // data_flow.cc
void AddDatasetOps(OpRegistry* ops);        // dataset.cc
void AddFftOps(OpRegistry* ops);            // fft.cc
void AddFunctionOps(OpRegistry* ops);       // function.cc
void AddImageOps(OpRegistry* ops);          // image.cc
void AddIoOps(OpRegistry* ops);             // io.cc
void AddLinalgOps(OpRegistry* ops);         // linalg.cc
void AddMathOps(OpRegistry* ops);           // math.cc
void AddNnOps(OpRegistry* ops);             // nn.cc
void AddOptionalOps(OpRegistry* ops);       // optional.cc
void AddParsingOps(OpRegistry* ops);        // parsing.cc
void AddQuantizeOps(OpRegistry* ops);       // quantize.cc
void AddQueueOps(OpRegistry* ops);          // queue.cc
void AddRaggedOps(OpRegistry* ops);         // ragged.cc
void AddRandomOps(OpRegistry* ops);         // random.cc
void AddReaderOps(OpRegistry* ops);         // reader.cc
void AddRnnOps(OpRegistry* ops);            // rnn.cc
void AddSetOps(OpRegistry* ops);            // sets.cc
void AddSparseOps(OpRegistry* ops);         // sparse.cc
void AddStackOps(OpRegistry* ops);          // stack.cc
void AddStagingOps(OpRegistry* ops);        // staging.cc
void AddStateOps(OpRegistry* ops);          // state.cc
void AddStringOps(OpRegistry* ops);         // string.cc
void AddSummaryOps(OpRegistry* ops);        // summary.cc
void AddSummaryWriterOps(OpRegistry* ops);  // summary_writer.cc
void AddTableOps(OpRegistry* ops);          // table.cc
void AddTensorArrayOps(OpRegistry* ops);    // tensor_array.cc
void AddTensorListOps(OpRegistry* ops);     // tensor_list.cc
void AddTensorMapOps(OpRegistry* ops);      // tensor_map.cc
void AddTrainingOps(OpRegistry* ops);       // training.cc

}  // namespace weir

#endif  // WEIR_OPS_REGISTRY_H_
