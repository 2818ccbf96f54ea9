#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "weir/session/passes/deadness.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/plan_uses.h"

// Structures while loops.
//
// V1 control flow represents a loop by nodes that route values: for each variable an Enter, a
// Merge, a Switch, a NextIteration and an Exit, and one LoopCond for all; and every node in the
// body has to check whether it is dead. Nearly all loops follow one pattern (Python's while_loop,
// Weir's WhileLoop), which is recognized here:
//
//   * each non-constant Enter leads to one Merge with one NextIteration, and nowhere else;
//   * one LoopCond controls all Switches whose values leave the loop or are loop-carried;
//   * the false outputs of these Switches lead only to Exits;
//   * the loop-carried values depend on no other condition, and the loop itself on none that
//   remains.
//
// Such a loop is converted to a structured loop with variables, a condition and a body. An Enter
// becomes a variable that holds its value across iterations. Users of the Merge, the Switch or the
// Exit use the variable, or the input of the Switch, and these nodes are removed. Only the LoopCond
// stays, as the mark that ends the loop in the order: the nodes that compute the condition come
// before it (order_nodes.cc); the body, that is, everything that depends on the true output of a
// Switch, comes after it and is never dead because of the loop. The carries replace the
// NextIterations. A variable that every iteration passes on unchanged is loop-invariant and is
// replaced by its initial value. So is a constant Enter.
//
// Users outside a structured loop use its values without an Exit: they are the final values. Nested
// loops are structured from the outside in. A loop in a branch that may be dead is left unchanged,
// and so are one from which values cross to other tasks, under the number of the iteration, one in
// which two nodes wait for values from outside of the step, which may come in any order, and every
// loop that does not match the pattern: the executor's native frames handle them.
namespace weir {

namespace {

class LoopStructurer {
 public:
  explicit LoopStructurer(PlanGraph& plan)
      : plan_(plan), count_(static_cast<int>(plan.nodes.size())), uses_(plan) {}

  void Run() {
    conditions_ = Deadness(plan_).runs_if();
    FindMembers();
    for (size_t l = 0; l < plan_.loops.size(); ++l) {
      const int condition = LoopCondOf(static_cast<int>(l));
      if (condition >= 0 && MatchesPattern(static_cast<int>(l), condition))
        plan_.loops[l].condition = condition;
    }
    if (absl::c_none_of(plan_.loops, [](const PlanLoop& l) { return l.is_structured(); })) return;
    if (!FindLoopBodies()) return;
    for (int i = 0; i < count_; ++i) RemoveRouting(i);
    BuildCarries();
    for (int i = 0; i < count_; ++i) Rewire(i);
    for (PlanValue& v : plan_.fetches) v = Resolve(v);
    for (int& target : plan_.targets) target = ControlReplacement(target);
    DropRemoved(plan_);
  }

 private:
  void FindMembers() {
    members_.resize(plan_.loops.size());
    crosses_tasks_.assign(plan_.loops.size(), false);
    num_waits_.assign(plan_.loops.size(), 0);
    next_of_.assign(count_, PlanValue());
    for (int i = 0; i < count_; ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.loop >= 0) members_[n.loop].push_back(i);
      for (int l = n.loop; l >= 0; l = plan_.loops[l].parent) {
        crosses_tasks_[l] = crosses_tasks_[l] || n.traits().crosses_tasks;
        num_waits_[l] += n.traits().waits == WaitsFor::kValue ? 1 : 0;
      }
      if (n.is_enter() && n.value_loop >= 0) members_[n.value_loop].push_back(i);
    }
    for (const PlanGraph::Carry& c : plan_.carries) next_of_[c.carry] = c.next;
  }

  // Returns true if `holds` for all nodes that take values of the node, and the use.
  bool AllInputUses(int i, absl::FunctionRef<bool(const PlanUse& use)> holds) const {
    return absl::c_all_of(uses_.Of(i),
                          [&](const PlanUse& use) { return !use.is_input() || holds(use); });
  }
  // The same for all nodes that wait for the node.
  bool AllWaiters(int i, absl::FunctionRef<bool(int waiter)> holds) const {
    return absl::c_all_of(uses_.Of(i), [&](const PlanUse& use) {
      return use.kind != PlanUse::Kind::kControl || holds(use.user);
    });
  }
  bool HasControlSuccessors(int i) const {
    return !AllWaiters(i, [](int) { return false; });
  }
  // Returns the node that takes a value of this node, if it is the only one and takes one value.
  int OnlyConsumer(int i) const {
    int found = -1, count = 0;
    for (const PlanUse& use : uses_.Of(i)) {
      if (use.is_input()) found = use.user, ++count;
    }
    return count == 1 ? found : -1;
  }

