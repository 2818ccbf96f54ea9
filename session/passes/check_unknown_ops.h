#ifndef WEIR_SESSION_PASSES_CHECK_UNKNOWN_OPS_H_
#define WEIR_SESSION_PASSES_CHECK_UNKNOWN_OPS_H_

#include "weir/session/plan/plan_graph.h"

// Handling of nodes whose ops are not in the graph's registry (core/graph/unknown_op.h), in a step.
namespace weir {

// Returns the kernel that Place assigns to them: it returns an error.
const KernelDef& UnknownOpKernel();
inline bool HasUnknownOp(const PlanNode& n) {
  return n.kind == PlanNode::Kind::kOp && n.def == &UnknownOpKernel();
}

// Returns NOT_FOUND if such a node is certain to run: the step then fails before it has any effect.
// One in a branch fails when, and only if, the branch is taken.
absl::Status CheckUnknownOps(const PlanGraph& plan);

}  // namespace weir

#endif  // WEIR_SESSION_PASSES_CHECK_UNKNOWN_OPS_H_
