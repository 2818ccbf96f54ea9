#include "weir/session/effects.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "weir/session/unknown_ops.h"

namespace weir {

// Ops of TensorArrays before V3 do not say of themselves that they change the array.
bool HasEffect(const PlanNode& n) {
  if (n.kind != PlanNode::Kind::kOp || n.kernel.is_constant()) return false;
  if (absl::StartsWith(n.node->op_name(), "TensorArray")) return true;
  return (n.node->op().stateful() && n.node->op_name() != "ReadVariableOp") ||
         !n.def->writes.empty();
}

bool OnlyComputes(const PlanNode& n) {
  if (n.may_be_dead) return false;
  if (n.kind == PlanNode::Kind::kRead || n.kind == PlanNode::Kind::kCopy) return true;
  if (n.kind != PlanNode::Kind::kOp || HasEffect(n) || n.def->accepts_dead) return false;
  if (HasUnknownOp(n)) return false;
  // Some are run for what they refuse, not for what they return.
  static constexpr absl::string_view kOthers[] = {"CheckNumerics", "EnsureShape", "Placeholder",
                                                  "PlaceholderV2", "ReadVariableOp"};
  if (absl::c_linear_search(kOthers, n.node->op_name())) return false;
  for (int i = 0; i < n.node->num_outputs(); ++i) {
    if (!IsPlain(n.node->output_type(i)) || IsRef(n.node->output_type(i))) return false;
  }
  return n.node->num_outputs() > 0 && !n.kernel.is_async();
}

}  // namespace weir