  bool IsCarry(const PlanValue& v) const {
    return plan_.nodes[v.node].kind == PlanNode::Kind::kCarry;
  }

  // ---- which loops match the pattern

  // Returns the loop's only LoopCond; -1 if there is none or more than one.
  int LoopCondOf(int l) const {
    int found = -1;
    for (const int i : members_[l]) {
      if (!plan_.nodes[i].Is(ControlFlow::kLoopCond)) continue;
      if (found >= 0) return -1;
      found = i;
    }
    return found;
  }

  bool MatchesPattern(int l, int condition) const {
    if (crosses_tasks_[l] || num_waits_[l] > 1) return false;
    if (plan_.loops[l].parent >= 0 && !plan_.loops[plan_.loops[l].parent].is_structured())
      return false;
    if (HasControlSuccessors(condition) || !OnlyControlsSwitches(condition)) return false;
    if (!IsUnconditional(conditions_[condition], {})) return false;
    const auto is_carry = [&](int i) { return plan_.nodes[i].kind == PlanNode::Kind::kCarry; };
    if (absl::c_none_of(members_[l], is_carry)) return false;
    return absl::c_all_of(
        members_[l], [&](int i) { return NodeMatchesPattern(plan_.nodes[i], i, l, condition); });
  }

  bool OnlyControlsSwitches(int condition) const {
    return AllInputUses(condition, [&](const PlanUse& use) {
      return plan_.nodes[use.user].IsValueFlow(ControlFlow::kSwitch) && use.input == 1;
    });
  }

  bool NodeMatchesPattern(const PlanNode& n, int i, int l, int condition) const {
    if (n.kind == PlanNode::Kind::kCarry) {
      const int consumer = OnlyConsumer(i);
      return consumer >= 0 && plan_.nodes[consumer].IsValueFlow(ControlFlow::kMerge);
    }
    if (n.kind != PlanNode::Kind::kOp) return true;
    if (n.is_enter() && n.value_loop == l) {
      if (n.node->attr<bool>("is_constant")) return true;
      const int consumer = OnlyConsumer(i);
      return n.IsValueFlow(ControlFlow::kEnter) && !HasControlSuccessors(i) && consumer >= 0 &&
             IsVariable(consumer);
    }
    if (absl::c_any_of(n.inputs, [&](const PlanValue& v) { return IsCarry(v); }))
      return IsVariable(i) && IsUnconditional(conditions_[i], {});
    if (n.Is(ControlFlow::kSwitch) && IsRef(n.type(0))) return n.inputs[1].node != condition;
    if (n.is_control_trigger()) {
      return AllWaiters(i, [&](int waiter) {
        return plan_.nodes[waiter].IsValueFlow(ControlFlow::kNextIteration) ||
               IsInBody(waiter, condition);
      });
    }
    if (n.IsValueFlow(ControlFlow::kSwitch) && n.inputs[1].node == condition)
      return IsLoopSwitch(n, i);
    if (n.IsValueFlow(ControlFlow::kExit)) {
      return n.controls.empty() && IsFalseOutput(n.inputs[0], condition) &&
             IsSamePlacement({i, 0}, n.inputs[0]);
    }
    if (n.IsValueFlow(ControlFlow::kNextIteration)) {
      return !HasControlSuccessors(i) && AllInputUses(i, [](const PlanUse&) { return false; }) &&
             IsSamePlacement({i, 0}, n.inputs[0]) &&
             IsUnconditional(conditions_[i], {PlanValue{condition, 0}, 1});
    }
    return !n.Is(ControlFlow::kExit) && !n.Is(ControlFlow::kNextIteration);
  }

