#ifndef WEIR_SESSION_PLAN_SUBPLAN_H_
#define WEIR_SESSION_PLAN_SUBPLAN_H_

#include <string>
#include <vector>

#include "weir/session/plan/plan_environment.h"
#include "weir/session/plan/plan_graph.h"

namespace weir {

// Builds a subplan: a part of a plan that is extracted into a separate plan, which one node runs.
// It has the nodes, before all passes that depend on shapes, and feeds and fetches.
class Subplan {
 public:
  explicit Subplan(const PlanEnvironment& env);

  // Each returns the value in the subplan.
  PlanValue AddConstant(const Tensor& value, const std::string& name);
  // `step_invariant`: whether the fed value is (PlanGraph::IsStepInvariant).
  PlanValue AddFeed(DataType type, bool step_invariant);
  // Adds the same node as in the outer plan; `inputs` are values of the subplan. Returns its number
  // in the subplan.
  int AddNode(const PlanNode& outer, absl::InlinedVector<PlanValue, 3> inputs);
  void AddFetch(const PlanValue& value) { plan_.fetches.push_back(value); }

  // Returns the plan, or the first error.
  absl::StatusOr<PlanGraph> Take();

 private:
  int Add(const Node& node);

  const PlanEnvironment& env_;
  PlanGraph plan_;
};

// The signature of a node that runs a subplan: its op, name, types, and the ops of its nodes.
struct SubplanSignature {
  std::string op;  // "_TiledSubplan" or "_CachedSubplan"
  std::string name;
  DataTypes feeds, results;
  std::vector<std::string> fused_ops;
};
// Creates such a node, in a graph with InternalOps.
absl::StatusOr<const Node*> MakeSubplanNode(const SubplanSignature& signature, Graph& graph);

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_SUBPLAN_H_
