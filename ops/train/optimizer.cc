#include "weir/ops/train/optimizer.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/partitioned_variable.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/train/slots.h"

namespace weir {

namespace {

// INVALID_ARGUMENT on the graph unless this is a type that can be trained.
bool CheckTrainable(const Output& tensor) {
  if (!tensor.valid()) return false;
  if (IsFloating(tensor.dtype())) return true;
  tensor.graph().Fail(InvalidArgument("Invalid type ", DataTypeName(tensor.dtype()), " for ",
                                      tensor.name(),
                                      ", expected: half, bfloat16, float or double."));
  return false;
}

std::string Names(const GradsAndVariables& items) {
  return absl::StrJoin(items, ", ", [](std::string* out, const GradAndVariable& item) {
    *out += item.variable.ToString();
  });
}

Graph& GraphOf(const Grad& grad) {
  return (grad.is_slices() ? grad.slices().values : grad.dense()).graph();
}

bool AnyGradient(const GradsAndVariables& items) {
  return std::any_of(items.begin(), items.end(),
                     [](const GradAndVariable& item) { return !item.grad.none(); });
}

}  // namespace

Operation Optimizer::Minimize(const Output& loss, const MinimizeOptions& options) {
  if (!loss.valid()) return {};
  const GradsAndVariables items =
      ComputeGradients(loss, {.var_list = options.var_list,
                              .gate_gradients = options.gate_gradients,
                              .aggregation = options.aggregation,
                              .colocate_gradients_with_ops = options.colocate_gradients_with_ops,
                              .grad_loss = options.grad_loss});
  if (!loss.graph().status().ok()) return {};
  if (!AnyGradient(items)) {
    loss.graph().Fail(
        InvalidArgument("No gradients provided for any variable, check your graph for ops that do "
                        "not support gradients, between "
                        "variables [",
                        Names(items), "] and loss ", loss.name(), "."));
    return {};
  }
  return ApplyGradients(items, {.global_step = options.global_step, .name = options.name});
}

GradsAndVariables Optimizer::ComputeGradients(const Output& loss,
                                              const ComputeGradientsOptions& options) {
  Variables variables;
  if (options.var_list) {
    variables = FlattenParts(*options.var_list);
  } else if (loss.valid()) {
    variables = TrainableVariables(loss.graph());
  }
  GradsAndVariables items;
  for (const Variable& v : variables) items.push_back({Grad(), v});
  if (!CheckTrainable(loss)) return items;
  Graph& graph = loss.graph();
  if (variables.empty()) {
    graph.Fail(InvalidArgument("No variables to optimize: the graph has no trainable variables."));
    return {};
  }
  Grads grads = Gradients({loss}, variables,
                          {.grad_ys = options.grad_loss.none() ? Grads{} : Grads{options.grad_loss},
                           .colocate_gradients_with_ops = options.colocate_gradients_with_ops,
                           .gate_gradients = options.gate_gradients == GateGradients::kOp,
                           .aggregation = options.aggregation});
  if (options.gate_gradients == GateGradients::kGraph) grads = GateGrads(graph, grads);
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!grads[i].none() && !IsFloating(variables[i].dtype())) {
      graph.Fail(InvalidArgument("Invalid type ", DataTypeName(variables[i].dtype()), " for ",
                                 variables[i].name(),
                                 ", expected: half, bfloat16, float or double."));
      return items;
    }
    items[i].grad = grads[i];
  }
  return items;
}

Operation Optimizer::ApplyGradients(const GradsAndVariables& items,
                                    const ApplyGradientsOptions& options) {
  Variables updated;
  Graph* graph = nullptr;
  for (const GradAndVariable& item : items) {
    if (!item.variable.valid() && !item.grad.none())
      GraphOf(item.grad).Fail(
          InvalidArgument("ApplyGradients: a gradient's variable is not valid"));
    if (!HasStorage(item.variable, "ApplyGradients")) return {};
    graph = &item.variable.graph();
    if (!item.grad.none()) updated.push_back(item.variable);
  }
  if (graph == nullptr || !graph->status().ok()) return {};
  if (updated.empty()) {
    graph->Fail(InvalidArgument("No gradients provided for any variable: [", Names(items), "]."));
    return {};
  }
  {
    const ClearControlDependencies no_controls(*graph);
    CreateSlots(updated);
  }
  const NameScope scope(*graph, options.name.empty() ? name_ : options.name);
  Prepare(*graph);
  std::vector<Operation> updates;
  for (const GradAndVariable& item : items) {
    if (item.grad.none()) continue;
    const NameScope update(*graph, "update_" + item.variable.op_name());
    const ColocateWith place(*graph, item.variable.handle().node);
    updates.push_back(Update(item));
  }
  if (!graph->status().ok()) return {};
  const Operation train = options.global_step.valid()
                              ? CountStep(*graph, updates, options.global_step, scope.name())
                              : Finish(*graph, updates, scope.name());
  if (train.valid()) graph->AddToCollection(collections::kTrainOp, train);
  return train;
}