  // Returns true for a Merge of an initial value and a loop-carried value.
  bool IsVariable(int i) const {
    const PlanNode& n = plan_.nodes[i];
    if (!n.IsValueFlow(ControlFlow::kMerge) || n.inputs.size() != 2 || !n.controls.empty())
      return false;
    const int at = IsCarry(n.inputs[0]) ? 1 : 0;
    const PlanNode& enter = plan_.nodes[n.inputs[at].node];
    const PlanValue& carry = n.inputs[1 - at];
    if (!enter.IsValueFlow(ControlFlow::kEnter) || enter.value_loop != n.loop || !IsCarry(carry))
      return false;
    if (enter.node->attr<bool>("is_constant")) return false;
    const PlanValue next = next_of_[carry.node];
    return IsSamePlacement({i, 0}, n.inputs[at]) && IsSamePlacement({i, 0}, next) &&
           AllInputUses(i, [](const PlanUse& use) { return use.output == 0; });
  }

  // Returns true if the input of this Switch is available whatever the condition, and its false
  // output leads only to Exits.
  bool IsLoopSwitch(const PlanNode& n, int i) const {
    if (!n.controls.empty() || IsRef(n.node->output_type(0))) return false;
    const int condition = n.inputs[1].node;
    const auto is_in_body = [&](int waiter) { return IsInBody(waiter, condition); };
    if (!AllWaiters(i, [&](int waiter) {
          return plan_.nodes[waiter].is_no_op() && AllWaiters(waiter, is_in_body);
        })) {
      return false;
    }
    const PlanValue& value = n.inputs[0];
    if (!IsSamePlacement({i, 0}, value) || !IsUnconditional(conditions_[value.node], {}))
      return false;
    if (plan_.nodes[value.node].IsValueFlow(ControlFlow::kSwitch)) return false;
    return AllInputUses(
        i, [&](const PlanUse& use) { return use.output == 1 || LeadsOnlyToExits(use.user); });
  }

  // Returns true for an Exit, or an Identity whose only users are Exits, as Python's gradients add.
  bool LeadsOnlyToExits(int i) const {
    const PlanNode& n = plan_.nodes[i];
    if (n.IsValueFlow(ControlFlow::kExit)) return true;
    return n.is_identity() && !HasControlSuccessors(i) && IsSamePlacement({i, 0}, n.inputs[0]) &&
           AllInputUses(i, [&](const PlanUse& use) {
             return plan_.nodes[use.user].IsValueFlow(ControlFlow::kExit);
           });
  }

  // Returns true for the false output of a Switch, possibly through one Identity.
  bool IsFalseOutput(PlanValue v, int condition) const {
    if (plan_.nodes[v.node].is_identity()) v = plan_.nodes[v.node].inputs[0];
    const PlanNode& n = plan_.nodes[v.node];
    return n.IsValueFlow(ControlFlow::kSwitch) && v.output == 0 && n.inputs[1].node == condition;
  }

  // Returns true if the node uses a value that is available if the condition is true, or leads to
  // an Exit.
  bool IsInBody(int i, int condition) const {
    return absl::c_any_of(plan_.nodes[i].inputs, [&](const PlanValue& v) {
      const PlanNode& n = plan_.nodes[v.node];
      return n.IsValueFlow(ControlFlow::kSwitch) && n.inputs[1].node == condition &&
             (v.output == 1 || LeadsOnlyToExits(i));
    });
  }

  // A feed has no device, and is in host memory.
  bool IsSamePlacement(const PlanValue& a, const PlanValue& b) const {
    const PlanNode &x = plan_.nodes[a.node], &y = plan_.nodes[b.node];
    const auto is_host = [](const PlanNode& n) {
      return n.device == nullptr || n.device->is_host();
    };
    return (x.device == y.device || (is_host(x) && is_host(y))) &&
           x.is_on_accelerator(a.output) == y.is_on_accelerator(b.output);
  }

  // Returns true if the only conditions are `allowed` and the LoopConds of structured loops.
  bool IsUnconditional(const Conditions& conditions, const Condition& allowed) const {
    return absl::c_all_of(conditions,
                          [&](const Condition& c) { return c == allowed || IsStructured(c); });
  }
  bool IsStructured(const Condition& c) const {
    if (c.pred.output < 0 || c.side != 1 || !plan_.nodes[c.pred.node].Is(ControlFlow::kLoopCond))
      return false;
    const int loop = plan_.nodes[c.pred.node].loop;
    return loop >= 0 && plan_.loops[loop].condition == c.pred.node;
  }

