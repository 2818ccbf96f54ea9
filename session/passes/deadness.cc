#include "weir/session/passes/deadness.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"

// Deadness analysis: which nodes may be in an untaken branch, and so be skipped? All others need no
// check of their inputs while a step runs, and may be folded into constants.
//
// For each node the analysis collects the conditions under which it runs: "this Switch's predicate
// is true". A node runs if all its inputs are alive, so it has the union of their conditions; an
// output of a Switch has one more. A Merge runs if any input is alive. Where two inputs differ only
// in the two sides of one predicate, their common conditions suffice: after the Merge of a
// conditional no condition is left. What cannot be simplified in this way becomes a condition of
// the node's own, besides those that all its alternatives share. So does what another task decides:
// whether a value that is received is alive.
//
// In a loop a Merge runs if its Enter did and, from the second iteration on, if the previous
// iteration passed its value on. If every loop-carried value is passed on under the one condition
// that the loop's LoopCond is true, then in all iterations that take place all these Merges run,
// under the conditions of their Enters, and the output of an Exit, which passes a value when
// LoopCond is false, is alive under the same conditions. The analysis assumes this at first, and
// drops the assumption for the loops where the conditions found contradict it.
namespace weir {

namespace {

constexpr int kMaxPasses = 8;
constexpr size_t kMaxConditions = 16;

bool IsSwitch(const PlanNode& n) { return n.Is(ControlFlow::kSwitch); }

// Only the first iteration sees this value and those computed from it: that is a condition of its
// own.
bool EntersOnce(const PlanNode& n) { return n.is_enter() && !n.node->attr<bool>("is_constant"); }

Conditions OwnCondition(int id) { return {Condition{PlanValue{id, -1}, 0}}; }

bool MergeSides(size_t alternative, size_t at, std::vector<Conditions>* alternatives) {
  Conditions side = (*alternatives)[alternative];
  const Condition c = side[at];
  if (c.pred.output < 0) return false;
  std::vector<Conditions> all;
  for (int s = 0; s < c.num_sides && s <= static_cast<int>(alternatives->size()); ++s) {
    side[at].side = s;
    if (!absl::c_linear_search(*alternatives, side)) return false;
    all.push_back(side);
  }
  side.erase(side.begin() + at);
  std::erase_if(*alternatives, [&](const Conditions& w) { return absl::c_linear_search(all, w); });
  alternatives->push_back(std::move(side));
  return true;
}

// Merges alternatives that differ only in the sides of one predicate, all of which are present,
// or two of which one includes the other. Returns false if there are none.
bool MergeSomeAlternatives(std::vector<Conditions>* alternatives) {
  for (size_t a = 0; a < alternatives->size(); ++a) {
    for (size_t b = 0; b < alternatives->size(); ++b) {
      if (a == b || !absl::c_includes((*alternatives)[b], (*alternatives)[a])) continue;
      alternatives->erase(alternatives->begin() + b);
      return true;
    }
    for (size_t at = 0; at < (*alternatives)[a].size(); ++at) {
      if (MergeSides(a, at, alternatives)) return true;
    }
  }
  return false;
}

}  // namespace

void AddConditions(const Conditions& more, Conditions* to) {
  for (const Condition& c : more) {
    const auto at = std::lower_bound(to->begin(), to->end(), c);
    if (at == to->end() || *at != c) to->insert(at, c);
  }
}

PlanValue SourceOf(const PlanGraph& plan, PlanValue v) {
  for (;;) {
    const PlanNode& n = plan.nodes[v.node];
    const bool passes =
        n.kind == PlanNode::Kind::kCopy || n.is_identity() || n.Is(ControlFlow::kEnter);
    if (!passes) return v;
    v = n.inputs[0];
  }
}

Deadness::Deadness(const PlanGraph& plan)
    : plan_(plan),
      runs_if_(plan.nodes.size()),
      exits_if_(plan.nodes.size()),
      regular_(plan.loops.size(), true) {
  for (int pass = 0;; ++pass) {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) Visit(static_cast<int>(i));
    if (VerifyAssumption()) return;
    // Each pass drops the assumption for at least one loop; more passes are not worth the time.
    if (pass == kMaxPasses) regular_.assign(regular_.size(), false);
  }
}

bool Deadness::IsCarry(const PlanValue& v) const {
  return plan_.nodes[v.node].kind == PlanNode::Kind::kCarry;
}

const Conditions& Deadness::OutputConditions(int id) const {
  return plan_.nodes[id].is_exit() ? exits_if_[id] : runs_if_[id];
}

Conditions Deadness::ValueConditions(const PlanValue& v) const {
  Conditions all = OutputConditions(v.node);
  if (IsSwitch(plan_.nodes[v.node]))
    AddConditions({Condition{SourceOf(plan_, plan_.nodes[v.node].inputs[1]), v.output,
                             plan_.nodes[v.node].num_outputs()}},
                  &all);
  return all;
}

