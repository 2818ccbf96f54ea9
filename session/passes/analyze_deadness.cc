#include "absl/algorithm/container.h"
#include "weir/session/passes/deadness.h"
#include "weir/session/passes/passes.h"

// Marks the nodes that may be in an untaken branch, and so be skipped. All others need no check of
// their inputs while a step runs, and may be folded into constants.
namespace weir {

void AnalyzeDeadness(PlanGraph& plan) {
  const auto branches = [](const PlanNode& n) {
    return n.Is(ControlFlow::kSwitch) || (n.def != nullptr && n.def->accepts_dead);
  };
  if (plan.loops.empty() && absl::c_none_of(plan.nodes, branches)) return;
  const Deadness deadness(plan);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    PlanNode& n = plan.nodes[i];
    const bool conditional = !deadness.runs_if()[i].empty() || n.Is(ControlFlow::kSwitch);
    n.may_be_dead = n.kind != PlanNode::Kind::kFeed && conditional;
  }
}

}  // namespace weir
