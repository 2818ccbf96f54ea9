#include "weir/session/passes/effects.h"

#include "weir/session/passes/check_unknown_ops.h"

namespace weir {

// Ops of TensorArrays before V3 do not declare that they change the array.
bool HasEffect(const PlanNode& n) {
  if (n.kind != PlanNode::Kind::kOp || n.kernel.is_constant()) return false;
  const OpTraits& traits = n.traits();
  if (traits.effect == Effect::kMutates || !n.def->writes.empty()) return true;
  return n.node->op().stateful() && traits.variable_use != VariableUse::kReads;
}

bool OnlyComputes(const PlanNode& n) {
  if (n.may_be_dead) return false;
  if (n.kind == PlanNode::Kind::kRead || n.kind == PlanNode::Kind::kCopy) return true;
  if (n.kind != PlanNode::Kind::kOp || HasEffect(n) || n.def->accepts_dead) return false;
  if (HasUnknownOp(n)) return false;
  // Some of these are run for the errors they report, not for their values.
  const OpTraits& traits = n.traits();
  if (traits.effect == Effect::kChecks || traits.placeholder) return false;
  if (traits.variable_use == VariableUse::kReads) return false;
  for (int i = 0; i < n.node->num_outputs(); ++i) {
    if (!IsPlain(n.node->output_type(i)) || IsRef(n.node->output_type(i))) return false;
  }
  return n.node->num_outputs() > 0 && !n.kernel.is_async();
}

}  // namespace weir
