#include "weir/session/passes/check_unknown_ops.h"

#include "weir/core/graph/unknown_op.h"
#include "weir/session/runtime/executor.h"

namespace weir {

const KernelDef& UnknownOpKernel() {
  static const auto* const refusing = [] {
    auto* def = new KernelDef;
    def->make = KernelFactory(
        +[](KernelContext& context) -> absl::Status { return UnknownOpError(context.node()); });
    return def;
  }();
  return *refusing;
}

// A loop may have no iteration.
absl::Status CheckUnknownOps(const PlanGraph& plan) {
  for (const PlanNode& n : plan.nodes) {
    if (HasUnknownOp(n) && !n.may_be_dead && n.loop < 0)
      return AtNode(*n.node, *n.device, UnknownOpError(*n.node), nullptr);
  }
  return absl::OkStatus();
}

}  // namespace weir
