#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/fusion.h"
#include "weir/session/plan/make_kernels.h"
#include "weir/session/plan/value_replacement.h"

// Fuses attention into one node, _FusedAttention (kernels/nn/fused_attention.cc), which keeps the
// scores in the caches. The pass looks for
//
//   softmax(query key' * scale + mask) value
//
// in batched products: the scale, a scalar constant, may be a division, and may be missing, as may
// the mask; a reshape that keeps the rows may surround the softmax, as in older graphs. Where
// query, key, value or the result are transposed between [batch, length, heads, size] and [batch,
// heads, length, size], or the key to [batch, heads, size, length], the kernel reads or writes the
// untransposed tensor, and a transpose that nothing else uses disappears.
//
// No other node may use the scores or weights: in training the gradient does, and the small ops
// stay. Results differ by rounding.
namespace weir {

namespace {

// A matched attention: its nodes, except transposes of its arguments.
struct AttentionMatch {
  std::set<int> nodes;
  int scores = -1, context = -1;  // the products
  float scale = 1;
  bool is_scaled = false;
  std::optional<PlanValue> mask = {};
};

// An argument, and whether it is [batch, length, heads, size].
struct AttentionArgument {
  PlanValue value;
  bool transposed = false;
  int transpose = -1;  // the node that is bypassed
};

class AttentionFusion : public Fusion {
 public:
  using Fusion::Fusion;

  void Run() {
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      const PlanNode& n = plan_.nodes[id];
      if (n.removed || n.kind != PlanNode::Kind::kOp) continue;
      if (n.traits().rows == RowRule::kSoftmax && IsFusableFloat(n)) Match(static_cast<int>(id));
    }
  }

 private:
  bool IsFusableFloat(const PlanNode& n) const {
    return IsFusable(n) && n.node->output_type(0) == DT_FLOAT;
  }
  // BatchMatMul, BatchMatMulV2 or BatchMatMulV3 of floats, with untransposed first factor.
  bool IsProduct(const PlanNode& n) const {
    return IsFusableFloat(n) && absl::StartsWith(n.node->op_name(), "BatchMatMul") &&
           !n.node->attr<bool>("adj_x") && plan_.TypeOf(n.inputs[0]) == DT_FLOAT &&
           plan_.TypeOf(n.inputs[1]) == DT_FLOAT;
  }
  // True for an elementwise op of two floats for which `neutral` is neutral on both sides: Add for
  // 0, Mul for 1.
  static bool HasNeutral(const PlanNode& n, double neutral) {
    const std::optional<NeutralElement>& element = n.traits().neutral;
    return n.traits().elementwise && n.inputs.size() == 2 && element && element->value == neutral &&
           element->either_side;
  }
  bool IsScalar(const PlanValue& v) const {
    const Tensor* const t = ConstantOf(v);
    return t != nullptr && t->num_elements() == 1 && t->dtype() == DT_FLOAT &&
           std::isfinite(*t->data<float>());
  }
  // True if rows of the last dimension are the same.
  bool HasSameRows(const PlanValue& a, const PlanValue& b) const {
    return ShapeOf(a).rank() > 0 && ShapeOf(b).rank() > 0 &&
           ShapeOf(a).dim(-1) == ShapeOf(b).dim(-1);
  }

