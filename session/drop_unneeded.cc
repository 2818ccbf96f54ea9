#include <utility>
#include <vector>

#include "weir/session/effects.h"
#include "weir/session/plan.h"

// What a step need not do. Once constants are folded and equal values found, many nodes have nobody
// left who uses them; they are dropped, except those with effects. A node of which only the end is
// waited for (control edges alone lead out of it) and that has no effect is not run either, but its
// waiters wait for what it waits for. Every training graph has such nodes: the gradients of a
// layer's input and of its weights are tied to finish together, and of the first layer's input
// nobody wants the gradient.
//
// A read of a variable that has no value, and a placeholder that is not fed, refuse to run. Nobody
// may lose that check with the value: tf.assert_variables_initialized is nothing but the ranks of
// variables, which are known. So a check runs if anything that a step asks for was computed from
// it. (Only the value of a ReadVariableOp is folded away without a check, as in TensorFlow's
// sessions, unless the step asks for the end of what takes it: the assertion as a target.)
namespace weir {

namespace {

// The node becomes one that computes nothing and waits for the same ones.
void Reduce(PlanNode& n) {
  n.kind = PlanNode::Kind::kWait;
  n.node = &InternalNode("_Wait", DT_FLOAT);
  for (const PlanValue& v : n.inputs) n.controls.push_back(v.node);
  n.inputs.clear();
  n.shapes.clear();
  n.def = nullptr;
  n.kernel = Kernel();
  n.cost_ns = 0;
}

bool IsCheck(const PlanNode& n) {
  return n.kind == PlanNode::Kind::kRead || n.Is("Placeholder", "PlaceholderV2");
}

bool IsKnown(const PlanNode& n) { return !n.constants.empty() && n.is_constant(0); }

class Needs {
 public:
  Needs(PlanGraph& plan, bool skip)
      : plan_(plan),
        skip_(skip),
        needed_(plan.nodes.size(), kNo),
        ended_(plan.nodes.size(), false),
        next_of_(plan.nodes.size(), -1) {
    for (const PlanGraph::Carry& c : plan.carries) next_of_[c.carry] = c.next.node;
  }

  void Find() {
    for (const PlanValue& v : plan_.fetches) Need(v.node, kResult);
    for (const int target : plan_.targets) {
      Need(target, kResult);
      NeedEndOfKnown(target);
    }
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (HasEffect(plan_.nodes[i]) || plan_.nodes[i].must_run) Need(static_cast<int>(i), kResult);
    }
    while (!stack_.empty()) {
      const auto [id, what] = stack_.back();
      stack_.pop_back();
      Visit(id, what);
    }
  }

  void Drop() {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      PlanNode& n = plan_.nodes[i];
      if (needed_[i] <= kCheck) {
        n.Remove();
      } else if (n.is_constant(0)) {
        n.LetGo();
      } else if (needed_[i] == kEnd) {
        Reduce(n);
      }
    }
  }

 private:
  // What the step needs of a node: nothing, that the checks before it run, its end, its values.
  enum What : uint8_t { kNo, kCheck, kEnd, kResult, kEndOfKnown };

  void Need(int id, What what) {
    if (id < 0 || needed_[id] >= what) return;
    needed_[id] = what;
    stack_.push_back({id, what});
  }

  void NeedEnd(int id) {
    const PlanNode& n = plan_.nodes[id];
    if (IsKnown(n)) return NeedEndOfKnown(id);
    if (IsCheck(n)) return NeedCheck(id);
    Need(id, skip_ && OnlyComputes(n) && !plan_.IsLoopVariable(n) ? kEnd : kResult);
  }

  // That of what it was computed from.
  void NeedEndOfKnown(int id) {
    if (!IsKnown(plan_.nodes[id]) || ended_[id]) return;
    ended_[id] = true;
    Need(id, kEnd);
    stack_.push_back({id, kEndOfKnown});
  }

  void NeedCheck(int id) { Need(id, IsCheck(plan_.nodes[id]) ? kResult : kCheck); }

  void Visit(int id, What what) {
    const PlanNode& n = plan_.nodes[id];
    if (what == kEndOfKnown) {
      for (const PlanValue& v : n.inputs) NeedEnd(v.node);
    } else if (what == kCheck || IsKnown(n)) {
      for (const PlanValue& v : n.inputs) NeedCheck(v.node);
      for (const int control : n.controls) NeedCheck(control);
    } else {
      if (next_of_[id] >= 0) Need(next_of_[id], kResult);
      NeedConditions(n.value_loop);
      for (const PlanValue& v : n.inputs) what == kEnd ? NeedEnd(v.node) : Need(v.node, kResult);
      for (const int control : n.controls) NeedEnd(control);
    }
  }

  // How often its loop runs.
  void NeedConditions(int loop) {
    for (; loop >= 0; loop = plan_.loops[loop].parent) {
      if (plan_.loops[loop].is_raised()) Need(plan_.loops[loop].condition, kResult);
    }
  }

  PlanGraph& plan_;
  const bool skip_;
  std::vector<What> needed_;
  std::vector<bool> ended_;  // known nodes whose end is asked for
  std::vector<int> next_of_;
  std::vector<std::pair<int, What>> stack_;
};

}  // namespace

void DropUnneeded(PlanGraph& plan, const PlanEnvironment& env) {
  Needs needs(plan, env.enabled("unused_values"));
  needs.Find();
  needs.Drop();
}

}  // namespace weir
