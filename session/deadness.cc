#include "weir/session/deadness.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"

// Which nodes may stand in a branch that is not taken, and so be skipped? All others need no
// looking at their inputs while a step runs, and may be folded into constants.
//
// For each node the conditions are collected under which it runs: "this Switch's predicate is
// true". A node runs if all its inputs do, so it has the conditions of all of them together; an
// output of a Switch has one more. A Merge runs if any input does; where two inputs differ in
// nothing but the two sides of one predicate, what they have in common is all that it takes: after
// the Merge of a conditional no condition is left. What cannot be told so simply is a condition of
// the node's own, beside those that all its ways share.
//
// In a loop a Merge runs if its Enter did and, from the second iteration on, if the iteration
// before went round. If every value that goes round does so on the one condition that the loop's
// LoopCond is true, then in all iterations that take place all these Merges run, on the conditions
// of their Enters, and what an Exit lets out when LoopCond is false is there on the same
// conditions. This is assumed first, and given up for the loops where the conditions found say
// otherwise.
namespace weir {

namespace {

constexpr size_t kMostConditions = 16;

bool IsSwitch(const PlanNode& n) { return n.Is("Switch", "RefSwitch", "_SwitchN"); }

// Only the first iteration sees this value, and what is made from it: that is a condition of its
// own.
bool EntersOnce(const PlanNode& n) { return n.is_enter() && !n.node->attr<bool>("is_constant"); }

class DeadnessAnalysis {
 public:
  explicit DeadnessAnalysis(const PlanGraph& plan)
      : plan_(plan),
        runs_if_(plan.nodes.size()),
        left_if_(plan.nodes.size()),
        regular_(plan.loops.size(), true) {}

  void Run() {
    for (int pass = 0;; ++pass) {
      for (size_t i = 0; i < plan_.nodes.size(); ++i) Visit(static_cast<int>(i));
      if (Confirmed()) return;
      // Each pass settles at least one loop; graphs that need more are not worth the time.
      if (pass == kMostPasses) regular_.assign(regular_.size(), false);
    }
  }

  const std::vector<Conditions>& conditions() const { return runs_if_; }

  // By node: a constant that makes no difference if it is there when its branch is not taken, since
  // whoever takes it waits for the branch by something else, and that waits for nothing but the
  // branch itself.
  std::vector<bool> IdleConstants() const {
    std::vector<bool> idle(plan_.nodes.size(), false);
    for (size_t i = 0; i < idle.size(); ++i)
      idle[i] = plan_.nodes[i].Is("Const") && !runs_if_[i].empty();
    const std::vector<bool> constants = idle;
    for (size_t i = 0; i < idle.size(); ++i) {
      const auto& controls = plan_.nodes[i].controls;
      idle[i] = idle[i] && std::all_of(controls.begin(), controls.end(),
                                       [this](int control) { return IsPivot(control); });
    }
    for (const PlanValue& v : plan_.fetches) idle[v.node] = false;
    for (const int target : plan_.targets) idle[target] = false;
    for (const PlanNode& n : plan_.nodes) {
      Conditions others;
      for (const PlanValue& v : n.inputs) {
        if (!constants[v.node]) Add(ThereIf(v), &others);
      }
      for (const int control : n.controls) {
        idle[control] = false;
        if (!constants[control]) Add(EndsIf(control), &others);
      }
      const bool looks = n.def != nullptr && n.def->accepts_dead;
      for (const PlanValue& v : n.inputs) {
        const Conditions& own = runs_if_[v.node];
        if (looks || !std::includes(others.begin(), others.end(), own.begin(), own.end()))
          idle[v.node] = false;
      }
    }
    return idle;
  }

 private:
  static constexpr int kMostPasses = 8;

  // What Python ties the nodes of a branch or loop to: the predicate on one side of a Switch, or a
  // loop's first value. Nothing that a graph's author has put into the order.
  bool IsPivot(int id) const {
    const PlanNode* n = &plan_.nodes[id];
    while (n->Is("Identity") && n->controls.empty()) n = &plan_.nodes[n->inputs[0].node];
    if (!n->controls.empty()) return false;
    if (IsSwitch(*n)) {
      if (Source(n->inputs[0]) == Source(n->inputs[1])) return true;
      n = &plan_.nodes[n->inputs[0].node];
    }
    return n->loop >= 0 && n->Is("Merge") && n->controls.empty() &&
           absl::c_any_of(n->inputs, [this](auto& v) { return IsCarry(v); });
  }