Operation Optimizer::CountStep(Graph& graph, const std::vector<Operation>& updates,
                               const Variable& global_step, absl::string_view scope) {
  const ControlDependencies after(graph, {Finish(graph, updates, "update")});
  const ColocateWith place(graph, global_step.handle().node);
  return global_step.AssignAdd(1, {.read_value = false, .name = std::string(scope)});
}

// A constrained variable is read again after the update, and is assigned the result of the
// constraint.
Operation Optimizer::Update(const GradAndVariable& item) {
  const Variable& v = item.variable;
  Graph& graph = v.graph();
  if (item.grad.is_slices()) {
    if (v.constraint()) {
      graph.Fail(
          FailedPrecondition("Cannot use a constraint function on a sparse variable: ", v.name()));
      return {};
    }
    return ApplySparseDuplicateIndices(item.grad.slices(), v);
  }
  if (!v.shape().IsCompatibleWith(item.grad.dense().shape())) {
    graph.Fail(InvalidArgument("Optimizer ", name_, ": the gradient ", item.grad.dense().name(),
                               " of shape ", item.grad.dense().shape().ToString(),
                               " does not fit variable ", v.name(), " of shape ",
                               v.shape().ToString()));
    return {};
  }
  const Operation update = ApplyDense(item.grad.dense(), v);
  if (!v.constraint() || !update.valid()) return update;
  const ControlDependencies after(graph, {update});
  const Output value = v.is_resource() ? v.value() : v.read_value();
  return v.Assign(v.constraint()(value), {.read_value = false});
}

Operation Optimizer::ApplySparseDuplicateIndices(const IndexedSlices& grad,
                                                 const Variable& variable) {
  return ApplySparse(WithoutDuplicates(grad), variable);
}

Operation Optimizer::Finish(Graph& graph, const std::vector<Operation>& updates,
                            absl::string_view name) {
  return GroupOps(graph, updates, name);
}

Variable Optimizer::GetSlot(const Variable& variable, absl::string_view slot_name) const {
  const auto named = slots_.find(slot_name);
  if (named == slots_.end()) return {};
  const auto slot = named->second.find(variable.handle().node);
  return slot == named->second.end() ? Variable() : slot->second;
}

std::vector<std::string> Optimizer::GetSlotNames() const {
  std::vector<std::string> names;
  for (const auto& [name, by_variable] : slots_) names.push_back(name);
  return names;
}

Variables Optimizer::variables(const Graph& graph) const {
  Variables all;
  for (const auto& [key, variable] : non_slots_) {
    if (key.second == &graph) all.push_back(variable);
  }
  for (const auto& [name, by_variable] : slots_) {
    for (const auto& [node, slot] : by_variable) {
      if (&node->graph() == &graph) all.push_back(slot);
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Variable& a, const Variable& b) { return a.name() < b.name(); });
  return all;
}

Variable Optimizer::MakeSlot(const Variable& variable, absl::string_view slot_name,
                             absl::string_view op_name, const Initializer& initializer) {
  Variable& slot = slots_[std::string(slot_name)][variable.handle().node];
  if (slot.valid()) return slot;
  slot = CreateSlot(variable, op_name, initializer);
  return slot;
}

Variable Optimizer::MakeConstantSlot(const Variable& variable, absl::string_view slot_name,
                                     absl::string_view op_name, double value) {
  if (variable.shape().IsFullyDefined()) {
    const Initializer initializer = value == 0 ? Zeros() : value == 1 ? Ones() : Constant(value);
    return MakeSlot(variable, slot_name, op_name, initializer);
  }
  return MakeSlot(variable, slot_name, op_name, [variable, value] {
    const Output like = variable.initialized_value();
    return Fill(ShapeTensor(like), ConstOf(variable.graph(), variable.dtype(), value));
  });
}

Variable Optimizer::MakeNonSlot(absl::string_view name, const TensorArg& initial_value,
                                const Variable& first) {
  Variable& variable = non_slots_[{std::string(name), &first.graph()}];
  if (variable.valid()) return variable;
  const ColocateWith place(first.graph(), first.handle().node);
  variable = MakeVariable(
      first.graph(), Initializer(initial_value),
      {.name = std::string(name), .trainable = false, .use_resource = first.is_resource()});
  return variable;
}

Variable Optimizer::GetNonSlot(const Graph& graph, absl::string_view name) const {
  const auto it = non_slots_.find({std::string(name), &graph});
  return it == non_slots_.end() ? Variable() : it->second;
}

}  // namespace weir
