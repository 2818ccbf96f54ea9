#include "weir/ops/registry.h"

namespace weir {

const OpRegistry& BuiltinOps() {
  static const OpRegistry* const registry = [] {
    auto* ops = new OpRegistry;
    AddArrayOps(ops);
    AddControlFlowOps(ops);
    AddCtcOps(ops);
    AddDataFlowOps(ops);
    AddImageOps(ops);
    AddDatasetOps(ops);
    AddFunctionOps(ops);
    AddFftOps(ops);
    AddIoOps(ops);
    AddLinalgOps(ops);
    AddMathOps(ops);
    AddNnOps(ops);
    AddParsingOps(ops);
    AddQueueOps(ops);
    AddRaggedOps(ops);
    AddOptionalOps(ops);
    AddRandomOps(ops);
    AddReaderOps(ops);
    AddQuantizeOps(ops);
    AddRandomOps(ops);
    AddRnnOps(ops);
    AddSetOps(ops);
    AddSparseOps(ops);
    AddStackOps(ops);
    AddStagingOps(ops);
    AddStateOps(ops);
    AddStringOps(ops);
    AddSummaryOps(ops);
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
