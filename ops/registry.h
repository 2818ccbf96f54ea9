#ifndef WEIR_OPS_REGISTRY_H_
#define WEIR_OPS_REGISTRY_H_

#include "weir/core/op.h"

// The families of ops. Each function adds the records of one source file; ops/registry.cc calls
// them all, once, for BuiltinOps().
namespace weir {

void AddArrayOps(OpRegistry* ops);        // array.cc
void AddControlFlowOps(OpRegistry* ops);  // control_flow.cc
void AddDataFlowOps(OpRegistry* ops);     // data_flow.cc
void AddIoOps(OpRegistry* ops);           // io.cc
void AddLinalgOps(OpRegistry* ops);       // linalg.cc
void AddMathOps(OpRegistry* ops);         // math.cc
void AddNnOps(OpRegistry* ops);           // nn.cc
void AddRandomOps(OpRegistry* ops);       // random.cc
void AddSetOps(OpRegistry* ops);          // sets.cc
void AddStackOps(OpRegistry* ops);        // stack.cc
void AddStateOps(OpRegistry* ops);        // state.cc
void AddSummaryOps(OpRegistry* ops);      // summary.cc
void AddTrainingOps(OpRegistry* ops);     // training.cc

}  // namespace weir

#endif  // WEIR_OPS_REGISTRY_H_
