#ifndef WEIR_SESSION_PLAN_INFER_SHAPES_H_
#define WEIR_SESSION_PLAN_INFER_SHAPES_H_

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "weir/core/graph/shape_context.h"
#include "weir/session/plan/container_shapes.h"
#include "weir/session/plan/plan_graph.h"

namespace weir {

// Provides the plan's constants to shape functions instead of the graph's.
class PlanValues : public ShapeContext::Values {
 public:
  // `trusts_graph`: the values that the graph knows hold in this step too.
  PlanValues(const PlanGraph& plan, bool trusts_graph) : plan_(plan), trusts_graph_(trusts_graph) {}
  void set_current(const PlanNode* node) { current_ = node; }

  const Tensor* value(const Node& node, int i) override;
  Shape value_as_shape(const Node& node, int i) override;

 private:
  const PlanGraph& plan_;
  const bool trusts_graph_;
  const PlanNode* current_ = nullptr;
};

// Infers the shapes of a plan's nodes from those of its feeds and from its constants.
//
// A loop-carried value is assumed to keep its initial shape. If it does not, the dimensions that
// change are assumed to be unknown, and the nodes are visited again until all assumptions hold.
class ShapeInference {
 public:
  // Sets the shapes of the feeds. For a resource handle, `feed_shapes` has the shape of its
  // variable.
  ShapeInference(PlanGraph& plan, absl::Span<const Shape> feed_shapes);

  // Forgets what was assumed of loop-carried values.
  void Begin();
  // Sets the shapes of a node. All nodes before it have been visited.
  void Visit(PlanNode& n);
  // Returns true if the loop-carried values have the assumed shapes; else they are assumed to have
  // others, and all nodes must be visited once more. `round`: how often they have been visited
  // since Begin.
  bool AssumptionsHold(int round);
  // Infers the shapes of values in stacks, arrays and lists. Returns false if nothing new is known.
  bool UpdateContainers() { return containers_.Update(plan_); }

 private:
  void VisitOp(PlanNode& n);
  void AssumeCarriedShapes(const PlanNode& n);
  const HandleData* HandleDataOf(const PlanValue& v) const;
  int IndexOf(const PlanNode& n) const { return static_cast<int>(&n - plan_.nodes.data()); }

  PlanGraph& plan_;
  const bool trusts_graph_;
  PlanValues values_;
  ContainerShapes containers_;
  absl::flat_hash_map<int, HandleData> fed_handles_;  // by node
  // By node: shapes of structured loops' variables that do not keep their initial shape.
  absl::flat_hash_map<int, Shape> variable_shapes_;
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_INFER_SHAPES_H_
