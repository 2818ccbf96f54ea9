#include <algorithm>

#include "absl/algorithm/container.h"
#include "weir/session/passes/deadness.h"
#include "weir/session/passes/passes.h"

// Lets constants run whether their branch is taken or not, so that they can be folded.
//
// Such a constant is there also where its pivot is dead. Nobody sees that: a constant has no effect
// and cannot fail; its users are dead all the same, since each depends on the branch by another
// input; and one that is fetched, a target, ordered before a node, or an input of a Merge stays.
//
// Its users no longer wait for the pivot either, only for the condition of their branch. That
// differs in a loop whose pivot is a variable that nothing else in the loop uses: Python's pivot is
// the first one, whatever it is. If the initial value of that variable is computed after an effect,
// say an assignment, nothing orders the effect before those of the loop any more. TensorFlow orders
// them by such constants alone, so whether it does depends on whether a body happens to have one. A
// program that needs the order states it: by a control dependency, or by using the variable.
namespace weir {

namespace {

// True for a pivot, to which Python ties the nodes of a branch or loop: the predicate on one side
// of a Switch, or the first value of a loop. Orderings that a graph's author has added are not
// pivots.
bool IsPivot(const PlanGraph& plan, int id) {
  const PlanNode* n = &plan.nodes[id];
  while (n->is_identity() && n->controls.empty()) n = &plan.nodes[n->inputs[0].node];
  if (!n->controls.empty()) return false;
  if (n->Is(ControlFlow::kSwitch)) {
    if (SourceOf(plan, n->inputs[0]) == SourceOf(plan, n->inputs[1])) return true;
    n = &plan.nodes[n->inputs[0].node];
  }
  return n->loop >= 0 && n->Is(ControlFlow::kMerge) && n->controls.empty() &&
         absl::c_any_of(n->inputs, [&](const PlanValue& v) {
           return plan.nodes[v.node].kind == PlanNode::Kind::kCarry;
         });
}

// Returns, by node, the constants that may be alive even when their branch is not taken: each of
// their users depends on the branch by another input, and their own control inputs are nothing
// but pivots of the branch.
std::vector<bool> FindHoistableConstants(const PlanGraph& plan) {
  const Deadness deadness(plan);
  const std::vector<Conditions>& runs_if = deadness.runs_if();
  std::vector<bool> hoistable(plan.nodes.size(), false);
  for (size_t i = 0; i < hoistable.size(); ++i)
    hoistable[i] = plan.nodes[i].is_const() && !runs_if[i].empty();
  const std::vector<bool> constants = hoistable;
  for (size_t i = 0; i < hoistable.size(); ++i) {
    const auto& controls = plan.nodes[i].controls;
    hoistable[i] = hoistable[i] && std::all_of(controls.begin(), controls.end(),
                                               [&](int control) { return IsPivot(plan, control); });
  }
  for (const PlanValue& v : plan.fetches) hoistable[v.node] = false;
  for (const int target : plan.targets) hoistable[target] = false;
  for (const PlanNode& n : plan.nodes) {
    Conditions others;
    for (const PlanValue& v : n.inputs) {
      if (!constants[v.node]) AddConditions(deadness.ValueConditions(v), &others);
    }
    for (const int control : n.controls) {
      hoistable[control] = false;
      if (!constants[control]) AddConditions(deadness.OutputConditions(control), &others);
    }
    const bool accepts_dead = n.def != nullptr && n.def->accepts_dead;
    for (const PlanValue& v : n.inputs) {
      const Conditions& own = runs_if[v.node];
      if (accepts_dead || !std::includes(others.begin(), others.end(), own.begin(), own.end()))
        hoistable[v.node] = false;
    }
  }
  return hoistable;
}

}  // namespace

void HoistConstants(PlanGraph& plan) {
  const auto is_conditional_constant = [](const PlanNode& n) {
    return n.may_be_dead && n.is_const();
  };
  if (absl::c_none_of(plan.nodes, is_conditional_constant)) return;
  const std::vector<bool> hoistable = FindHoistableConstants(plan);
  for (size_t i = 0; i < hoistable.size(); ++i) {
    if (!hoistable[i]) continue;
    plan.nodes[i].controls.clear();
    plan.nodes[i].may_be_dead = false;
  }
}

}  // namespace weir
