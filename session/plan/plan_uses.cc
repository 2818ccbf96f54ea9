#include "weir/session/plan/plan_uses.h"

#include "absl/algorithm/container.h"

namespace weir {

PlanUses::PlanUses(const PlanGraph& plan) : uses_(plan.nodes.size()) {
  using Kind = PlanUse::Kind;
  for (int i = 0; i < static_cast<int>(plan.nodes.size()); ++i) {
    const PlanNode& n = plan.nodes[i];
    for (int k = 0; k < static_cast<int>(n.inputs.size()); ++k)
      Add(n.inputs[k].node, {Kind::kInput, i, n.inputs[k].output, k});
    for (const int control : n.controls) Add(control, {Kind::kControl, i});
  }
  for (const PlanValue& v : plan.fetches) Add(v.node, {Kind::kFetch, -1, v.output});
  for (const int target : plan.targets) Add(target, {Kind::kTarget});
  for (const PlanGraph::Carry& c : plan.carries)
    Add(c.next.node, {Kind::kCarry, c.carry, c.next.output});
}

int PlanUses::OnlyUser(int node) const {
  const List& uses = uses_[node];
  return uses.size() == 1 && uses[0].is_input() && uses[0].output == 0 ? uses[0].user : -1;
}

bool PlanUses::HasOnlyInputUses(int node) const {
  return absl::c_all_of(uses_[node],
                        [](const PlanUse& use) { return use.is_input() && use.output == 0; });
}

bool PlanUses::UsesOtherOutputs(int node) const {
  return absl::c_any_of(uses_[node], [](const PlanUse& use) { return use.output != 0; });
}

bool PlanUses::Escapes(int node) const {
  return absl::c_any_of(uses_[node], [](const PlanUse& use) { return !use.is_edge(); });
}

}  // namespace weir
