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
// A read of a reference variable that has no value, and a placeholder that is not fed, refuse to
// run, and the step must not lose that with the value: tf.assert_variables_initialized is nothing
// but the ranks of variables, which are known. All such checks that Prune has kept are run. (Reads
// of resource variables go with their values, as in TensorFlow's sessions, unless somebody waits
// for the end of what takes them: the same assertion as a target.)
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
      if (IsKnown(target)) NeedEnd(target);
    }
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (HasEffect(n) || IsCheck(n) || n.must_run) Need(static_cast<int>(i), kResult);
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
      if (needed_[i] == kNo) {
        n.Remove();
      } else if (n.is_constant(0)) {
        n.DropEdges();
      } else if (needed_[i] == kEnd) {
        Reduce(n);
      }
    }
  }

 private:
  // What the step needs of a node.
  enum What : uint8_t { kNo, kEnd, kResult };

  bool IsKnown(int id) const { return plan_.nodes[id].is_constant(0); }

  void Need(int id, What what) {
    if (id < 0 || needed_[id] >= what) return;
    needed_[id] = what;
    stack_.push_back({id, what});
  }

  // Of a known value that is when what it was computed from has ended.
  void NeedEnd(int id) {
    const PlanNode& n = plan_.nodes[id];
    if (!IsKnown(id))
      return Need(id, skip_ && OnlyComputes(n) && !plan_.IsLoopVariable(n) ? kEnd : kResult);
    Need(id, kEnd);
    if (ended_[id]) return;
    ended_[id] = true;
    stack_.push_back({id, kEnd});
  }

  void Visit(int id, What what) {
    const PlanNode& n = plan_.nodes[id];
    if (IsKnown(id)) {
      if (!ended_[id]) return;
      for (const PlanValue& v : n.inputs) NeedEnd(v.node);
      return;
    }
    if (next_of_[id] >= 0) Need(next_of_[id], kResult);
    NeedConditions(n.value_loop);
    for (const PlanValue& v : n.inputs) what == kEnd ? NeedEnd(v.node) : Need(v.node, kResult);
    for (const int control : n.controls) NeedEnd(control);
  }

  // How often its loop runs.
  void NeedConditions(int loop) {
    for (; loop >= 0; loop = plan_.loops[loop].parent) {
      if (plan_.loops[loop].is_structured()) Need(plan_.loops[loop].condition, kResult);
    }
  }

  PlanGraph& plan_;
  const bool skip_;
  std::vector<What> needed_;
  std::vector<bool> ended_;  // known nodes whose end is needed
  std::vector<int> next_of_;
  std::vector<std::pair<int, What>> stack_;
};

}  // namespace

void EliminateDeadNodes(PlanGraph& plan, const PlanEnvironment& env) {
  Needs needs(plan, env.enabled("eliminate_dead_nodes"));
  needs.Find();
  needs.Drop();
}

}  // namespace weir