  bool IsCarry(const PlanValue& v) const {
    return plan_.nodes[v.node].kind == PlanNode::Kind::kCarry;
  }

  static Conditions Own(int id) { return {Condition{PlanValue{id, -1}, 0}}; }

  // The value that a predicate hands on.
  PlanValue Source(PlanValue v) const {
    for (;;) {
      const PlanNode& n = plan_.nodes[v.node];
      const bool passes = n.kind == PlanNode::Kind::kCopy || n.Is("Identity", "Enter");
      if (!passes) return v;
      v = n.inputs[0];
    }
  }

  static void Add(const Conditions& more, Conditions* to) {
    for (const Condition& c : more) {
      const auto at = std::lower_bound(to->begin(), to->end(), c);
      if (at == to->end() || *at != c) to->insert(at, c);
    }
  }

  const Conditions& EndsIf(int id) const {
    return plan_.nodes[id].is_exit() ? left_if_[id] : runs_if_[id];
  }

  Conditions ThereIf(const PlanValue& v) const {
    Conditions all = EndsIf(v.node);
    if (IsSwitch(plan_.nodes[v.node]))
      Add({Condition{Source(plan_.nodes[v.node].inputs[1]), v.output,
                     plan_.nodes[v.node].num_outputs()}},
          &all);
    return all;
  }

  void Visit(int id) {
    const PlanNode& n = plan_.nodes[id];
    Conditions& all = runs_if_[id];
    all.clear();
    if (n.kind == PlanNode::Kind::kFeed) return;
    if (n.kind == PlanNode::Kind::kCarry) {
      all = Own(id);
      return;
    }
    if (n.def != nullptr && n.def->accepts_dead) {
      all = n.inputs.empty() ? Trigger(id) : Any(id);
      return;
    }
    for (const PlanValue& v : n.inputs) {
      Add(ThereIf(v), &all);
      if (EntersOnce(plan_.nodes[v.node])) Add(Own(v.node), &all);
    }
    for (const int control : n.controls) Add(EndsIf(control), &all);
    if (all.size() > kMostConditions) all = Own(id);
    if (n.is_exit()) left_if_[id] = LeftIf(id);
  }

  // A ControlTrigger runs whatever is dead where it stands, if that is a loop that takes place.
  Conditions Trigger(int id) const {
    const PlanNode& n = plan_.nodes[id];
    Conditions shared;
    for (size_t k = 0; k < n.controls.size(); ++k) {
      const Conditions& one = EndsIf(n.controls[k]);
      Conditions both;
      std::set_intersection(one.begin(), one.end(), shared.begin(), shared.end(),
                            std::back_inserter(both));
      shared = k == 0 ? one : std::move(both);
    }
    shared.erase(std::remove_if(shared.begin(), shared.end(),
                                [&](const Condition& c) {
                                  return plan_.nodes[c.pred.node].value_loop == n.loop;
                                }),
                 shared.end());
    return shared;
  }

  // The conditions on which at least one of a node's inputs is there.
  Conditions Any(int id) const {
    const PlanNode& n = plan_.nodes[id];
    const bool goes_round = absl::c_any_of(n.inputs, [this](auto& v) { return IsCarry(v); });
    if (goes_round && !regular_[n.loop]) return Own(id);
    std::vector<Conditions> ways;
    for (const PlanValue& v : n.inputs) {
      if (IsCarry(v)) continue;  // there in the iterations that the value which enters is not
      ways.push_back(ThereIf(v));
      if (!goes_round && EntersOnce(plan_.nodes[v.node])) Add(Own(v.node), &ways.back());
    }
    constexpr size_t kMostWays = 16;
    if (ways.size() > kMostWays) return Own(id);
    while (JoinSome(&ways)) {
    }
    if (ways.empty()) return Own(id);  // nothing enters: in the first iteration it is dead
    Conditions shared = ways[0];
    for (const Conditions& way : ways) {
      Conditions both;
      std::set_intersection(shared.begin(), shared.end(), way.begin(), way.end(),
                            std::back_inserter(both));
      shared = std::move(both);
    }
    if (ways.size() > 1) Add(Own(id), &shared);
    return shared;
  }

