#include "weir/session/plan/fusion.h"

#include <utility>

#include "absl/algorithm/container.h"

namespace weir {

PlanUses& Fusion::uses() {
  if (uses_.empty()) uses_ = PlanUses(plan_);
  return uses_;
}

// The kernels of subplans are in no registry.
bool Fusion::IsBuiltin(const KernelDef& def, const Node& node) const {
  return only_builtin_ ? def.make != nullptr : &def == BuiltinKernels().Find(node, kCpu);
}

bool Fusion::IsFusable(const PlanNode& n) const {
  return IsReplaceable(n) && IsBuiltin(*n.def, *n.node);
}

bool Fusion::IsReplaceable(const PlanNode& n) const {
  return n.kind == PlanNode::Kind::kOp && !n.removed && !n.def->accepts_dead &&
         n.loop == n.value_loop && n.device->is_host() && n.node->num_outputs() > 0 &&
         !n.node->op().stateful() && n.traits().effect == Effect::kByState && !n.is_constant(0);
}

bool Fusion::IsZero(const PlanValue& v) const {
  const PlanNode& n = plan_.nodes[v.node];
  if (const Tensor* const t = ConstantOf(v); t != nullptr) {
    const char* const bytes = static_cast<const char*>(t->raw());
    return !n.may_be_dead && absl::c_all_of(absl::MakeSpan(bytes, t->num_bytes()),
                                            [](char byte) { return byte == 0; });
  }
  if (!IsFusable(n) || !n.controls.empty() || n.may_be_dead) return false;
  return n.Is("ZerosLike") || (n.traits().repeated_input == 1 && IsZero(n.inputs[1]));
}

bool Fusion::CanDisappear(const PlanNode& n, const PlanNode& result) const {
  // A constant that may be dead makes its users dead, and is not an argument of the new node.
  const bool may_be_dead_alone = absl::c_any_of(n.inputs, [&](const PlanValue& v) {
    return ConstantOf(v) != nullptr && plan_.nodes[v.node].may_be_dead;
  });
  return IsFusable(n) && n.node->num_outputs() == 1 && n.controls.empty() && n.runs_with(result) &&
         !may_be_dead_alone;
}

std::optional<int> Fusion::FirstReducedAxis(const PlanNode& n, const PlanValue& x) const {
  if (n.inputs.size() != 2 || n.inputs[0] != x || !ShapeOf(x).has_rank()) return std::nullopt;
  const Tensor* const axes = ConstantOf(n.inputs[1]);
  const int rank = ShapeOf(x).rank();
  if (axes == nullptr || axes->num_elements() == 0 || axes->num_elements() > rank)
    return std::nullopt;
  const int first = rank - static_cast<int>(axes->num_elements());
  std::set<int64_t> reduced;
  for (int64_t i = 0; i < axes->num_elements(); ++i) {
    const int64_t axis = axes->IntAt(i) < 0 ? axes->IntAt(i) + rank : axes->IntAt(i);
    if (axis < first || axis >= rank || !reduced.insert(axis).second) return std::nullopt;
  }
  return first;
}

int Fusion::StripReshapes(const PlanValue& v, std::set<int>* passed) const {
  const auto is_reshape = [](const PlanNode& n) {
    return n.is_identity() || n.traits().movement == Movement::kReshape;
  };
  int id = v.node;
  const auto is_constant = [&](const PlanValue& shape) { return ConstantOf(shape) != nullptr; };
  while (IsFusable(plan_.nodes[id]) && is_reshape(plan_.nodes[id]) &&
         absl::c_all_of(absl::MakeSpan(plan_.nodes[id].inputs).subspan(1), is_constant)) {
    passed->insert(id);
    id = plan_.nodes[id].inputs[0].node;
  }
  return id;
}

bool Fusion::AreUsedOnlyBy(const std::set<int>& nodes, int result) {
  return absl::c_all_of(nodes, [&](int node) {
    return node == result || (uses().HasOnlyInputUses(node) &&
                              absl::c_all_of(uses().Of(node), [&](const PlanUse& use) {
                                return nodes.contains(use.user);
                              }));
  });
}

void Fusion::RedirectUses(const PlanValue& value, const PlanValue& result) {
  plan_.nodes[result.node].shapes.push_back(ShapeOf(value));
  for (const PlanUse& use : uses().Of(value.node))
    absl::c_replace(plan_.nodes[use.user].inputs, value, result);
}

Graph& Fusion::internal_graph() {
  if (plan_.internal_graph == nullptr)
    plan_.internal_graph = std::make_shared<Graph>(env_.graph.ops());
  return *plan_.internal_graph;
}

Output Fusion::MakePlaceholder(DataType type) {
  Output& placeholder = placeholders_[type];
  if (!placeholder.valid())
    placeholder = NodeBuilder(internal_graph(), "Placeholder")
                      .Name("fused/argument")
                      .Attr("dtype", type)
                      .BuildOutput();
  return placeholder;
}

Output Fusion::MakeVariablePlaceholder(DataType type) {
  Output& placeholder = placeholders_[MakeRef(type)];
  if (!placeholder.valid()) {
    placeholder = NodeBuilder(internal_graph(), "VariableV2")
                      .Name("fused/variable")
                      .Attr("dtype", type)
                      .Attr("shape", Shape::UnknownRank())
                      .BuildOutput();
  }
  return placeholder;
}

Node* Fusion::MakeConst(absl::string_view name, const Tensor& value) {
  return NodeBuilder(internal_graph(), "Const")
      .Name(name)
      .Attr("value", value)
      .Attr("dtype", value.dtype())
      .Build();
}

PlanNode Fusion::Make(const PlanNode& like, const Node& node, int loop,
                      absl::InlinedVector<PlanValue, 3> inputs) const {
  PlanNode n;
  n.node = &node;
  n.device = like.device;
  n.def = env_.kernels.Find(node, kCpu);
  n.inputs = std::move(inputs);
  n.loop = n.value_loop = loop;
  return n;
}

PlanValue Fusion::AddConstant(const Node& constant, const Tensor& value) {
  PlanNode n;
  n.node = &constant;
  n.device = env_.devices[0].get();
  n.def = env_.kernels.Find(constant, kCpu);
  n.shapes = {value.shape()};
  n.constants = {value};
  return {plan_.Insert(std::move(n)), 0};
}

bool Fusion::Replace(int result, const Node& node, absl::Span<const PlanValue> inputs) {
  const KernelDef* const def = env_.kernels.Find(node, kCpu);
  if (def == nullptr) return false;
  PlanNode& n = plan_.nodes[result];
  n.node = &node;
  n.def = def;
  n.inputs.assign(inputs.begin(), inputs.end());
  n.kernel = Kernel();
  return true;
}

bool HasOnlyDims(const Shape& shape, const Shape& x, int first, int last) {
  if (!shape.IsFullyDefined() || !x.IsFullyDefined() || shape.rank() > x.rank()) return false;
  const int missing = x.rank() - shape.rank();
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t extent = i < missing ? 1 : shape.dim(i - missing);
    if (extent != (first <= i && i < last ? x.dim(i) : 1)) return false;
  }
  return true;
}

}  // namespace weir
