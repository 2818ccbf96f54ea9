#include "weir/session/passes/passes.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "weir/session/plan/value_replacement.h"

// Removal of no-ops: a node that forwards its input (Identity, a Cast to the same type, a Reshape,
// Transpose, Slice or Pad that changes nothing, an AddN of one value) is bypassed. A variable's
// read is an Identity in TensorFlow 1's graphs, and Python puts others before every output.
namespace weir {

namespace {

// Returns the input that output i equals.
std::optional<PlanValue> ForwardedInput(const PlanGraph& plan, const PlanNode& n, int i) {
  if (n.traits().effect != Effect::kByState) return std::nullopt;  // it refuses some inputs
  const std::string& op = n.node->op_name();
  if (n.traits().movement == Movement::kIdentity) return n.inputs[i];
  if (op == "Cast" && n.node->input_type(0) == n.node->output_type(0)) return n.inputs[0];
  if (op == "AddN" && n.inputs.size() == 1) return n.inputs[0];
  if (op == "ToBool" && n.node->input_type(0) == DT_BOOL && plan.ShapeOf(n.inputs[0]) == Shape())
    return n.inputs[0];
  if (n.traits().identity_if_same_shape && plan.KeepsShape(n, n.inputs[0])) return n.inputs[0];
  if (op == "Transpose") {
    const std::optional<std::vector<int64_t>> perm = PermutationOf(plan, n);
    if (perm && absl::c_is_sorted(*perm)) return n.inputs[0];
  }
  return std::nullopt;
}

}  // namespace

void RemoveNoOps(PlanGraph& plan) {
  ValueReplacement(plan).RunOnOutputs(
      [&](const PlanNode& n, int i) { return ForwardedInput(plan, n, i); });
}

}  // namespace weir
