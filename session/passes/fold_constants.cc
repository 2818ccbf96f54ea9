#include "weir/session/passes/fold_constants.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "weir/session/plan/make_kernels.h"

namespace weir {

namespace {

constexpr size_t kMaxFoldedBytes = size_t{10} << 20;
// Size from which broadcast values are not folded, and how many times as large as their inputs they
// have to be.
constexpr size_t kLargeBytes = size_t{64} << 10, kSpreadFactor = 16;

}  // namespace

ConstantFolder::ConstantFolder(PlanGraph& plan, const PlanEnvironment& env)
    : plan_(plan), env_(env) {
  step_.pool = &env.pool;
  step_.resources = &env.resources;
}

bool ConstantFolder::FoldShape(const PlanGraph& plan, PlanNode& n) {
  const std::string& op = n.node->op_name();
  const bool shape = op == "Shape" || op == "ShapeN";
  if (!shape && op != "Size" && op != "Rank") return false;
  std::vector<Tensor> results;
  for (const Shape& s : InputShapesOf(plan, n)) {
    if (op == "Rank" ? !s.has_rank() : !s.IsFullyDefined()) return false;
    std::vector<int64_t> values =
        shape ? std::vector<int64_t>(s.dims().begin(), s.dims().end())
              : std::vector<int64_t>{op == "Rank" ? s.rank() : s.num_elements()};
    const Shape result = shape ? Shape({s.rank()}) : Shape();
    if (n.node->output_type(0) == DT_INT64) {
      results.push_back(Tensor::Of<int64_t>(result, absl::MakeConstSpan(values)));
      continue;
    }
    for (const int64_t v : values) {
      if (v > INT32_MAX) return false;
    }
    const std::vector<int32_t> narrow(values.begin(), values.end());
    results.push_back(Tensor::Of<int32_t>(result, absl::MakeConstSpan(narrow)));
  }
  n.constants = std::move(results);
  return true;
}

// Computed on first use, since few plans need it.
bool ConstantFolder::IsAssigned(int i) {
  if (!assigned_.empty()) return assigned_[i];
  std::vector<bool> elsewhere(plan_.nodes.size(), false);
  const auto use = [&](const PlanValue& v) {
    if (v.node >= 0) elsewhere[v.node] = true;
  };
  for (const PlanValue& v : plan_.fetches) use(v);
  for (const PlanGraph::Carry& c : plan_.carries) use(c.next);
  for (size_t i = plan_.nodes.size(); i-- > 0;) {
    const PlanNode& n = plan_.nodes[i];
    const bool assigns = n.def != nullptr && !n.def->writes.empty();
    if (!assigns && (elsewhere[i] || n.node->op().stateful())) absl::c_for_each(n.inputs, use);
  }
  elsewhere.flip();
  assigned_ = std::move(elsewhere);
  return assigned_[i];
}

// Returns the value if it is known, else null. Values of controlled constants are known if
// `controlled` contains them.
const Tensor* ConstantFolder::KnownValue(const PlanValue& v,
                                         const ControlledConstants* controlled) const {
  const PlanNode& n = plan_.nodes[v.node];
  if (n.is_constant(v.output)) return &n.constants[v.output];
  if (controlled == nullptr) return nullptr;
  const auto found = controlled->find(v.node);
  return found == controlled->end() ? nullptr : &found->second[v.output];
}

bool ConstantFolder::CanFold(const PlanNode& n, const ControlledConstants* controlled) {
  if (n.may_be_dead || !n.controls.empty() || n.node->op().stateful()) return false;
  if (n.traits().effect == Effect::kMutates) return false;
  if (plan_.IsLoopVariable(n) || plan_.EndsLoop(IndexOf(n))) return false;
  if (n.inputs.empty() || n.node->num_outputs() == 0 || !n.def->writes.empty()) return false;
  size_t bytes = 0, given = 0;
  for (const PlanValue& v : n.inputs) {
    const Tensor* const known = KnownValue(v, controlled);
    if (known == nullptr || known->dtype() == DT_RESOURCE) return false;
    given += known->num_bytes();
  }
  if (CallsFunctions(n.node->op())) return false;
  for (int i = 0; i < n.node->num_outputs(); ++i) {
    const DataType type = n.node->output_type(i);
    if (IsRef(type) || type == DT_RESOURCE || type == DT_VARIANT) return false;
    const int64_t count = n.shapes[i].num_elements();
    if (count < 0) return false;
    bytes += static_cast<size_t>(count) * ElementSize(type);
  }
  const bool is_spread = bytes > kLargeBytes && bytes / kSpreadFactor > given;
  return bytes <= kMaxFoldedBytes && !(is_spread && IsAssigned(IndexOf(n)));
}

// Returns the kernel that computes the node on the CPU; none if there is no such kernel, or it is
// asynchronous.
std::optional<Kernel> ConstantFolder::HostKernel(PlanNode& n,
                                                 absl::Span<const Shape> inputs) const {
  if (!n.device->is_host()) {
    const KernelDef* const def = env_.kernels.Find(*n.node, kCpu);
    if (def == nullptr) return std::nullopt;
    absl::StatusOr<Kernel> kernel = MakeHostKernel(*def, *n.node, inputs, env_);
    if (!kernel.ok() || !kernel->run()) return std::nullopt;
    return *std::move(kernel);
  }
  if (!n.has_kernel()) {
    absl::StatusOr<Kernel> kernel = MakeKernel(plan_, n, env_);
    if (!kernel.ok()) return std::nullopt;
    n.kernel = *std::move(kernel);
  }
  return n.kernel.run() ? std::optional(n.kernel) : std::nullopt;
}

std::vector<Tensor> ConstantFolder::Fold(PlanNode& n, const ControlledConstants* controlled) {
  const int num_inputs = static_cast<int>(n.inputs.size()), num_outputs = n.node->num_outputs();
  std::vector<Tensor> slots(num_inputs + num_outputs);
  std::vector<int32_t> indices(slots.size());
  std::vector<uint8_t> dead(slots.size(), 0);
  std::vector<Shape> input_shapes;
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i);
  for (int i = 0; i < num_inputs; ++i) {
    slots[i] = *KnownValue(n.inputs[i], controlled);
    input_shapes.push_back(slots[i].shape());
  }
  const std::optional<Kernel> kernel = HostKernel(n, input_shapes);
  if (!kernel) return {};
  const KernelContext::Binding binding{.slots = slots.data(),
                                       .dead = dead.data(),
                                       .inputs = indices.data(),
                                       .outputs = indices.data() + num_inputs,
                                       .num_inputs = num_inputs,
                                       .num_outputs = num_outputs};
  KernelContext context(*n.node, *env_.devices[0], step_, binding);
  try {
    if (!kernel->run()(context).ok()) return {};
  } catch (const StepCancelled&) {
    throw;  // the cached plan would lack the value
  } catch (...) {
    return {};  // the step reports the error
  }
  for (int i = 0; i < num_outputs; ++i) {
    if (!slots[num_inputs + i].initialized() || dead[num_inputs + i] != 0) return {};
  }
  return {slots.begin() + num_inputs, slots.end()};
}

ControlledConstants FindControlledConstants(PlanGraph& plan, const PlanEnvironment& env) {
  ConstantFolder folder(plan, env);
  const bool folds = env.enabled("constant_folding");
  ControlledConstants controlled;
  for (int i = 0; i < static_cast<int>(plan.nodes.size()); ++i) {
    PlanNode& n = plan.nodes[i];
    if (n.kind != PlanNode::Kind::kOp || n.may_be_dead || n.is_constant(0)) continue;
    if (n.loop >= 0 && !plan.loops[n.loop].is_structured()) continue;
    if (n.kernel.is_constant()) {
      controlled[i] = {n.kernel.constant()};
    } else if (folds && !controlled.empty() && folder.CanFold(n, &controlled)) {
      std::vector<Tensor> values = folder.Fold(n, &controlled);
      if (!values.empty()) controlled[i] = std::move(values);
    }
  }
  return controlled;
}

}  // namespace weir
