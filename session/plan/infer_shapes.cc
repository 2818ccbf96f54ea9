#include "weir/session/plan/infer_shapes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "weir/core/tensor/exception.h"
#include "weir/session/plan/make_kernels.h"

namespace weir {

const Tensor* PlanValues::value(const Node&, int i) {
  const PlanValue& v = current_->inputs[i];
  const PlanNode& n = plan_.nodes[v.node];
  if (n.is_constant(v.output)) return &n.constants[v.output];
  // A constant with control edges, as Python adds to a loop's constants, or one that may be dead.
  return n.is_const() && n.kernel.is_constant() ? &n.kernel.constant() : nullptr;
}

Shape PlanValues::value_as_shape(const Node& node, int i) {
  const Tensor* t = value(node, i);
  if (t == nullptr)
    return trusts_graph_ ? GraphValues().value_as_shape(node, i) : Shape::UnknownRank();
  if (!IsInteger(t->dtype()) || t->num_elements() > Shape::kMaxRank) return Shape::UnknownRank();
  std::vector<int64_t> dims(t->num_elements());
  for (size_t k = 0; k < dims.size(); ++k)
    dims[k] = std::max<int64_t>(-1, t->IntAt(static_cast<int64_t>(k)));
  return Shape(dims);
}

namespace {

// The shapes in the graph are derived from values that it knows, such as the target shape of a
// Reshape. If such a value is fed instead, they may be wrong.
bool FeedsPlaceholdersOnly(const PlanGraph& plan) {
  return absl::c_all_of(plan.feeds, [&](const auto& f) {
    if (f.node < 0) return true;
    const PlanNode& feed = plan.nodes[f.node];
    const std::string& op = feed.node->op_name();
    return op == "_Arg" || absl::StartsWith(op, "Placeholder") || !IsPlain(feed.type(0));
  });
}

}  // namespace

ShapeInference::ShapeInference(PlanGraph& plan, absl::Span<const Shape> feed_shapes)
    : plan_(plan), trusts_graph_(FeedsPlaceholdersOnly(plan)), values_(plan, trusts_graph_) {
  for (size_t i = 0; i < plan.feeds.size(); ++i) {
    if (plan.feeds[i].node < 0) continue;
    PlanNode& feed = plan.nodes[plan.feeds[i].node];
    const bool is_handle = feed.type(0) == DT_RESOURCE;
    feed.shapes = {is_handle ? Shape() : feed_shapes[i]};
    if (is_handle) fed_handles_[plan.feeds[i].node].shape = feed_shapes[i];
  }
}

void ShapeInference::Begin() {
  for (const PlanGraph::Carry& c : plan_.carries) plan_.nodes[c.carry].shapes.clear();
  variable_shapes_.clear();
}

void ShapeInference::Visit(PlanNode& n) {
  if (n.kind == PlanNode::Kind::kOp) return VisitOp(n);
  if (n.kind == PlanNode::Kind::kFeed || n.kind == PlanNode::Kind::kCarry) return;
  n.shapes = {plan_.ShapeOf(n.inputs[0])};
}

// Returns true if the loop-carried values have the assumed shapes. Shapes only become less
// specific, so this terminates; after a few rounds they become entirely unknown, so that it
// terminates soon.
bool ShapeInference::AssumptionsHold(int round) {
  constexpr int kMaxRounds = 4;
  bool hold = true;
  for (const PlanGraph::Carry& c : plan_.carries) {
    Shape& assumed = plan_.nodes[c.carry].shapes[0];
    Shape common = CommonShape(assumed, plan_.nodes[c.next.node].shapes[c.next.output]);
    if (common == assumed) continue;
    assumed = round < kMaxRounds ? std::move(common) : Shape::UnknownRank();
    if (plan_.IsLoopVariable(plan_.nodes[c.carry])) variable_shapes_[c.carry] = assumed;
    hold = false;
  }
  return hold;
}

// A loop-carried value initially has the shape of the value that it is merged with.
void ShapeInference::AssumeCarriedShapes(const PlanNode& n) {
  for (const PlanValue& v : n.inputs) {
    PlanNode& carry = plan_.nodes[v.node];
    if (carry.kind != PlanNode::Kind::kCarry || !carry.shapes.empty()) continue;
    carry.shapes = {Shape::UnknownRank()};
    for (const PlanValue& other : n.inputs) {
      if (plan_.nodes[other.node].kind == PlanNode::Kind::kCarry) continue;
      carry.shapes = {plan_.nodes[other.node].shapes[other.output]};
      break;
    }
  }
}

const HandleData* ShapeInference::HandleDataOf(const PlanValue& v) const {
  const PlanNode& n = plan_.nodes[v.node];
  if (n.kind == PlanNode::Kind::kOp || n.kind == PlanNode::Kind::kCarry)
    return n.node->output_handle(v.output);
  const auto fed = fed_handles_.find(v.node);
  return fed == fed_handles_.end() ? nullptr : &fed->second;
}

void ShapeInference::VisitOp(PlanNode& n) {
  AssumeCarriedShapes(n);
  const absl::InlinedVector<Shape, 4> inputs = InputShapesOf(plan_, n);
  absl::InlinedVector<const HandleData*, 4> handles;
  for (const PlanValue& v : n.inputs) handles.push_back(HandleDataOf(v));
  n.shapes.clear();
  for (int i = 0; i < n.node->num_outputs(); ++i)
    n.shapes.push_back(trusts_graph_ ? n.node->output_shape(i) : Shape::UnknownRank());
  if (!n.node->op().shape_fn()) return;
  values_.set_current(&n);
  ShapeContext context(*n.node, inputs, handles, values_);
  const auto infer = [&] { return n.node->op().shape_fn()(context); };
  if (!CatchExceptions("The shape function", infer).ok()) return;
  for (int i = 0; i < n.node->num_outputs(); ++i) {
    absl::StatusOr<Shape> merged = n.shapes[i].MergeWith(context.outputs()[i]);
    n.shapes[i] = merged.ok() ? *std::move(merged) : context.outputs()[i];
  }
  if (const Shape* const popped = containers_.Find(IndexOf(n)); popped != nullptr) {
    Shape& shape = n.shapes[n.num_outputs() - 1];
    absl::StatusOr<Shape> merged = shape.MergeWith(*popped);
    if (merged.ok()) shape = *std::move(merged);
  }
  // The op's own shape function holds for any iteration; this is the shape of the initial value.
  if (!n.is_enter()) return;
  const auto assumed = variable_shapes_.find(IndexOf(n));
  n.shapes[0] =
      assumed == variable_shapes_.end() ? inputs[0] : CommonShape(inputs[0], assumed->second);
}

}  // namespace weir
