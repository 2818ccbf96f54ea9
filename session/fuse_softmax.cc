#include <optional>
#include <set>

#include "weir/session/fusion.h"

// A softmax over the last axis, spelled out in small ops, becomes the op: with e = Exp(x - Max(x)),
//
//   e / Sum(e)
//
// where both reductions keep their axis, or a reshape puts it back. The op's kernel walks memory
// once, the small ops five times. Without the maximum it is another function, which overflows, and
// stays. As for a layer norm (session/fuse_layer_norm.cc), the nodes in between must be needed
// nowhere else, and results differ by rounding.
namespace weir {

namespace {

class SoftmaxFusion : public Fusion {
 public:
  using Fusion::Fusion;

  void Run() {
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      const PlanNode& n = plan_.nodes[id];
      if (n.removed || n.node->op_name() != "RealDiv") continue;
      if (users_.empty()) FindUsers();
      Take(static_cast<int>(id));
    }
  }

 private:
  bool Is(const PlanValue& v, absl::string_view op) const {
    const PlanNode& n = plan_.nodes[v.node];
    return v.output == 0 && IsFusable(n) && n.node->op_name() == op;
  }

  // `v` is the reduction `op` of x over its last axis, for each row.
  bool IsReduced(const PlanValue& v, absl::string_view op, const PlanValue& x,
                 std::set<int>* nodes) const {
    const int id = BeforeReshapes(v, nodes);
    nodes->insert(id);
    if (!Is({id, 0}, op)) return false;
    const std::optional<int> axis = FirstReducedAxis(plan_.nodes[id], x);
    return axis && *axis == ShapeOf(x).rank() - 1 && ShapeOf(v).rank() == ShapeOf(x).rank() &&
           HasOnlyDims(ShapeOf(v), ShapeOf(x), 0, *axis);
  }

  void Take(int result) {
    const PlanNode& n = plan_.nodes[result];
    if (!IsFusable(n)) return;
    const DataType type = n.node->output_type(0);
    if (type != DT_FLOAT && type != DT_DOUBLE) return;
    const PlanValue e = n.inputs[0];
    if (!Is(e, "Exp") || !Is(plan_.nodes[e.node].inputs[0], "Sub")) return;
    const int difference = plan_.nodes[e.node].inputs[0].node;
    const PlanValue x = plan_.nodes[difference].inputs[0];
    std::set<int> nodes = {result, e.node, difference};
    if (!IsReduced(n.inputs[1], "Sum", e, &nodes) ||
        !IsReduced(plan_.nodes[difference].inputs[1], "Max", x, &nodes)) {
      return;
    }
    for (const int id : nodes) {
      if (!CanDisappear(plan_.nodes[id], n)) return;
    }
    if (!AreNeededOnlyFor(nodes, result)) return;
    NodeBuilder builder(made(), "Softmax");
    builder.Name(n.node->name()).Input(Stand(type));
    const Node* const node = builder.Build();
    if (made().TakeStatus().ok() && node != nullptr) Replace(result, *node, {x}, nodes);
  }
};

}  // namespace

void FuseSoftmaxes(PlanGraph& plan, const PlanEnvironment& env) { SoftmaxFusion(plan, env).Run(); }

}  // namespace weir
