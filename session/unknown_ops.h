#ifndef WEIR_SESSION_UNKNOWN_OPS_H_
#define WEIR_SESSION_UNKNOWN_OPS_H_

#include "weir/session/plan.h"

// Nodes of ops that the graph's registry lacks (core/unknown_op.h), in a step.
namespace weir {

// The kernel that Place gives them: it refuses to run.
const KernelDef& UnknownOpKernel();
inline bool HasUnknownOp(const PlanNode& n) {
  return n.kind == PlanNode::Kind::kOp && n.def == &UnknownOpKernel();
}

// NOT_FOUND if such a node is sure to run: the step then fails before it has any effect. One in a
// branch fails when, and only if, the branch is taken.
absl::Status CheckUnknownOps(const PlanGraph& plan);

}  // namespace weir

#endif  // WEIR_SESSION_UNKNOWN_OPS_H_
