#include <cmath>
#include <optional>
#include <vector>

#include "weir/session/passes/passes.h"
#include "weir/session/plan/constant_values.h"
#include "weir/session/plan/value_replacement.h"

// Algebraic simplification: x * 1, x / 1, x - 0, not(not x), a Transpose and its inverse. Gradient
// rules and losses create such nodes by the dozen: each layer's loss is multiplied by one. Which
// ops have a neutral element, or are their own inverse, their records say (OpTraits). Results are
// equal, bit for bit, so x + 0 stays in floating point: it turns -0 into 0.
namespace weir {

namespace {

// Returns true if every element is this number (a zero: not -0). 1 also represents true.
bool IsAll(const Tensor& t, double value) {
  const std::optional<double> all = ValueOfAll(t);
  return all == value && !std::signbit(*all);
}

// Returns true if all elements of operand i are neutral, and it does not broadcast the other
// operand.
bool IsNeutral(const PlanGraph& plan, const PlanNode& n, const NeutralElement& neutral, int i) {
  const Tensor* constant = plan.ConstantOf(n.inputs[i]);
  if (constant == nullptr || !IsAll(*constant, neutral.value)) return false;
  return constant->rank() == 0 || plan.KeepsShape(n, n.inputs[1 - i]);
}

// Returns an input, or an input's input, that the node's only output equals.
std::optional<PlanValue> EqualInput(const PlanGraph& plan, const PlanNode& n) {
  const std::string& op = n.node->op_name();
  if (const std::optional<NeutralElement>& neutral = n.traits().neutral;
      neutral && (neutral->in_floating_point || IsInteger(n.node->output_type(0)))) {
    if (IsNeutral(plan, n, *neutral, 1)) return n.inputs[0];
    if (neutral->either_side && IsNeutral(plan, n, *neutral, 0)) return n.inputs[1];
  }
  if (n.inputs.empty()) return std::nullopt;
  const PlanNode& inner = plan.nodes[n.inputs[0].node];
  if (inner.kind != PlanNode::Kind::kOp || inner.node->op_name() != op) return std::nullopt;
  if (n.traits().involution && SameAttributes(inner.node->attrs(), n.node->attrs()))
    return inner.inputs[0];
  if (op != "Transpose") return std::nullopt;
  const std::optional<std::vector<int64_t>> first = PermutationOf(plan, inner),
                                            second = PermutationOf(plan, n);
  if (!first || !second || first->size() != second->size()) return std::nullopt;
  for (size_t d = 0; d < second->size(); ++d) {
    if ((*first)[(*second)[d]] != static_cast<int64_t>(d)) return std::nullopt;
  }
  return inner.inputs[0];
}

}  // namespace

void SimplifyAlgebra(PlanGraph& plan) {
  ValueReplacement(plan).RunOnOutputs([&](const PlanNode& n, int) { return EqualInput(plan, n); });
}

}  // namespace weir
