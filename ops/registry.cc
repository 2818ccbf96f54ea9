#include "weir/ops/registry.h"

namespace weir {

const OpRegistry& BuiltinOps() {
  static const OpRegistry* const registry = [] {
    auto* ops = new OpRegistry;
    AddArrayOps(ops);
    AddBatchOps(ops);
    AddControlFlowOps(ops);
    AddCtcOps(ops);
    AddDataFlowOps(ops);
    AddDatasetOps(ops);
    AddFftOps(ops);
    AddFunctionOps(ops);
    AddImageOps(ops);
    AddIoOps(ops);
    AddLinalgOps(ops);
    AddMathOps(ops);
    AddNnOps(ops);
    AddOptionalOps(ops);
    AddParsingOps(ops);
    AddQuantizeOps(ops);
    AddQueueOps(ops);
    AddRaggedOps(ops);
    AddRandomOps(ops);
    AddReaderOps(ops);
    AddRnnOps(ops);
    AddSetOps(ops);
    AddSparseOps(ops);
    AddStackOps(ops);
    AddStagingOps(ops);
    AddStateOps(ops);
    AddStringOps(ops);
    AddSummaryOps(ops);
    AddSummaryWriterOps(ops);
    AddTableOps(ops);
    AddTensorArrayOps(ops);
    AddTensorListOps(ops);
    AddTensorMapOps(ops);
    AddTrainingOps(ops);
    return ops;
  }();
  return *registry;
}

}  // namespace weir
