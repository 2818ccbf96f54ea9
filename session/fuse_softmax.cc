#include <optional>
#include <set>

#include "weir/session/fusion.h"

// A softmax over the last axis, or its logarithm, which cross entropies are made of, becomes the op
// where small ops spell it out: with d = x - Max(x) and e = Exp(d),
//
//   e / Sum(e)  and  d - Log(Sum(e))
//
// where both reductions keep their axis, or a reshape puts it back. The op's kernel walks memory
// once, the small ops five times. Without the maximum it is another function, which overflows, and
// stays; so does Log(e / Sum(e)), which is minus infinity where the other is not. As for a layer
// norm (session/fuse_layer_norm.cc), the nodes in between must be needed nowhere else, and results
// differ by rounding.
namespace weir {

namespace {

class SoftmaxFusion : public Fusion {
 public:
  using Fusion::Fusion;

  void Run() {
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      const PlanNode& n = plan_.nodes[id];
      if (n.removed || !n.Is("RealDiv", "Sub") || !IsFusable(n)) continue;
      if (n.node->output_type(0) != DT_FLOAT && n.node->output_type(0) != DT_DOUBLE) continue;
      if (n.Is("RealDiv")) {
        TakeSoftmax(static_cast<int>(id));
      } else {
        TakeLogSoftmax(static_cast<int>(id));
      }
    }
  }

 private:
  bool Is(const PlanValue& v, absl::string_view op) const {
    const PlanNode& n = plan_.nodes[v.node];
    return v.output == 0 && IsFusable(n) && n.node->op_name() == op;
  }

  // `v` is the reduction `op` of x over its last axis, for each row, or what `then` makes of that.
  bool IsReduced(const PlanValue& v, absl::string_view op, const PlanValue& x, std::set<int>* nodes,
                 absl::string_view then = "") const {
    int id = BeforeReshapes(v, nodes);
    nodes->insert(id);
    if (!then.empty()) {
      if (!Is({id, 0}, then)) return false;
      id = BeforeReshapes(plan_.nodes[id].inputs[0], nodes);
      nodes->insert(id);
    }
    if (!Is({id, 0}, op)) return false;
    const std::optional<int> axis = FirstReducedAxis(plan_.nodes[id], x);
    return axis && *axis == ShapeOf(x).rank() - 1 && ShapeOf(v).rank() == ShapeOf(x).rank() &&
           HasOnlyDims(ShapeOf(v), ShapeOf(x), 0, *axis);
  }

  void TakeSoftmax(int result) {
    const PlanNode& n = plan_.nodes[result];
    const PlanValue& e = n.inputs[0];
    std::set<int> nodes = {result};
    if (Is(e, "Exp") && IsReduced(n.inputs[1], "Sum", e, &nodes)) Take(result, "Softmax", e, nodes);
  }

  void TakeLogSoftmax(int result) {
    const PlanNode& n = plan_.nodes[result];
    const PlanValue& d = n.inputs[0];
    if (!Is(d, "Sub")) return;
    if (users_.empty()) FindUsers();
    for (const int user : users_[d.node]) {
      std::set<int> nodes = {result};
      if (user < 0 || !Is({user, 0}, "Exp")) continue;
      if (IsReduced(n.inputs[1], "Sum", {user, 0}, &nodes, "Log"))
        return Take(result, "LogSoftmax", {user, 0}, nodes);
    }
  }

  // `nodes` are those from e on.
  void Take(int result, absl::string_view op, const PlanValue& e, std::set<int> nodes) {
    const PlanNode& n = plan_.nodes[result];
    const PlanValue d = plan_.nodes[e.node].inputs[0];
    if (!Is(d, "Sub")) return;
    const PlanValue x = plan_.nodes[d.node].inputs[0];
    nodes.insert({e.node, d.node});
    if (!IsReduced(plan_.nodes[d.node].inputs[1], "Max", x, &nodes)) return;
    for (const int id : nodes) {
      if (!CanDisappear(plan_.nodes[id], n)) return;
    }
    if (users_.empty()) FindUsers();
    if (!AreNeededOnlyFor(nodes, result)) return;
    NodeBuilder builder(made(), op);
    builder.Name(n.node->name()).Input(Stand(n.node->output_type(0)));
    const Node* const node = builder.Build();
    if (made().TakeStatus().ok() && node != nullptr) Replace(result, *node, {x}, nodes);
  }
};

}  // namespace

void FuseSoftmaxes(PlanGraph& plan, const PlanEnvironment& env) { SoftmaxFusion(plan, env).Run(); }

}  // namespace weir
