#include <algorithm>
#include <optional>
#include <set>

#include "absl/algorithm/container.h"
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
//
// Gradients do need them: the exponentials, the sums, and which element was the maximum. And a
// ReduceLogSumExp adds the maximum again. There the maximum, the exponentials and their sum become
// one node, _SoftmaxParts, of which these are the results; x is read once. What is made of them,
// quotients and differences, is element by element, and goes into regions with what comes next
// (session/fuse_elementwise.cc): a cross entropy and its gradient walk memory four times. As in
// tf.reduce_logsumexp, the maximum may be replaced by 0 where it is not finite.
namespace weir {

namespace {

class SoftmaxFusion : public Fusion {
 public:
  using Fusion::Fusion;

  absl::Status Run() {
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
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      if (Is({static_cast<int>(id), 0}, "Sum")) TakeParts(static_cast<int>(id));
    }
    return out_of_order_ ? SortTopologically(plan_) : absl::OkStatus();
  }

 private:
  bool Is(const PlanValue& v, absl::string_view op) const {
    const PlanNode& n = plan_.nodes[v.node];
    return v.output == 0 && IsFusable(n) && n.node->op_name() == op;
  }

  bool ReducesRows(int id, absl::string_view op, const PlanValue& x) const {
    if (!Is({id, 0}, op)) return false;
    const std::optional<int> axis = FirstReducedAxis(plan_.nodes[id], x);
    return axis && *axis == ShapeOf(x).rank() - 1;
  }

  // It has a value for each of x's rows, whose axis is kept.
  bool IsOfRows(const PlanValue& v, const PlanValue& x) const {
    const int rank = ShapeOf(x).rank();
    return ShapeOf(v).rank() == rank && HasOnlyDims(ShapeOf(v), ShapeOf(x), 0, rank - 1);
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
    return ReducesRows(id, op, x) && IsOfRows(v, x);
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
    builder.Name(n.node->name()).Input(MakePlaceholder(n.node->output_type(0)));
    const Node* const node = builder.Build();
    if (!made().TakeStatus().ok() || node == nullptr) return;
    if (Replace(result, *node, {x}, nodes)) users_[x.node].push_back(result);
  }

  // ---- the parts, for others

  struct Maximum {
    int node = -1;         // whose value is taken
    int max = -1;          // the Max: the same one, unless the value is made finite
    std::set<int> passed;  // reshapes, on the way to who takes it
    std::set<int> nodes;   // of it, without those
  };

  // Of x's rows, by which they are shifted.
  std::optional<Maximum> MaximumOf(const PlanValue& x, const PlanValue& shift) const {
    if (!IsOfRows(shift, x)) return std::nullopt;
    Maximum m;
    m.node = m.max = BeforeReshapes(shift, &m.passed);
    m.nodes = {m.node};
    if (Is({m.node, 0}, "Select") || Is({m.node, 0}, "SelectV2")) {
      const auto& inputs = plan_.nodes[m.node].inputs;
      const PlanValue &is_finite = inputs[0], &max = inputs[1];
      if (!Is(is_finite, "IsFinite") || plan_.nodes[is_finite.node].inputs[0] != max ||
          !IsZero(inputs[2])) {
        return std::nullopt;
      }
      m.max = max.node;
      if (ShapeOf(max) != ShapeOf({m.node, 0})) return std::nullopt;
      m.nodes.insert({max.node, is_finite.node});
    }
    if (!ReducesRows(m.max, "Max", x) || !AreNeededOnlyFor(m.nodes, m.node)) return std::nullopt;
    return m;
  }

  void TakeParts(int sum) {
    PlanNode& n = plan_.nodes[sum];
    const PlanValue e = n.inputs[0];
    if (n.type(0) != DT_FLOAT && n.type(0) != DT_DOUBLE) return;
    if (!Is(e, "Exp") || !ReducesRows(sum, "Sum", e)) return;
    const PlanValue d = plan_.nodes[e.node].inputs[0];
    if (!Is(d, "Sub") || !ShapeOf(d).IsFullyDefined()) return;
    const PlanValue x = plan_.nodes[d.node].inputs[0];
    if (users_.empty()) FindUsers();
    const std::optional<Maximum> m = MaximumOf(x, plan_.nodes[d.node].inputs[1]);
    if (!m || ShapeOf(x) != ShapeOf(d) || !MayMove(m->node) || !MayMove(e.node)) return;
    std::set<int> nodes = m->nodes, before = m->passed;
    nodes.insert({sum, e.node});
    before.insert(d.node);
    const auto can_disappear = [&](int id) { return CanDisappear(plan_.nodes[id], n); };
    if (!absl::c_all_of(nodes, can_disappear) || !absl::c_all_of(before, can_disappear)) return;
    const bool others_take_e = users_[e.node].size() > 1;
    const auto keeps_dims = [&](int id) {
      return plan_.nodes[id].node->attr_or<bool>("keep_dims", false);
    };
    NodeBuilder builder(made(), "_SoftmaxParts");
    builder.Name(n.node->name())
        .Input(MakePlaceholder(n.type(0)))
        .Attr("num_exponentials", int64_t{others_take_e ? 1 : 0})
        .Attr("keep_sum_dims", keeps_dims(sum))
        .Attr("keep_max_dims", keeps_dims(m->max))
        .Attr("finite", m->node != m->max);
    const Node* const node = builder.Build();
    if (!made().TakeStatus().ok() || node == nullptr) return;
    if (AreNeededOnlyFor({d.node, e.node}, e.node)) {
      nodes.insert(d.node);
      if (AreNeededOnlyFor(before, d.node)) nodes.merge(before);
    }
    if (!Replace(sum, *node, {x}, nodes)) return;
    users_[x.node].push_back(sum);
    Give({m->node, 0}, {sum, 1});
    if (others_take_e) Give(e, {sum, 2});
    out_of_order_ = true;
  }

  bool out_of_order_ = false;  // who takes a result may stand before it now
};

}  // namespace

absl::Status FuseSoftmaxes(PlanGraph& plan, const PlanEnvironment& env) {
  return SoftmaxFusion(plan, env).Run();
}

}  // namespace weir
