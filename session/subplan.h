#ifndef WEIR_SESSION_SUBPLAN_H_
#define WEIR_SESSION_SUBPLAN_H_

#include <string>
#include <vector>

#include "weir/session/plan.h"

namespace weir {

// A part of a plan, taken out of it to be a plan of its own that one node runs: its nodes, before
// all passes that follow from shapes, its feeds and fetches.
class Subplan {
 public:
  explicit Subplan(const PlanEnvironment& env);

  // Each gives the value there.
  PlanValue AddConstant(const Tensor& value, const std::string& name);
  // `step_invariant`: what is fed does (PlanGraph::IsStepInvariant).
  PlanValue AddFeed(DataType type, bool step_invariant);
  // The same node as outside; `inputs` are values of the inner plan. Gives its number there.
  int AddNode(const PlanNode& outer, absl::InlinedVector<PlanValue, 3> inputs);
  void AddFetch(const PlanValue& value) { plan_.fetches.push_back(value); }

  // The plan, if all went well.
  absl::StatusOr<PlanGraph> Take();

 private:
  int Add(const Node& node);

  const PlanEnvironment& env_;
  PlanGraph plan_;
};

// What the node that runs an inner plan shows of itself: types, a name, and what is in it.
struct SubplanSignature {
  std::string op;  // "_TiledSubplan" or "_CachedSubplan"
  std::string name;
  DataTypes feeds, results;
  std::vector<std::string> fused_ops;
};
// Ops of such nodes, which are no files'.
const OpRegistry& SubplanOps();
// In a graph with SubplanOps.
absl::StatusOr<const Node*> MakeSubplanNode(const SubplanSignature& face, Graph& graph);

}  // namespace weir

#endif  // WEIR_SESSION_SUBPLAN_H_