  // Adds the nodes that compute the logits `v` to the match, from the product on.
  bool MatchLogits(const PlanValue& v, AttentionMatch* m) const {
    const PlanNode& n = plan_.nodes[v.node];
    if (v.output != 0 || !IsFusableFloat(n)) return false;
    m->nodes.insert(v.node);
    if (IsProduct(n)) {
      m->scores = v.node;
      return true;
    }
    if (n.Is("RealDiv")) {
      if (m->is_scaled || !IsScalar(n.inputs[1])) return false;
      return MatchScaled(n, 0, 1 / *ConstantOf(n.inputs[1])->data<float>(), m);
    }
    for (const int i : {0, 1}) {
      if (HasNeutral(n, 1)) {
        if (m->is_scaled || !IsScalar(n.inputs[1 - i])) continue;
        return MatchScaled(n, i, *ConstantOf(n.inputs[1 - i])->data<float>(), m);
      }
      if (!HasNeutral(n, 0) || m->mask || m->is_scaled || ShapeOf(n.inputs[i]) != ShapeOf(v))
        continue;
      AttentionMatch sum = *m;
      sum.mask = n.inputs[1 - i];
      if (!MatchLogits(n.inputs[i], &sum)) continue;
      *m = std::move(sum);
      return true;
    }
    return false;
  }
  // Input i of n is scaled.
  bool MatchScaled(const PlanNode& n, int i, float scale, AttentionMatch* m) const {
    m->is_scaled = true;
    m->scale = scale;
    return std::isfinite(scale) && ShapeOf(n.inputs[i]) == n.shapes[0] &&
           MatchLogits(n.inputs[i], m);
  }

  // The product that multiplies the weights, which the softmax returns, by the values; -1 if they
  // have other uses.
  int FindContext(int softmax, std::set<int>* nodes) {
    int id = softmax, user = uses().OnlyUser(id);
    while (user >= 0 && IsFusable(plan_.nodes[user]) &&
           plan_.nodes[user].traits().movement == Movement::kReshape &&
           HasSameRows({id, 0}, {user, 0})) {
      nodes->insert(user);
      id = user;
      user = uses().OnlyUser(id);
    }
    const bool multiplies = user >= 0 && IsProduct(plan_.nodes[user]) &&
                            plan_.nodes[user].inputs[0] == PlanValue{id, 0} &&
                            !plan_.nodes[user].node->attr<bool>("adj_y");
    return multiplies ? user : -1;
  }

  void Match(int softmax) {
    AttentionMatch m = {.nodes = {softmax}};
    const PlanValue logits = plan_.nodes[softmax].inputs[0];
    const PlanValue stripped = {StripReshapes(logits, &m.nodes), 0};
    if (!HasSameRows(logits, stripped) || !MatchLogits(stripped, &m)) return;
    m.context = FindContext(softmax, &m.nodes);
    if (m.context < 0) return;
    m.nodes.insert(m.context);
    const PlanNode &scores = plan_.nodes[m.scores], &context = plan_.nodes[m.context];
    if (!AreShapesSupported(scores, context, m)) return;
    const std::optional<AttentionArgument> key = KeyOf(scores, context);
    if (!key) return;
    Fuse(m, {ArgumentOf(scores.inputs[0], context), *key, ArgumentOf(context.inputs[1], context)});
  }

  // Batch and heads do not broadcast, and neither does the mask along the keys.
  bool AreShapesSupported(const PlanNode& scores, const PlanNode& context,
                          const AttentionMatch& m) const {
    const Shape& all = scores.shapes[0];
    if (!all.IsFullyDefined() || all.rank() < 2 || all.rank() > 4 || all.num_elements() == 0 ||
        ShapeOf(context.inputs[0]) != all)
      return false;
    for (const PlanValue& v : {scores.inputs[0], scores.inputs[1], context.inputs[1]}) {
      const Shape& shape = ShapeOf(v);
      if (!shape.IsFullyDefined() || shape.rank() != all.rank() || shape.num_elements() == 0 ||
          shape.Sub(0, all.rank() - 2) != all.Sub(0, all.rank() - 2))
        return false;
    }
    if (!m.mask) return true;
    const Shape& mask = ShapeOf(*m.mask);
    return mask.IsFullyDefined() && mask.rank() > 0 && mask.rank() <= all.rank() &&
           mask.dim(-1) == all.dim(-1);
  }

