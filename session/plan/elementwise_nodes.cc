#include "weir/session/plan/elementwise_nodes.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace weir {

namespace {

// Inputs of an AddN, which becomes one op fewer.
constexpr size_t kMaxTerms = 8;

}  // namespace

// BiasAdd adds a vector to the last dimension, as AddV2 does, and AddN adds term by term.
absl::string_view ElementwiseNodes::FusedOpOf(const PlanNode& n) {
  const std::string& op = n.node->op_name();
  const bool is_sum =
      (op == "BiasAdd" && n.node->attr_or<std::string>("data_format", "NHWC") == "NHWC") ||
      op == "AddN";
  return is_sum ? absl::string_view("AddV2") : absl::string_view(op);
}

const MaskedNode* ElementwiseNodes::FindMasked(int id) const {
  const auto it = masked_.find(id);
  return it == masked_.end() ? nullptr : &it->second;
}

size_t ElementwiseNodes::NumFusedOps(int id) const {
  if (const MaskedNode* const m = FindMasked(id)) return m->chosen && m->other ? 4 : 2;
  return std::max<size_t>(plan_.nodes[id].inputs.size(), 2) - 1;
}

absl::InlinedVector<PlanValue, 3> ElementwiseNodes::InputsOf(int id) const {
  const MaskedNode* const m = FindMasked(id);
  if (m == nullptr) return plan_.nodes[id].inputs;
  absl::InlinedVector<PlanValue, 3> inputs = {m->x, m->y};
  if (m->chosen) inputs.push_back(*m->chosen);
  if (m->other) inputs.push_back(*m->other);
  return inputs;
}

std::string ElementwiseNodes::FusedMaskOp(const PlanNode& comparison) {
  return absl::StrCat("_Mask", comparison.node->op_name());
}

std::optional<FusableOp> ElementwiseNodes::FusableOpOf(const PlanNode& n) const {
  const absl::string_view op = FusedOpOf(n);
  const DataType type = n.node->output_type(0);
  const size_t arguments = n.Is("AddN") ? 2 : n.inputs.size();
  const auto [it, is_new] = fusable_ops_.try_emplace({op.data(), arguments, type});
  if (!is_new) return it->second;
  const ElementwiseLoop* const user = env_.kernels.FindElementwise(op, type, arguments);
  if (user == nullptr) {
    it->second = FindFusableOp(op, arguments, type);
  } else if (n.def->elementwise) {  // else a step of a built-in op that a user has replaced
    it->second = FusableOp{arguments == 1, user->attr, user->cost_ns};
  }
  return it->second;
}

bool ElementwiseNodes::IsReduction(int id) const {
  const PlanNode& n = plan_.nodes[id];
  if (n.inputs.size() != 2 || !IsFusable(n) || n.node->num_outputs() != 1 || !n.controls.empty()) {
    return false;
  }
  const PlanValue& x = n.inputs[0];
  const Tensor* const axes = ConstantOf(n.inputs[1]);
  return axes != nullptr && !plan_.nodes[n.inputs[1].node].may_be_dead && x.output == 0 &&
         ShapeOf(x).IsFullyDefined() && plan_.nodes[x.node].type(0) == n.node->output_type(0) &&
         IsFusableReduction(n.node->op_name(), n.node->output_type(0), ShapeOf(x), *axes);
}

