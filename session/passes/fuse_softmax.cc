#include <algorithm>
#include <optional>
#include <set>

#include "absl/algorithm/container.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/fusion.h"

// Fuses a softmax over the last axis, or its logarithm, which cross entropies use, where it is
// decomposed into small ops: with d = x - Max(x) and e = Exp(d),
//
//   e / Sum(e)  and  d - Log(Sum(e))
//
// where both reductions keep their axis, or a reshape restores it. The op's kernel traverses memory
// once, the small ops five times. Without the maximum it is another function, which overflows, and
// is not fused; nor is Log(e / Sum(e)), which is minus infinity where the other is not. As for a
// layer norm (session/passes/fuse_layer_norm.cc), the nodes in between must have no other users,
// and results differ by rounding.
//
// In training, gradients do use them: the exponentials, the sums, and which element was the
// maximum. And a ReduceLogSumExp adds the maximum again. There the maximum, the exponentials and
// their sum become one node, _SoftmaxParts, with these as its results; x is read once. The
// quotients and differences computed from them are elementwise, and are fused with their neighbors
// (session/passes/fuse_elementwise.cc): a cross entropy and its gradient traverse memory four
// times. As in tf.reduce_logsumexp, the maximum may be replaced by 0 where it is not finite.
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
        MatchSoftmax(static_cast<int>(id));
      } else {
        MatchLogSoftmax(static_cast<int>(id));
      }
    }
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      if (Is({static_cast<int>(id), 0}, "Sum")) FuseParts(static_cast<int>(id));
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

  // True if `v` has one value for each of x's rows, and the reduced axis is kept.
  bool IsPerRow(const PlanValue& v, const PlanValue& x) const {
    const int rank = ShapeOf(x).rank();
    return ShapeOf(v).rank() == rank && HasOnlyDims(ShapeOf(v), ShapeOf(x), 0, rank - 1);
  }

  // True if `v` is the reduction `op` of x over its last axis, for each row, or the op `then` of
  // that reduction.
  bool IsReduced(const PlanValue& v, absl::string_view op, const PlanValue& x, std::set<int>* nodes,
                 absl::string_view then = "") const {
    int id = StripReshapes(v, nodes);
    nodes->insert(id);
    if (!then.empty()) {
      if (!Is({id, 0}, then)) return false;
      id = StripReshapes(plan_.nodes[id].inputs[0], nodes);
      nodes->insert(id);
    }
    return ReducesRows(id, op, x) && IsPerRow(v, x);
  }

  void MatchSoftmax(int result) {
    const PlanNode& n = plan_.nodes[result];
    const PlanValue& e = n.inputs[0];
    std::set<int> nodes = {result};
    if (Is(e, "Exp") && IsReduced(n.inputs[1], "Sum", e, &nodes))
      FuseInto(result, "Softmax", e, nodes);
  }

  void MatchLogSoftmax(int result) {
    const PlanNode& n = plan_.nodes[result];
    const PlanValue& d = n.inputs[0];
    if (!Is(d, "Sub")) return;
    for (const PlanUse& use : uses().Of(d.node)) {
      const int user = use.user;
      std::set<int> nodes = {result};
      if (!use.is_input() || !Is({user, 0}, "Exp")) continue;
      if (IsReduced(n.inputs[1], "Sum", {user, 0}, &nodes, "Log"))
        return FuseInto(result, "LogSoftmax", {user, 0}, nodes);
    }
  }

  // `nodes`: the nodes after e, including `result`.
  void FuseInto(int result, absl::string_view op, const PlanValue& e, std::set<int> nodes) {
    const PlanNode& n = plan_.nodes[result];
    const PlanValue d = plan_.nodes[e.node].inputs[0];
    if (!Is(d, "Sub")) return;
    const PlanValue x = plan_.nodes[d.node].inputs[0];
    nodes.insert({e.node, d.node});
    if (!IsReduced(plan_.nodes[d.node].inputs[1], "Max", x, &nodes)) return;
    for (const int id : nodes) {
      if (!CanDisappear(plan_.nodes[id], n)) return;
    }
    if (!AreUsedOnlyBy(nodes, result)) return;
    NodeBuilder builder(internal_graph(), op);
    builder.Name(n.node->name()).Input(MakePlaceholder(n.node->output_type(0)));
    const Node* const node = builder.Build();
    if (!internal_graph().TakeStatus().ok() || node == nullptr) return;
    if (Replace(result, *node, {x}, nodes)) AddUse(x, result);
  }

  // ---- the parts, for other users

  struct Maximum {
    int node = -1;           // the node whose value is used
    int max = -1;            // the Max: the same node, unless the value is made finite
    std::set<int> reshapes;  // reshapes between it and its user
    std::set<int> nodes;     // the nodes that compute it, without those
  };

  // Matches the maximum of x's rows, which is subtracted from x.
  std::optional<Maximum> MatchMaximum(const PlanValue& x, const PlanValue& shift) {
    if (!IsPerRow(shift, x)) return std::nullopt;
    Maximum m;
    m.node = m.max = StripReshapes(shift, &m.reshapes);
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
    if (!ReducesRows(m.max, "Max", x) || !AreUsedOnlyBy(m.nodes, m.node)) return std::nullopt;
    return m;
  }

  void FuseParts(int sum) {
    PlanNode& n = plan_.nodes[sum];
    const PlanValue e = n.inputs[0];
    if (n.type(0) != DT_FLOAT && n.type(0) != DT_DOUBLE) return;
    if (!Is(e, "Exp") || !ReducesRows(sum, "Sum", e)) return;
    const PlanValue d = plan_.nodes[e.node].inputs[0];
    if (!Is(d, "Sub") || !ShapeOf(d).IsFullyDefined()) return;
    const PlanValue x = plan_.nodes[d.node].inputs[0];
    const std::optional<Maximum> m = MatchMaximum(x, plan_.nodes[d.node].inputs[1]);
    if (!m || ShapeOf(x) != ShapeOf(d) || !uses().HasOnlyInputUses(m->node) ||
        !uses().HasOnlyInputUses(e.node))
      return;
    std::set<int> nodes = m->nodes, before = m->reshapes;
    nodes.insert({sum, e.node});
    before.insert(d.node);
    const auto can_disappear = [&](int id) { return CanDisappear(plan_.nodes[id], n); };
    if (!absl::c_all_of(nodes, can_disappear) || !absl::c_all_of(before, can_disappear)) return;
    const bool e_has_other_users = uses().Of(e.node).size() > 1;
    const auto keeps_dims = [&](int id) {
      return plan_.nodes[id].node->attr_or<bool>("keep_dims", false);
    };
    NodeBuilder builder(internal_graph(), "_SoftmaxParts");
    builder.Name(n.node->name())
        .Input(MakePlaceholder(n.type(0)))
        .Attr("num_exponentials", int64_t{e_has_other_users ? 1 : 0})
        .Attr("keep_sum_dims", keeps_dims(sum))
        .Attr("keep_max_dims", keeps_dims(m->max))
        .Attr("finite", m->node != m->max);
    const Node* const node = builder.Build();
    if (!internal_graph().TakeStatus().ok() || node == nullptr) return;
    if (AreUsedOnlyBy({d.node, e.node}, e.node)) {
      nodes.insert(d.node);
      if (AreUsedOnlyBy(before, d.node)) nodes.merge(before);
    }
    if (!Replace(sum, *node, {x}, nodes)) return;
    AddUse(x, sum);
    RedirectUses({m->node, 0}, {sum, 1});
    if (e_has_other_users) RedirectUses(e, {sum, 2});
    out_of_order_ = true;
  }

  // The fused node `user` takes x.
  void AddUse(const PlanValue& x, int user) {
    uses().Add(x.node, {PlanUse::Kind::kInput, user, x.output});
  }

  bool out_of_order_ = false;  // a user of a result may now come before it
};

}  // namespace

absl::Status FuseSoftmax(PlanGraph& plan, const PlanEnvironment& env) {
  return SoftmaxFusion(plan, env).Run();
}

}  // namespace weir
