#include "weir/session/fusion.h"

namespace weir {

void Fusion::FindUsers() {
  users_.assign(plan_.nodes.size(), {});
  uses_others_.assign(plan_.nodes.size(), false);
  const auto pin = [&](int node) { users_[node].assign(2, -1); };
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const PlanNode& n = plan_.nodes[i];
    if (n.removed || n.is_constant(0)) continue;
    for (const PlanValue& v : n.inputs) {
      users_[v.node].push_back(static_cast<int>(i));
      if (v.output != 0) uses_others_[v.node] = true;
    }
    for (const int control : n.controls) pin(control);
  }
  for (const PlanValue& v : plan_.fetches) {
    pin(v.node);
    if (v.output != 0) uses_others_[v.node] = true;
  }
  for (const int target : plan_.targets) pin(target);
  for (const PlanGraph::Carry& c : plan_.carries) pin(c.next);
}

bool Fusion::IsFusable(const PlanNode& n) {
  return n.kind == PlanNode::Kind::kOp && !n.removed && !n.def->accepts_dead &&
         n.loop == n.value_loop && n.device->is_host() && n.node->num_outputs() > 0 &&
         !n.node->op().stateful() && !n.is_constant(0) &&
         n.def == BuiltinKernels().Find(*n.node, kCpu);
}

Graph& Fusion::made() {
  if (plan_.made == nullptr) plan_.made = std::make_shared<Graph>(env_.graph.ops());
  return *plan_.made;
}

void Fuse(PlanGraph& plan, const PlanEnvironment& env) {
  FuseProducts(plan, env);
  FuseElementwise(plan, env);
}

}  // namespace weir
