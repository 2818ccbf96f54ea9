#include <algorithm>

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/optimizers.h"

namespace weir {

namespace {

// A write to a variable: the op, and the value of the variable after the write. The value is a read
// for a resource variable and the op's own output for a reference variable.
struct VariableWrite {
  Operation op;
  Output value;
};

VariableWrite AssignTo(const Variable& v, const Output& value, bool use_locking) {
  if (!v.is_resource()) {
    const Output ref = AddOp("Assign", {v.handle(), value}, {{"use_locking", use_locking}});
    return {ref, ref};
  }
  const Operation op = AssignVariableOp(v.handle(), value, /*validate_shape=*/true);
  if (!op.valid()) return {};
  const ControlDependencies after(v.graph(), {op});
  return {op, ReadVariableOp(v.handle(), v.dtype())};
}

VariableWrite SubtractFrom(const Variable& v, const Output& value, bool use_locking) {
  if (!v.is_resource()) {
    const Output ref = AddOp("AssignSub", {v.handle(), value}, {{"use_locking", use_locking}});
    return {ref, ref};
  }
  const Operation op = AssignSubVariableOp(v.handle(), value);
  if (!op.valid()) return {};
  const ControlDependencies after(v.graph(), {op});
  return {op, ReadVariableOp(v.handle(), v.dtype())};
}

// Adds `rows` to the rows of `v` at `indices` and returns the whole variable after the update.
Output ScatterAddTo(const Variable& v, const Output& indices, const Output& rows,
                    bool use_locking) {
  if (!v.is_resource()) return Scatter("Add", v.handle(), indices, rows, use_locking);
  const Operation op = ResourceScatter("Add", v.handle(), indices, rows);
  if (!op.valid()) return {};
  const ControlDependencies after(v.graph(), {op});
  return v.value();
}

}  // namespace

Adam::Adam(TensorArg learning_rate, AdamOptions options)
    : Optimizer(options.name, options.use_locking),
      learning_rate_(std::move(learning_rate)),
      options_(options) {}

void Adam::CreateSlots(const Variables& variables) {
  const Variable& first =
      *std::min_element(variables.begin(), variables.end(),
                        [](const Variable& a, const Variable& b) { return a.name() < b.name(); });
  MakeNonSlot("beta1_power", options_.beta1, first);
  MakeNonSlot("beta2_power", options_.beta2, first);
  for (const Variable& v : variables) {
    MakeConstantSlot(v, "m", name(), 0);
    MakeConstantSlot(v, "v", name(), 0);
  }
}

void Adam::Prepare(Graph& graph) {
  learning_rate_tensor_ = learning_rate_.In(graph, DT_INVALID, "learning_rate");
  beta1_ = options_.beta1.In(graph, DT_INVALID, "beta1");
  beta2_ = options_.beta2.In(graph, DT_INVALID, "beta2");
  epsilon_ = options_.epsilon.In(graph, DT_INVALID, "epsilon");
}

// Returns the power in the dtype of `variable`. When a cast is needed, the read of a resource
// variable is named after the Cast.
Output Adam::Power(const Variable& variable, absl::string_view name) const {
  const Variable power = GetNonSlot(variable.graph(), name);
  if (power.dtype() == variable.dtype()) return power.value();
  const NameScope scope(variable.graph(), "Cast");
  return Cast(power.value(), variable.dtype(), scope.name());
}

Operation Adam::ApplyDense(const Output& grad, const Variable& variable) {
  Graph& graph = variable.graph();
  const DataType type = variable.dtype();
  const absl::string_view op = variable.is_resource() ? "ResourceApplyAdam" : "ApplyAdam";
  Outputs powers;
  if (GetNonSlot(graph, "beta1_power").dtype() != type) {
    powers = {Power(variable, "beta1_power"), Power(variable, "beta2_power")};
  }
  Outputs others;
  for (const Output& t : {learning_rate_tensor_, beta1_, beta2_, epsilon_})
    others.push_back(Cast(t, type));
  const NameScope scope(graph, op);
  if (powers.empty()) powers = {Power(variable, "beta1_power"), Power(variable, "beta2_power")};
  NodeBuilder builder(graph, op);
  builder.Name(scope.name()).Input(variable.handle());
  for (const char* slot : {"m", "v"}) builder.Input(GetSlot(variable, slot).handle());
  for (const Outputs& list : {powers, others, Outputs{grad}}) {
    for (const Output& value : list) builder.Input(value);
  }
  return builder.Attr("use_locking", use_locking()).Build();
}

// Assigns slot = slot * decay, then adds `rows`.
Output Adam::DecayAndScatter(const Variable& slot, const Output& decay, const Output& rows,
                             const Output& indices) const {
  const VariableWrite decayed = AssignTo(slot, slot.value() * decay, use_locking());
  if (!decayed.op.valid()) return {};
  const ControlDependencies after(slot.graph(), {decayed.op});
  return ScatterAddTo(slot, indices, rows, use_locking());
}

Operation Adam::ApplySparse(const IndexedSlices& grad, const Variable& variable) {
  const DataType type = variable.dtype();
  const Variable power1 = GetNonSlot(variable.graph(), "beta1_power");
  const bool cast = power1.dtype() != type;
  const Output cast1 = cast ? Power(variable, "beta1_power") : Output();
  const Output cast2 = cast ? Power(variable, "beta2_power") : Output();
  const Output rate = Cast(learning_rate_tensor_, type);
  const Output beta1 = Cast(beta1_, type), beta2 = Cast(beta2_, type),
               epsilon = Cast(epsilon_, type);
  const Output root = Sqrt(1 - (cast ? cast2 : Power(variable, "beta2_power")));
  const Output scaled_rate = rate * root;
  const Output step = scaled_rate / (1 - (cast ? cast1 : Power(variable, "beta1_power")));

  const Output m_rows = grad.values * (1 - beta1);
  const Output m = DecayAndScatter(GetSlot(variable, "m"), beta1, m_rows, grad.indices);
  const Output squares = grad.values * grad.values;
  const Output v_rows = squares * (1 - beta2);
  const Output v = DecayAndScatter(GetSlot(variable, "v"), beta2, v_rows, grad.indices);
  const Output v_root = Sqrt(v);
  const Output numerator = step * m;
  const VariableWrite update =
      SubtractFrom(variable, numerator / (v_root + epsilon), use_locking());
  return GroupOps(variable.graph(), {update.op, m, v});
}

Operation Adam::Finish(Graph& graph, const std::vector<Operation>& updates,
                       absl::string_view name) {
  std::vector<Operation> all = updates;
  {
    const ControlDependencies after(graph, updates);
    const Variable power1 = GetNonSlot(graph, "beta1_power"),
                   power2 = GetNonSlot(graph, "beta2_power");
    const ColocateWith place(graph, power1.handle().node);
    all.push_back(AssignTo(power1, power1.value() * beta1_, use_locking()).op);
    all.push_back(AssignTo(power2, power2.value() * beta2_, use_locking()).op);
  }
  return GroupOps(graph, all, name);
}

AdamW::AdamW(TensorArg weight_decay, AdamWOptions options)
    : Adam(options.learning_rate, {.beta1 = options.beta1,
                                   .beta2 = options.beta2,
                                   .epsilon = options.epsilon,
                                   .use_locking = options.use_locking,
                                   .name = options.name}),
      weight_decay_(std::move(weight_decay)),
      decay_var_list_(options.decay_var_list) {}

bool AdamW::Decays(const Variable& variable) const {
  return !decay_var_list_ || std::find(decay_var_list_->begin(), decay_var_list_->end(),
                                       variable) != decay_var_list_->end();
}

void AdamW::Prepare(Graph& graph) {
  weight_decay_tensor_ = weight_decay_.In(graph, DT_INVALID, "weight_decay");
  Adam::Prepare(graph);
}

Operation AdamW::ApplyDense(const Output& grad, const Variable& variable) {
  if (!Decays(variable)) return Adam::ApplyDense(grad, variable);
  const Output decay = Cast(weight_decay_tensor_, variable.dtype()) * variable.value();
  const ControlDependencies after(variable.graph(),
                                  {SubtractFrom(variable, decay, use_locking()).op});
  return Adam::ApplyDense(grad, variable);
}

Operation AdamW::ApplySparse(const IndexedSlices& grad, const Variable& variable) {
  if (!Decays(variable)) return Adam::ApplySparse(grad, variable);
  const Output rows = variable.SparseRead(grad.indices);
  const Output decay = Cast(weight_decay_tensor_, variable.dtype()) * rows;
  const Output scattered = ScatterAddTo(variable, grad.indices, Negative(decay), use_locking());
  const ControlDependencies after(variable.graph(), {scattered});
  return Adam::ApplySparse(grad, variable);
}

}  // namespace weir