  // Returns the permutation of a transpose that may disappear with `result`; empty for other nodes.
  std::vector<int64_t> Permutation(const PlanNode& n, const PlanNode& result) const {
    if (!n.Is("Transpose") || !CanDisappear(n, result)) return {};
    return PermutationOf(plan_, n).value_or(std::vector<int64_t>());
  }

  AttentionArgument ArgumentOf(const PlanValue& v, const PlanNode& result) const {
    const PlanNode& n = plan_.nodes[v.node];
    if (Permutation(n, result) == std::vector<int64_t>{0, 2, 1, 3})
      return {n.inputs[0], true, v.node};
    return {v};
  }
  // nullopt if the key is [batch, heads, size, length], and not by a transpose.
  std::optional<AttentionArgument> KeyOf(const PlanNode& scores, const PlanNode& result) const {
    const PlanValue& v = scores.inputs[1];
    if (scores.node->attr<bool>("adj_y")) return ArgumentOf(v, result);
    const PlanNode& n = plan_.nodes[v.node];
    std::vector<int64_t> axes = Permutation(n, result);
    if (axes == std::vector<int64_t>{0, 2, 3, 1})
      return AttentionArgument{n.inputs[0], true, v.node};
    if (axes.size() < 2) return std::nullopt;
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    if (!absl::c_is_sorted(axes)) return std::nullopt;
    return AttentionArgument{n.inputs[0], false, v.node};
  }

  void Fuse(AttentionMatch m, const std::vector<AttentionArgument>& arguments) {
    int result = m.context;
    const int user = uses().OnlyUser(result);
    if (user >= 0 &&
        Permutation(plan_.nodes[user], plan_.nodes[user]) == std::vector<int64_t>{0, 2, 1, 3}) {
      result = user;
      m.nodes.insert(user);
    }
    PlanNode& n = plan_.nodes[result];
    const auto can_disappear = [&](int id) { return CanDisappear(plan_.nodes[id], n); };
    if (!absl::c_all_of(m.nodes, can_disappear) || !AreUsedOnlyBy(m.nodes, result)) return;
    const Node* const node = MakeNode(n.node->name(), m, arguments, result != m.context);
    if (node == nullptr) return;
    std::vector<PlanValue> inputs;
    for (const AttentionArgument& argument : arguments) {
      inputs.push_back(argument.value);
      std::set<int> with = m.nodes;
      if (argument.transpose >= 0 && with.insert(argument.transpose).second &&
          AreUsedOnlyBy(with, result))
        m.nodes = std::move(with);
    }
    if (m.mask) inputs.push_back(*m.mask);
    if (!Replace(result, *node, inputs, m.nodes)) return;
    n.cost_ns = EstimateCost(plan_, n, env_);
    for (size_t i = 0; i < inputs.size(); ++i) {
      uses().Add(inputs[i].node,
                 {PlanUse::Kind::kInput, result, inputs[i].output, static_cast<int>(i)});
    }
  }

  const Node* MakeNode(const std::string& name, const AttentionMatch& m,
                       const std::vector<AttentionArgument>& arguments, bool transpose_output) {
    const Output placeholder = MakePlaceholder(DT_FLOAT);
    NodeBuilder builder(internal_graph(), "_FusedAttention");
    builder.Name(name)
        .Input(placeholder)
        .Input(placeholder)
        .Input(placeholder)
        .InputList(Outputs(m.mask ? 1 : 0, placeholder))
        .Attr("T", DT_FLOAT)
        .Attr("scale", m.scale)
        .Attr("transpose_query", arguments[0].transposed)
        .Attr("transpose_key", arguments[1].transposed)
        .Attr("transpose_value", arguments[2].transposed)
        .Attr("transpose_output", transpose_output);
    const Node* const node = builder.Build();
    return internal_graph().TakeStatus().ok() ? node : nullptr;
  }
};

}  // namespace

void FuseAttention(PlanGraph& plan, const PlanEnvironment& env) {
  AttentionFusion(plan, env).Run();
}

}  // namespace weir
