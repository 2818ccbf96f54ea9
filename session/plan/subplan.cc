#include "weir/session/plan/subplan.h"

#include "weir/core/graph/scope.h"
#include "weir/session/plan/internal_nodes.h"

namespace weir {

Subplan::Subplan(const PlanEnvironment& env) : env_(env) {
  plan_.internal_graph = std::make_shared<Graph>(env.graph.ops());
}

int Subplan::Add(const Node& node) {
  PlanNode n;
  n.node = &node;
  n.device = env_.devices[0].get();
  plan_.nodes.push_back(std::move(n));
  return static_cast<int>(plan_.nodes.size()) - 1;
}

PlanValue Subplan::AddConstant(const Tensor& value, const std::string& name) {
  const Node* const node = NodeBuilder(*plan_.internal_graph, "Const")
                               .Name(name)
                               .Attr("value", value)
                               .Attr("dtype", value.dtype())
                               .Build();
  if (node == nullptr) return {};
  const int id = Add(*node);
  plan_.nodes[id].def = env_.kernels.Find(*node, kCpu);
  return {id, 0};
}

PlanValue Subplan::AddFeed(DataType type, bool step_invariant) {
  const int id = Add(InternalNode("_Read", type));
  plan_.nodes[id].kind = PlanNode::Kind::kFeed;
  plan_.nodes[id].step_invariant = step_invariant;
  plan_.feeds.push_back({id, 0});
  return {id, 0};
}

int Subplan::AddNode(const PlanNode& outer, absl::InlinedVector<PlanValue, 3> inputs) {
  const int id = Add(*outer.node);
  plan_.nodes[id].def = outer.def;
  plan_.nodes[id].inputs = std::move(inputs);
  return id;
}

absl::StatusOr<PlanGraph> Subplan::Take() {
  WEIR_RETURN_IF_ERROR(plan_.internal_graph->TakeStatus());
  return std::move(plan_);
}

absl::StatusOr<const Node*> MakeSubplanNode(const SubplanSignature& signature, Graph& graph) {
  Outputs args;
  for (const DataType type : signature.feeds)
    args.push_back(NodeBuilder(graph, "_Source").Attr("T", type).BuildOutput());
  const Node* const node = NodeBuilder(graph, signature.op)
                               .Name(signature.name)
                               .InputList(args)
                               .Attr("Tresults", signature.results)
                               .Attr("fused_ops", signature.fused_ops)
                               .Build();
  WEIR_RETURN_IF_ERROR(graph.TakeStatus());
  return node;
}

}  // namespace weir
