#include "weir/session/plan/make_kernels.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "weir/core/tensor/exception.h"
#include "weir/session/passes/passes.h"

namespace weir {

namespace {

// The host time to launch a kernel on a stream, however long it runs there.
constexpr double kLaunchNs = 5e3;

bool HasPlainValues(const Node& node) {
  const auto is_plain = [](DataType type) { return IsPlain(type) && !IsRef(type); };
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!is_plain(node.input_type(i))) return false;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!is_plain(node.output_type(i))) return false;
  }
  return true;
}

double CostByBytes(const PlanNode& n, absl::Span<const Shape> inputs) {
  constexpr double kNsPerByte = 0.12, kNsPerNode = 50;
  double bytes = 0;
  const auto add = [&](const Shape& shape, DataType type) {
    const int64_t count = shape.num_elements();
    if (count > 0)
      bytes += static_cast<double>(count) * static_cast<double>(ElementSize(BaseType(type)));
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    add(inputs[i], n.node->input_type(static_cast<int>(i)));
  for (int i = 0; i < n.node->num_outputs(); ++i) add(n.shapes[i], n.node->output_type(i));
  return kNsPerNode + kNsPerByte * bytes;
}

// Returns, by node, which outputs of a node with several of them are used.
std::vector<PlanGraph::Flags> UsedOutputs(PlanGraph& plan) {
  std::vector<PlanGraph::Flags> used(plan.nodes.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    if (n.kind == PlanNode::Kind::kOp && n.num_outputs() > 1)
      used[i].assign(n.num_outputs(), false);
  }
  plan.ForEachUse([&](const PlanValue& v) {
    if (v.node >= 0 && !used[v.node].empty()) used[v.node][v.output] = true;
  });
  return used;
}

}  // namespace

bool CallsFunctions(const OpSpec& op) {
  return op.is_function() || absl::c_any_of(op.attrs(), [](const AttrSpec& attr) {
           return attr.kind == AttrSpec::Kind::kFunction;
         });
}

bool HasCustomKernel(const PlanNode& n, const KernelRegistry& kernels) {
  if (&kernels == &BuiltinKernels() || n.kind != PlanNode::Kind::kOp || n.def == nullptr)
    return false;
  const auto place = n.device->place();
  return n.def == kernels.Find(*n.node, place) && n.def != BuiltinKernels().Find(*n.node, place);
}

bool HasEarlyKernel(const PlanNode& n, const KernelRegistry& kernels) {
  if (n.kind != PlanNode::Kind::kOp) return false;
  const OpSpec& op = n.node->op();
  if (n.inputs.empty() || op.stateful() || CallsFunctions(op) ||
      op.traits().effect == Effect::kMutates || !HasPlainValues(*n.node)) {
    return true;
  }
  return HasCustomKernel(n, kernels);
}

absl::InlinedVector<Shape, 4> InputShapesOf(const PlanGraph& plan, const PlanNode& n) {
  absl::InlinedVector<Shape, 4> shapes;
  for (const PlanValue& v : n.inputs) {
    const Tensor* const constant = plan.ConstantOf(v);
    shapes.push_back(constant != nullptr && IsPlain(constant->dtype()) ? constant->shape()
                                                                       : plan.ShapeOf(v));
  }
  return shapes;
}

absl::StatusOr<Kernel> MakeKernel(const PlanGraph& plan, const PlanNode& n,
                                  const PlanEnvironment& env, absl::Span<const bool> used_outputs) {
  const absl::InlinedVector<Shape, 4> shapes = InputShapesOf(plan, n);
  const PlanGraph::Flags step_invariant = plan.StepInvariantsOf(n.inputs);
  KernelInit init = env.InitFor(*n.node, *n.device, shapes, step_invariant);
  init.used_outputs = used_outputs;
  absl::StatusOr<Kernel> kernel =
      CatchExceptions("Making the kernel", [&] { return n.def->make(init); });
  if (!kernel.ok()) return Annotate(kernel.status(), n.node->Label());
  return n.device->Wrap(init, *std::move(kernel));
}

absl::StatusOr<Kernel> MakeHostKernel(const KernelDef& def, const Node& node,
                                      absl::Span<const Shape> input_shapes,
                                      const PlanEnvironment& env) {
  return def.make(env.InitFor(node, *env.devices[0], input_shapes));
}

double EstimateCost(const PlanGraph& plan, const PlanNode& n, const PlanEnvironment& env) {
  if (n.device->has_stream()) return kLaunchNs;
  const absl::InlinedVector<Shape, 4> shapes = InputShapesOf(plan, n);
  if (n.def->cost == nullptr) return CostByBytes(n, shapes);
  return n.def->cost(env.InitFor(*n.node, *n.device, shapes));
}

absl::Status MakeKernels(PlanGraph& plan, const PlanEnvironment& env) {
  const std::vector<PlanGraph::Flags> used = UsedOutputs(plan);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    PlanNode& n = plan.nodes[i];
    if (n.kind != PlanNode::Kind::kOp || !n.runs() || n.has_kernel()) continue;
    WEIR_ASSIGN_OR_RETURN(n.kernel, MakeKernel(plan, n, env, used[i]));
  }
  return absl::OkStatus();
}

}  // namespace weir