bool ElementwiseNodes::IsElementwise(int id) {
  const PlanNode& n = plan_.nodes[id];
  const bool is_users = IsReplaceable(n) && n.def->elementwise.has_value();
  if (!(is_users || IsFusable(n)) || n.node->num_outputs() != 1 || !n.controls.empty())
    return false;
  const DataType type = n.node->output_type(0);
  const Shape& shape = n.shapes[0];
  if (!shape.IsFullyDefined() || shape.num_elements() == 0) return false;
  if (n.Is("Cast", "Select", "SelectV2")) return IsMasked(id);
  for (const PlanValue& v : n.inputs) {
    if (plan_.nodes[v.node].type(v.output) != type || !ShapeOf(v).IsFullyDefined()) return false;
  }
  // BiasAdd and AddN accept fewer shapes than AddV2 does.
  if (n.node->op_name() == "BiasAdd" &&
      (shape.rank() < 2 || ShapeOf(n.inputs[1]) != Shape({shape.dim(-1)}))) {
    return false;
  }
  if (n.node->op_name() == "AddN" &&
      (n.inputs.size() < 2 || n.inputs.size() > kMaxTerms ||
       absl::c_any_of(n.inputs, [&](const PlanValue& v) { return ShapeOf(v) != shape; }))) {
    return false;
  }
  const std::optional<FusableOp> op = FusableOpOf(n);
  if (!op || n.inputs.size() == 1) return op.has_value();
  const absl::StatusOr<Shape> both = BroadcastShapes(ShapeOf(n.inputs[0]), ShapeOf(n.inputs[1]));
  return both.ok() && *both == shape &&
         (op->broadcasts || ShapeOf(n.inputs[0]) == ShapeOf(n.inputs[1]));
}

// Checks whether the node is a Cast or Select by a comparison; if so, adds it to masked_.
bool ElementwiseNodes::IsMasked(int id) {
  const PlanNode& n = plan_.nodes[id];
  const DataType type = n.node->output_type(0);
  const PlanNode& comparison = plan_.nodes[n.inputs[0].node];
  if (!CanDisappear(comparison, n) || comparison.inputs.size() != 2 ||
      comparison.type(0) != DT_BOOL || comparison.node->input_type(0) != type ||
      !FindFusableOp(FusedMaskOp(comparison), 2, type)) {
    return false;
  }
  MaskedNode m = {.comparison = n.inputs[0].node,
                  .x = comparison.inputs[0],
                  .y = comparison.inputs[1],
                  .is_cast = n.Is("Cast")};
  if (!m.is_cast) {
    const auto take = [&](const PlanValue& v, std::optional<PlanValue>* to) {
      IsZero(v) ? m.zeros.push_back(v.node) : static_cast<void>(*to = v);
    };
    take(n.inputs[1], &m.chosen);
    take(n.inputs[2], &m.other);
    if (!m.chosen && !m.other) return false;
  }
  const Shape& shape = n.shapes[0];
  // A Select that does not broadcast treats a vector of conditions as selecting rows.
  if (!n.Is("SelectV2") && comparison.shapes[0] != shape) return false;
  masked_.insert_or_assign(id, m);
  if (BroadcastOf(InputsOf(id)) == shape && plan_.nodes[m.comparison].shapes[0].IsFullyDefined()) {
    compared_.insert(m.comparison);
    return true;
  }
  masked_.erase(id);
  return false;
}

Shape ElementwiseNodes::BroadcastOf(absl::Span<const PlanValue> values) const {
  Shape all;
  for (const PlanValue& v : values) {
    absl::StatusOr<Shape> both = BroadcastShapes(all, ShapeOf(v));
    all = both.ok() ? *std::move(both) : Shape::UnknownRank();
  }
  return all;
}

bool ElementwiseNodes::IsBroadcast(int id, const Shape& shape, const PlanNode& user) const {
  const PlanNode& n = plan_.nodes[id];
  if (n.traits().repeated_input < 0 || !CanDisappear(n, user)) return false;
  // A constant is alive in a branch that is not taken.
  if (n.may_be_dead && !plan_.nodes[BroadcastInput(n).node].may_be_dead) return false;
  const Shape& from = ShapeOf(BroadcastInput(n));
  if (n.shapes[0] != shape || !from.IsFullyDefined() || from.num_elements() == 0) return false;
  const absl::StatusOr<Shape> both = BroadcastShapes(from, shape);
  return both.ok() && *both == shape;
}

}  // namespace weir