  // ---- what replaces their nodes

  bool IsStructuredSwitch(const PlanNode& n) const {
    return n.IsValueFlow(ControlFlow::kSwitch) && n.loop >= 0 &&
           plan_.loops[n.loop].is_structured() && n.inputs[1].node == plan_.loops[n.loop].condition;
  }

  // Determines which nodes run only after the condition has been true. A loop is in the body if one
  // of its Enters is; the Enter may be visited after a node behind the loop, so the pass is
  // repeated until nothing changes. Returns false if this takes too many passes; no loop is
  // structured then.
  bool FindLoopBodies() {
    constexpr int kMaxPasses = 8;
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      bool changed = false;
      for (int i = 0; i < count_; ++i) changed |= UpdateInBody(i);
      if (!changed) return true;
    }
    for (PlanNode& n : plan_.nodes) n.in_body = false;
    for (PlanLoop& l : plan_.loops) l.condition = -1, l.in_body = false;
    return false;
  }

  // Returns true if this determines that a loop is in the body.
  bool UpdateInBody(int i) {
    PlanNode& n = plan_.nodes[i];
    if (n.loop < 0 || !plan_.loops[n.loop].is_structured()) return false;
    const auto follows = [&](int id) {
      const PlanNode& before = plan_.nodes[id];
      if (before.value_loop != n.loop) return false;
      return before.is_exit() ? plan_.loops[before.loop].in_body
                              : !before.is_enter() && before.in_body;
    };
    n.in_body =
        absl::c_any_of(n.controls, follows) || absl::c_any_of(n.inputs, [&](const PlanValue& v) {
          return follows(v.node) || (v.output == 1 && IsStructuredSwitch(plan_.nodes[v.node]));
        });
    if (!n.is_enter() || !n.in_body) return false;
    return !std::exchange(plan_.loops[n.value_loop].in_body, true);
  }

  // Removes the node if it only routes a value in a structured loop.
  void RemoveRouting(int i) {
    PlanNode& n = plan_.nodes[i];
    const int loop = n.is_enter() ? n.value_loop : n.loop;
    if (loop < 0 || !plan_.loops[loop].is_structured()) return;
    if (n.kind == PlanNode::Kind::kCarry) {
      plan_.MarkRemoved(i);
    } else if (n.IsValueFlow(ControlFlow::kMerge) &&
               absl::c_any_of(n.inputs, [&](auto& v) { return IsCarry(v); })) {
      const int at = IsCarry(n.inputs[0]) ? 1 : 0;
      const PlanNode& next = plan_.nodes[next_of_[n.inputs[1 - at].node].node];
      variables_.push_back({n.inputs[at].node, next.inputs[0]});
      RemoveNode(i, 1, n.inputs[at]);
    } else if (IsStructuredSwitch(n)) {
      RemoveNode(i, 2, n.inputs[0]);
    } else if (n.IsValueFlow(ControlFlow::kExit) ||
               (n.is_identity() && IsFalseOutput(n.inputs[0], plan_.loops[loop].condition))) {
      RemoveNode(i, 1, n.inputs[0]);
    } else if (n.IsValueFlow(ControlFlow::kNextIteration)) {
      plan_.MarkRemoved(i);
      // An iteration ends when all its nodes have run; these have to run, too.
      for (const int control : n.controls) plan_.targets.push_back(control);
    } else if (n.IsValueFlow(ControlFlow::kEnter) && n.node->attr<bool>("is_constant")) {
      if (CanRemoveEnter(i)) RemoveNode(i, 1, n.inputs[0]);
    }
  }

  // Returns true if the Enter can be removed, so that its users use its input directly. (An Enter
  // whose input leaves its own loop stays, so that OrderNodes finds the cycle.)
  bool CanRemoveEnter(int i) const {
    const PlanNode &n = plan_.nodes[i], &source = plan_.nodes[n.inputs[0].node];
    return n.controls.empty() && !HasControlSuccessors(i) &&
           !absl::c_linear_search(plan_.targets, i) &&
           !(source.is_exit() && source.loop == n.value_loop) &&
           IsSamePlacement({i, 0}, n.inputs[0]);
  }