void Deadness::Visit(int id) {
  const PlanNode& n = plan_.nodes[id];
  Conditions& all = runs_if_[id];
  all.clear();
  if (n.kind == PlanNode::Kind::kFeed) return;
  if (n.kind == PlanNode::Kind::kCarry) {
    all = OwnCondition(id);
    return;
  }
  if (n.kind == PlanNode::Kind::kOp && n.traits().crosses_tasks && n.num_outputs() > 0) {
    all = OwnCondition(id);
    return;
  }
  if (n.def != nullptr && n.def->accepts_dead) {
    all = n.inputs.empty() ? TriggerConditions(id) : MergeConditions(id);
    return;
  }
  for (const PlanValue& v : n.inputs) {
    AddConditions(ValueConditions(v), &all);
    if (EntersOnce(plan_.nodes[v.node])) AddConditions(OwnCondition(v.node), &all);
  }
  for (const int control : n.controls) AddConditions(OutputConditions(control), &all);
  if (all.size() > kMaxConditions) all = OwnCondition(id);
  if (n.is_exit()) exits_if_[id] = ExitConditions(id);
}

// A ControlTrigger runs whatever is dead where it is, provided that its loop, if any, runs.
Conditions Deadness::TriggerConditions(int id) const {
  const PlanNode& n = plan_.nodes[id];
  Conditions shared;
  for (size_t k = 0; k < n.controls.size(); ++k) {
    const Conditions& one = OutputConditions(n.controls[k]);
    if (k == 0) {
      shared = one;
      continue;
    }
    Conditions both;
    std::set_intersection(one.begin(), one.end(), shared.begin(), shared.end(),
                          std::back_inserter(both));
    shared = std::move(both);
  }
  shared.erase(std::remove_if(shared.begin(), shared.end(),
                              [&](const Condition& c) {
                                return plan_.nodes[c.pred.node].value_loop == n.loop;
                              }),
               shared.end());
  return shared;
}

// Returns the conditions under which at least one of a node's inputs is alive.
Conditions Deadness::MergeConditions(int id) const {
  const PlanNode& n = plan_.nodes[id];
  const bool has_carry = absl::c_any_of(n.inputs, [this](auto& v) { return IsCarry(v); });
  if (has_carry && !regular_[n.loop]) return OwnCondition(id);
  std::vector<Conditions> alternatives;
  for (const PlanValue& v : n.inputs) {
    if (IsCarry(v)) continue;  // alive in the iterations in which the entering value is not
    alternatives.push_back(ValueConditions(v));
    if (!has_carry && EntersOnce(plan_.nodes[v.node]))
      AddConditions(OwnCondition(v.node), &alternatives.back());
  }
  constexpr size_t kMaxAlternatives = 16;
  if (alternatives.size() > kMaxAlternatives) return OwnCondition(id);
  while (MergeSomeAlternatives(&alternatives)) {
  }
  if (alternatives.empty())
    return OwnCondition(id);  // nothing enters: the node is dead in the first iteration
  Conditions shared = alternatives[0];
  for (const Conditions& alternative : alternatives) {
    Conditions both;
    std::set_intersection(shared.begin(), shared.end(), alternative.begin(), alternative.end(),
                          std::back_inserter(both));
    shared = std::move(both);
  }
  if (alternatives.size() > 1) AddConditions(OwnCondition(id), &shared);
  return shared;
}

// Removes the LoopCond from the conditions. Returns false if it is not among them.
bool Deadness::TakeLoopCond(int loop, int side, Conditions* conditions, PlanValue* cond) const {
  for (auto it = conditions->begin(); it != conditions->end(); ++it) {
    const PlanNode& pred = plan_.nodes[it->pred.node];
    if (it->pred.output < 0 || it->side != side || pred.loop != loop ||
        !pred.Is(ControlFlow::kLoopCond))
      continue;
    *cond = it->pred;
    conditions->erase(it);
    return true;
  }
  return false;
}

Conditions Deadness::ExitConditions(int id) const {
  Conditions conditions = runs_if_[id];
  PlanValue cond;
  const int loop = plan_.nodes[id].loop;
  return regular_[loop] && TakeLoopCond(loop, 0, &conditions, &cond) ? conditions
                                                                     : OwnCondition(id);
}

// Drops the assumption for loops where it does not hold. Returns true if it held for all.
bool Deadness::VerifyAssumption() {
  bool all = true;
  std::vector<PlanValue> cond(plan_.loops.size());
  const auto fail = [&](int loop) {
    all = all && !regular_[loop];
    regular_[loop] = false;
  };
  std::vector<int> next_of(plan_.nodes.size(), -1);
  for (const PlanGraph::Carry& c : plan_.carries) {
    next_of[c.carry] = c.next.node;
    const int loop = plan_.nodes[c.carry].loop;
    Conditions conditions = runs_if_[c.next.node];
    PlanValue on;
    const bool on_loop_cond = TakeLoopCond(loop, 1, &conditions, &on);
    if (!on_loop_cond || (cond[loop].node >= 0 && cond[loop] != on)) fail(loop);
    cond[loop] = on;
  }
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const PlanNode& n = plan_.nodes[i];
    for (const PlanValue& v : n.inputs) {
      if (!IsCarry(v)) continue;
      Conditions carried = runs_if_[next_of[v.node]];
      PlanValue on;
      if (n.def == nullptr || !n.def->accepts_dead || !TakeLoopCond(n.loop, 1, &carried, &on) ||
          carried != runs_if_[i])
        fail(n.loop);
    }
  }
  return all;
}

}  // namespace weir