  // Makes one way of several that differ in nothing but all the sides of one predicate, or of two
  // where one comprises the other; false if there are no such.
  static bool JoinSome(std::vector<Conditions>* ways) {
    for (size_t a = 0; a < ways->size(); ++a) {
      for (size_t b = 0; b < ways->size(); ++b) {
        if (a == b || !absl::c_includes((*ways)[b], (*ways)[a])) continue;
        ways->erase(ways->begin() + b);
        return true;
      }
      for (size_t at = 0; at < (*ways)[a].size(); ++at) {
        if (JoinSides(a, at, ways)) return true;
      }
    }
    return false;
  }

  static bool JoinSides(size_t way, size_t at, std::vector<Conditions>* ways) {
    Conditions side = (*ways)[way];
    const Condition c = side[at];
    if (c.pred.output < 0) return false;
    std::vector<Conditions> all;
    for (int s = 0; s < c.num_sides && s <= static_cast<int>(ways->size()); ++s) {
      side[at].side = s;
      if (!absl::c_linear_search(*ways, side)) return false;
      all.push_back(side);
    }
    side.erase(side.begin() + at);
    std::erase_if(*ways, [&](const Conditions& w) { return absl::c_linear_search(all, w); });
    ways->push_back(std::move(side));
    return true;
  }

  // The LoopCond among conditions, which are then those without it.
  bool TakeLoopCond(int loop, int side, Conditions* conditions, PlanValue* cond) const {
    for (auto it = conditions->begin(); it != conditions->end(); ++it) {
      const PlanNode& pred = plan_.nodes[it->pred.node];
      if (it->pred.output < 0 || it->side != side || pred.loop != loop || !pred.Is("LoopCond"))
        continue;
      *cond = it->pred;
      conditions->erase(it);
      return true;
    }
    return false;
  }

  Conditions LeftIf(int id) const {
    Conditions conditions = runs_if_[id];
    PlanValue cond;
    const int loop = plan_.nodes[id].loop;
    return regular_[loop] && TakeLoopCond(loop, 0, &conditions, &cond) ? conditions : Own(id);
  }

  // Gives up the assumption for loops where it does not hold; true if it held for all.
  bool Confirmed() {
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
      const bool goes_round = TakeLoopCond(loop, 1, &conditions, &on);
      if (!goes_round || (cond[loop].node >= 0 && cond[loop] != on)) fail(loop);
      cond[loop] = on;
    }
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      for (const PlanValue& v : n.inputs) {
        if (!IsCarry(v)) continue;
        Conditions round = runs_if_[next_of[v.node]];
        PlanValue on;
        if (n.def == nullptr || !n.def->accepts_dead || !TakeLoopCond(n.loop, 1, &round, &on) ||
            round != runs_if_[i])
          fail(n.loop);
      }
    }
    return all;
  }

  const PlanGraph& plan_;
  std::vector<Conditions> runs_if_;  // by node
  std::vector<Conditions> left_if_;  // by Exit: the conditions on which it lets a value out
  std::vector<bool> regular_;        // by loop
};

}  // namespace

std::vector<Conditions> FindConditions(const PlanGraph& plan) {
  DeadnessAnalysis finder(plan);
  finder.Run();
  return finder.conditions();
}

void AnalyzeDeadness(PlanGraph& plan) {
  const auto branches = [](const PlanNode& n) {
    return IsSwitch(n) || (n.def != nullptr && n.def->accepts_dead);
  };
  if (plan.loops.empty() && std::none_of(plan.nodes.begin(), plan.nodes.end(), branches)) return;
  DeadnessAnalysis finder(plan);
  finder.Run();
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    PlanNode& n = plan.nodes[i];
    const bool conditional = !finder.conditions()[i].empty() || IsSwitch(n);
    n.may_be_dead = n.kind != PlanNode::Kind::kFeed && conditional;
  }
}

void HoistConstants(PlanGraph& plan) {
  const auto is_tied = [](const PlanNode& n) { return n.may_be_dead && n.Is("Const"); };
  if (std::none_of(plan.nodes.begin(), plan.nodes.end(), is_tied)) return;
  DeadnessAnalysis finder(plan);
  finder.Run();
  const std::vector<bool> idle = finder.IdleConstants();
  for (size_t i = 0; i < idle.size(); ++i) {
    if (!idle[i]) continue;
    plan.nodes[i].controls.clear();
    plan.nodes[i].may_be_dead = false;
  }
}

}  // namespace weir
