#include "weir/session/plan/value_replacement.h"

namespace weir {

bool IsPure(const PlanNode& n) {
  if (n.traits().effect == Effect::kMutates) return false;
  if (n.node->op().stateful() || !n.def->writes.empty() || n.def->accepts_dead) return false;
  if (n.kernel.is_async() || n.is_enter() || n.is_exit() || n.loop != n.value_loop) return false;
  const auto is_value = [](DataType t) { return !IsRef(t) && IsPlain(t); };
  for (int i = 0; i < n.node->num_inputs(); ++i) {
    if (!is_value(n.node->input_type(i))) return false;
  }
  for (int i = 0; i < n.node->num_outputs(); ++i) {
    if (!is_value(n.node->output_type(i))) return false;
  }
  const ControlFlow flow = n.traits().control_flow;
  return n.node->num_outputs() > 0 && flow != ControlFlow::kSwitch &&
         flow != ControlFlow::kNextIteration && flow != ControlFlow::kLoopCond &&
         !n.traits().placeholder;
}

std::optional<std::vector<int64_t>> PermutationOf(const PlanGraph& plan, const PlanNode& n) {
  const Tensor* const perm = plan.ConstantOf(n.inputs[1]);
  if (perm == nullptr || perm->rank() != 1) return std::nullopt;
  const Shape& shape = plan.ShapeOf(n.inputs[0]);
  const int64_t rank = perm->num_elements();
  if (!shape.has_rank() || shape.rank() != rank) return std::nullopt;
  std::vector<int64_t> axes(rank);
  std::vector<bool> seen(rank);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t axis = perm->IntAt(i) < 0 ? perm->IntAt(i) + rank : perm->IntAt(i);
    if (axis < 0 || axis >= rank || seen[axis]) return std::nullopt;
    seen[axis] = true;
    axes[i] = axis;
  }
  return axes;
}

bool SameAttributes(const AttrMap& a, const AttrMap& b) {
  auto i = a.begin(), j = b.begin();
  for (;; ++i, ++j) {
    while (i != a.end() && i->first[0] == '_') ++i;
    while (j != b.end() && j->first[0] == '_') ++j;
    if (i == a.end() || j == b.end()) return i == a.end() && j == b.end();
    if (i->first != j->first || i->second != j->second) return false;
  }
}

void ValueReplacement::Run(absl::FunctionRef<void(int id, const PlanNode& n)> visit) {
  for (size_t id = 0; id < plan_.nodes.size(); ++id) {
    PlanNode& n = plan_.nodes[id];
    for (PlanValue& v : n.inputs) v = Resolve(v);
    if (n.kind == PlanNode::Kind::kOp && IsPure(n)) visit(static_cast<int>(id), n);
  }
  for (PlanGraph::Carry& c : plan_.carries) c.next = Resolve(c.next);
  for (PlanValue& v : plan_.fetches) v = Resolve(v);
}

void ValueReplacement::RunOnOutputs(
    absl::FunctionRef<std::optional<PlanValue>(const PlanNode& n, int i)> find) {
  Run([&](int id, const PlanNode& n) {
    if (!n.controls.empty() || (n.is_constant(0) && !n.may_be_dead)) return;
    for (int i = 0; i < n.num_outputs(); ++i) {
      const std::optional<PlanValue> value = find(n, i);
      if (value && IsSamePlacement(n, i, *value)) Replace(id, i, *value);
    }
  });
}

void ValueReplacement::Replace(int id, int output, const PlanValue& value) {
  replacements_[id].resize(plan_.nodes[id].num_outputs());
  replacements_[id][output] = value;
  ++plan_.changes.moved;
}

PlanValue ValueReplacement::Resolve(const PlanValue& v) const {
  const auto& outputs = replacements_[v.node];
  return v.output < static_cast<int>(outputs.size()) && outputs[v.output].node >= 0
             ? outputs[v.output]
             : v;
}

// Returns true if `value` is available to kernels in the same place as the output.
bool ValueReplacement::IsSamePlacement(const PlanNode& n, int output,
                                       const PlanValue& value) const {
  const PlanNode& other = plan_.nodes[value.node];
  if (other.type(value.output) != n.type(output)) return false;
  // A value that leaves a structured loop is available only after the loop ends, even to users
  // inside that loop (which wait for it in vain).
  const int home = plan_.IsLoopVariable(other) ? other.value_loop : other.loop;
  if (home >= 0 && !plan_.IsInside(n.loop, home)) return false;
  // Errors of a read name the node for which it was inserted.
  if (other.kind == PlanNode::Kind::kRead) return false;
  if (other.kind == PlanNode::Kind::kFeed || other.kind == PlanNode::Kind::kCarry)
    return n.device->is_host();
  return other.device == n.device &&
         other.is_on_accelerator(value.output) == n.is_on_accelerator(output);
}

}  // namespace weir