  void RemoveNode(int i, int num_outputs, const PlanValue& value) {
    plan_.MarkRemoved(i);
    for (int k = 0; k < num_outputs; ++k) replacements_[{i, k}] = value;
  }

  PlanValue Resolve(PlanValue v) const {
    for (auto it = replacements_.find({v.node, v.output}); it != replacements_.end();
         it = replacements_.find({v.node, v.output}))
      v = it->second;
    return v;
  }

  // Resolves through Identities, too.
  PlanValue Origin(PlanValue v) const {
    for (v = Resolve(v);; v = Resolve(plan_.nodes[v.node].inputs[0])) {
      const PlanNode& n = plan_.nodes[v.node];
      if (!n.is_identity() || !n.controls.empty() || !IsSamePlacement(v, n.inputs[0])) return v;
    }
  }

  void BuildCarries() {
    std::vector<PlanGraph::Carry> carries;
    for (const PlanGraph::Carry& c : plan_.carries) {
      if (!plan_.nodes[c.carry].removed) carries.push_back(c);
    }
    for (const PlanGraph::Carry& v : variables_) {
      if (Origin(v.next) == PlanValue{v.carry, 0} && CanRemoveEnter(v.carry)) {
        RemoveNode(v.carry, 1, plan_.nodes[v.carry].inputs[0]);
      } else {
        carries.push_back(v);
      }
    }
    for (PlanGraph::Carry& c : carries) c.next = Resolve(c.next);
    plan_.carries = std::move(carries);
  }

  // Returns the node outside of the loop whose value replaces the removed node `i`, of a variable
  // that no iteration changes: the loop does not wait for it any more. Returns -1 if there is none.
  int SourceOutside(int i) const {
    const PlanNode& n = plan_.nodes[i];
    const int source = n.removed ? Resolve({i, 0}).node : i;
    const int loop = n.is_enter() ? n.value_loop : n.loop;
    return plan_.nodes[source].removed || plan_.nodes[source].value_loop == loop ? -1 : source;
  }

  // Returns the node that replaces the removed node `i` as the source of a control edge.
  int ControlReplacement(int i) const {
    const PlanNode& n = plan_.nodes[i];
    return n.removed ? plan_.loops[n.is_enter() ? n.value_loop : n.loop].condition : i;
  }

  void Rewire(int i) {
    PlanNode& n = plan_.nodes[i];
    if (n.removed) return;
    for (PlanValue& v : n.inputs) v = Resolve(v);
    // In a loop, the values of an iteration are available at once: control edges from removed nodes
    // of the same loop are dropped.
    absl::flat_hash_set<int> controls;
    for (const int control : n.controls) {
      const PlanNode& before = plan_.nodes[control];
      if (!before.removed || n.loop != before.loop) controls.insert(ControlReplacement(control));
      if (const int source = SourceOutside(control); source >= 0) controls.insert(source);
    }
    n.controls.assign(controls.begin(), controls.end());
    absl::c_sort(n.controls);
    const Conditions& conditions = conditions_[i];
    n.may_be_dead =
        n.may_be_dead &&
        (n.Is(ControlFlow::kSwitch) ||
         absl::c_any_of(conditions, [&](const Condition& c) { return !IsStructured(c); }));
  }

  PlanGraph& plan_;
  const int count_;
  const PlanUses uses_;
  std::vector<Conditions> conditions_;       // by node
  std::vector<std::vector<int>> members_;    // by loop, with its Enters
  std::vector<bool> crosses_tasks_;          // by loop: a node in it, or in an inner loop, does
  std::vector<int> num_waits_;               // by loop: the nodes in it that wait for a value
  std::vector<PlanValue> next_of_;           // by kCarry
  std::vector<PlanGraph::Carry> variables_;  // variables of structured loops, and their next values
  absl::flat_hash_map<std::pair<int, int>, PlanValue>
      replacements_;  // by removed node and output: the replacement
};

}  // namespace

void StructureLoops(PlanGraph& plan) {
  if (!plan.loops.empty()) LoopStructurer(plan).Run();
}

}  // namespace weir
