#include <utility>
#include <vector>

#include "weir/session/passes/effects.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/internal_nodes.h"

// Dead node elimination. After constant folding and common-subexpression elimination, many nodes
// have no users left; they are removed, except those with effects. A node whose completion alone
// matters (only control edges leave it) and that has no effect is not run either; its successors
// then depend on its predecessors. Every training graph has such nodes: the gradients of a layer's
// input and of its weights are tied to complete together, and the gradient of the first layer's
// input is not used.
//
// A read of a reference variable without a value, and a placeholder that is not fed, fail, and the
// step must not lose that error together with the value: tf.assert_variables_initialized consists
// of nothing but the ranks of variables, which are known. All such checks that Prune has kept are
// run. (Reads of resource variables are removed with their values, as in TensorFlow's sessions,
// unless a node depends on the completion of their users: the same assertion as a target.)
namespace weir {

namespace {

// Turns the node into one that computes nothing and has the same predecessors.
void ReduceToWait(PlanNode& n) {
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
  return n.kind == PlanNode::Kind::kRead || n.traits().placeholder;
}

class LivenessAnalysis {
 public:
  LivenessAnalysis(PlanGraph& plan, bool reduces_to_wait)
      : plan_(plan),
        reduces_to_wait_(reduces_to_wait),
        uses_(plan.nodes.size(), kDead),
        completion_needed_(plan.nodes.size(), false),
        next_of_(plan.nodes.size(), -1) {
    for (const PlanGraph::Carry& c : plan.carries) next_of_[c.carry] = c.next.node;
  }

  void Propagate() {
    for (const PlanValue& v : plan_.fetches) Require(v.node, kResult);
    for (const int target : plan_.targets) {
      Require(target, kResult);
      if (IsKnown(target)) RequireCompletion(target);
    }
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (HasEffect(n) || IsCheck(n) || n.must_run) Require(static_cast<int>(i), kResult);
    }
    while (!stack_.empty()) {
      const auto [id, use] = stack_.back();
      stack_.pop_back();
      Visit(id, use);
    }
  }

  void RemoveDead() {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      PlanNode& n = plan_.nodes[i];
      if (uses_[i] == kDead) {
        plan_.Erase(static_cast<int>(i));
      } else if (n.is_constant(0)) {
        n.DropEdges();
      } else if (uses_[i] == kCompletion) {
        ReduceToWait(n);
      }
    }
  }

 private:
  // What the step needs of a node.
  enum Use : uint8_t { kDead, kCompletion, kResult };

  bool IsKnown(int id) const { return plan_.nodes[id].is_constant(0); }

  void Require(int id, Use use) {
    if (id < 0 || uses_[id] >= use) return;
    uses_[id] = use;
    stack_.push_back({id, use});
  }

  // Requires the completion of a node. A constant is complete when the nodes that it was computed
  // from are.
  void RequireCompletion(int id) {
    const PlanNode& n = plan_.nodes[id];
    if (!IsKnown(id))
      return Require(id, reduces_to_wait_ && OnlyComputes(n) && !plan_.IsLoopVariable(n)
                             ? kCompletion
                             : kResult);
    Require(id, kCompletion);
    if (completion_needed_[id]) return;
    completion_needed_[id] = true;
    stack_.push_back({id, kCompletion});
  }

  void Visit(int id, Use use) {
    const PlanNode& n = plan_.nodes[id];
    if (IsKnown(id)) {
      if (!completion_needed_[id]) return;
      for (const PlanValue& v : n.inputs) RequireCompletion(v.node);
      return;
    }
    if (next_of_[id] >= 0) Require(next_of_[id], kResult);
    RequireLoopConditions(n.value_loop);
    for (const PlanValue& v : n.inputs)
      use == kCompletion ? RequireCompletion(v.node) : Require(v.node, kResult);
    for (const int control : n.controls) RequireCompletion(control);
  }

  // Requires the conditions of the loops around, which decide how often the loops run.
  void RequireLoopConditions(int loop) {
    for (; loop >= 0; loop = plan_.loops[loop].parent) {
      if (plan_.loops[loop].is_structured()) Require(plan_.loops[loop].condition, kResult);
    }
  }

  PlanGraph& plan_;
  const bool reduces_to_wait_;
  std::vector<Use> uses_;
  std::vector<bool> completion_needed_;  // constants whose completion is needed
  std::vector<int> next_of_;
  std::vector<std::pair<int, Use>> stack_;
};

}  // namespace

void EliminateDeadNodes(PlanGraph& plan, const PlanEnvironment& env) {
  LivenessAnalysis analysis(plan, env.enabled("reduce_waits"));
  analysis.Propagate();
  analysis.RemoveDead();
}

}  // namespace weir
