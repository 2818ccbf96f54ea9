#include <algorithm>

#include "weir/c_api.h"
#include "weir/capi/extensions/optimizer_text.h"
#include "weir/capi/extensions/options.h"
#include "weir/capi/extensions/variable_handles.h"
#include "weir/core/tensor/mutex.h"
#include "weir/ops/math/clip.h"

// Optimizers: training steps.

struct weir_optimizer {
  TF_Graph* graph;
  // Used by one thread at a time: while the graph changes.
  std::unique_ptr<weir::Optimizer> optimizer;
  std::optional<weir::TensorArg> clip_norm;
};

namespace weir::capi {

namespace {

absl::StatusOr<Variable> GlobalStepOf(TF_Operation* operation, Graph& graph) {
  if (operation == nullptr) return Variable();
  return VariableOf(operation, graph);
}

// Applies the gradients, clipped if that is requested.
Operation Apply(weir_optimizer* optimizer, GradsAndVariables gradients,
                const Variable& global_step) {
  if (optimizer->clip_norm) {
    Grads grads;
    for (const GradAndVariable& each : gradients) grads.push_back(each.grad);
    const ClippedGrads clipped = ClipByGlobalNorm(grads, *optimizer->clip_norm);
    if (clipped.grads.size() != gradients.size()) return {};
    for (size_t i = 0; i < gradients.size(); ++i) gradients[i].grad = clipped.grads[i];
  }
  return optimizer->optimizer->ApplyGradients(gradients, {.global_step = global_step});
}

absl::StatusOr<Operation> Minimize(weir_optimizer* optimizer, Graph& graph, const TF_Output& loss,
                                   TF_Operation* global_step, TF_Operation* const* variables,
                                   int num_variables) {
  WEIR_ASSIGN_OR_RETURN(const Output minimized, OutputOf(loss, graph));
  WEIR_ASSIGN_OR_RETURN(const Variable step, GlobalStepOf(global_step, graph));
  WEIR_ASSIGN_OR_RETURN(const auto list, VariablesOf(variables, num_variables, graph));
  const GradsAndVariables gradients =
      optimizer->optimizer->ComputeGradients(minimized, {.var_list = list});
  WEIR_RETURN_IF_ERROR(graph.TakeStatus());
  return Apply(optimizer, gradients, step);
}

absl::StatusOr<Operation> ApplyGiven(weir_optimizer* optimizer, Graph& graph,
                                     const TF_Output* gradients, TF_Operation* const* variables,
                                     int num_variables, TF_Operation* global_step) {
  WEIR_ASSIGN_OR_RETURN(const Variable step, GlobalStepOf(global_step, graph));
  WEIR_ASSIGN_OR_RETURN(const auto list, VariablesOf(variables, num_variables, graph));
  if (!list || list->empty()) return InvalidArgument("no variables");
  if (gradients == nullptr) return InvalidArgument("the gradients are null");
  GradsAndVariables pairs;
  for (int i = 0; i < num_variables; ++i) {
    Output gradient;
    if (gradients[i].oper != nullptr) {
      WEIR_ASSIGN_OR_RETURN(gradient, OutputOf(gradients[i], graph));
    }
    pairs.push_back({Grad(gradient), (*list)[i]});
  }
  return Apply(optimizer, pairs, step);
}

// Calls a function that adds a training step to the optimizer's graph; null after an error.
template <class F>
TF_Operation* AddStep(weir_optimizer* optimizer, TF_Status* status, F add) {
  Operation step;
  const absl::Status changed = optimizer->graph->Change([&](Graph& graph) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(step, add(graph));
    return absl::OkStatus();
  });
  SetStatus(status, changed);
  return changed.ok() ? OperationOf(step.node) : nullptr;
}

absl::StatusOr<Variable> SlotOf(weir_optimizer* optimizer, TF_Operation* variable, const char* name,
                                Graph& graph) {
  WEIR_ASSIGN_OR_RETURN(const Variable of, VariableOf(variable, graph));
  Variable slot = optimizer->optimizer->GetSlot(of, name);
  if (!slot.valid()) return NotFound("variable ", of.name(), " has no slot '", name, "'");
  return slot;
}

}  // namespace

}  // namespace weir::capi

using weir::Graph;
using weir::capi::HaveAll;
using weir::capi::SetStatus;

weir_optimizer* weir_new_optimizer(TF_Graph* graph, const char* optimizer,
                                   const char* hyperparameters, TF_Status* status) {
  if (!HaveAll("weir_new_optimizer", {graph, optimizer}, status)) return nullptr;
  const weir::MutexLock lock(graph->mutex);
  auto made = weir::capi::MakeOptimizer(optimizer, hyperparameters, *graph->graph);
  SetStatus(status, made.status());
  if (!made.ok()) return nullptr;
  return new weir_optimizer{graph, std::move(made->optimizer), std::move(made->clip_norm)};
}

void weir_delete_optimizer(weir_optimizer* optimizer) { delete optimizer; }

TF_Operation* weir_optimizer_minimize(weir_optimizer* optimizer, const TF_Output* loss,
                                      TF_Operation* global_step, TF_Operation* const* variables,
                                      int num_variables, TF_Status* status) {
  if (!HaveAll("weir_optimizer_minimize", {optimizer, loss}, status)) return nullptr;
  return weir::capi::AddStep(optimizer, status, [&](Graph& graph) {
    return weir::capi::Minimize(optimizer, graph, *loss, global_step, variables, num_variables);
  });
}

TF_Operation* weir_optimizer_apply_gradients(weir_optimizer* optimizer, const TF_Output* gradients,
                                             TF_Operation* const* variables, int num_variables,
                                             TF_Operation* global_step, TF_Status* status) {
  if (!HaveAll("weir_optimizer_apply_gradients", {optimizer}, status)) return nullptr;
  return weir::capi::AddStep(optimizer, status, [&](Graph& graph) {
    return weir::capi::ApplyGiven(optimizer, graph, gradients, variables, num_variables,
                                  global_step);
  });
}

TF_Operation* weir_optimizer_slot(weir_optimizer* optimizer, TF_Operation* variable,
                                  const char* slot, TF_Status* status) {
  if (!HaveAll("weir_optimizer_slot", {optimizer, variable, slot}, status)) return nullptr;
  const weir::MutexLock lock(optimizer->graph->mutex);
  const auto found = weir::capi::SlotOf(optimizer, variable, slot, *optimizer->graph->graph);
  SetStatus(status, found.status());
  return found.ok() ? weir::capi::HandleOf(*found) : nullptr;
}

void weir_optimizer_slot_names(weir_optimizer* optimizer, TF_Buffer* names, TF_Status* status) {
  if (!HaveAll("weir_optimizer_slot_names", {optimizer, names}, status)) return;
  const weir::MutexLock lock(optimizer->graph->mutex);
  weir::capi::SetList(optimizer->optimizer->GetSlotNames(), names);
  SetStatus(status, absl::OkStatus());
}
