#include <vector>

#include "weir/session/effects.h"
#include "weir/session/plan.h"

// What a step need not do. Once constants are folded and equal values found, many nodes have nobody
// left who uses them; they are dropped, except those with effects. A node of which only the end is
// waited for (control edges alone lead out of it) and that has no effect is not run either, but its
// waiters wait for what it waits for. Every training graph has such nodes: the gradients of a
// layer's input and of its weights are tied to finish together, and of the first layer's input
// nobody wants the gradient.
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

}  // namespace

void DropUnneeded(PlanGraph& plan, const PlanEnvironment& env) {
  enum : uint8_t { kNo, kEnd, kResult };
  std::vector<uint8_t> needed(plan.nodes.size(), kNo);
  std::vector<int> stack;
  const bool skip = env.enabled("unused_values");
  const auto need = [&](int id, uint8_t what) {
    if (id < 0 || needed[id] >= what) return;
    needed[id] = what;
    stack.push_back(id);
  };
  const auto need_end = [&](int id) {
    const PlanNode& n = plan.nodes[id];
    need(id, skip && OnlyComputes(n) && !plan.IsLoopVariable(n) ? kEnd : kResult);
  };
  for (const PlanValue& v : plan.fetches) need(v.node, kResult);
  for (const int target : plan.targets) need(target, kResult);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (HasEffect(plan.nodes[i]) || plan.nodes[i].must_run) need(static_cast<int>(i), kResult);
  }
  std::vector<int> next_of(plan.nodes.size(), -1);
  for (const PlanGraph::Carry& c : plan.carries) next_of[c.carry] = c.next.node;
  // How often its loop runs.
  const auto need_conditions = [&](int loop) {
    for (; loop >= 0; loop = plan.loops[loop].parent) {
      if (plan.loops[loop].is_raised()) need(plan.loops[loop].condition, kResult);
    }
  };
  while (!stack.empty()) {
    const int id = stack.back();
    const PlanNode& n = plan.nodes[id];
    stack.pop_back();
    if (!n.constants.empty() && n.is_constant(0)) continue;
    if (next_of[id] >= 0) need(next_of[id], kResult);
    need_conditions(n.value_loop);
    for (const PlanValue& v : n.inputs)
      needed[id] == kEnd ? need_end(v.node) : need(v.node, kResult);
    for (const int control : n.controls) need_end(control);
  }
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    PlanNode& n = plan.nodes[i];
    if (needed[i] == kNo) {
      n.Remove();
    } else if (n.is_constant(0)) {
      n.LetGo();
    } else if (needed[i] == kEnd) {
      Reduce(n);
    }
  }
}

}  // namespace weir
