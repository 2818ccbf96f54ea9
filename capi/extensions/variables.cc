#include "weir/ops/framework/variables.h"

#include <algorithm>

#include "weir/c_api.h"
#include "weir/capi/attr_values.h"
#include "weir/capi/extensions/initializer_text.h"
#include "weir/capi/extensions/options.h"
#include "weir/capi/extensions/variable_handles.h"
#include "weir/capi/session.h"
#include "weir/ops/containers/table.h"
#include "weir/session/session.h"

// Variables: made, read, written and initialized.

namespace weir::capi {

absl::StatusOr<Variable> VariableOf(TF_Operation* operation, Graph& graph) {
  const Node* const node = NodeOf(operation);
  if (node == nullptr) return InvalidArgument("a variable is null");
  if (&node->graph() != &graph) return InvalidArgument(node->Label(), " belongs to another graph");
  Variable variable = FindVariable(graph, node);
  if (variable.valid()) return variable;
  return NotFound(node->Label(),
                  " is not a variable of the graph's collections: make it with weir_new_variable, "
                  "or import a meta graph that has it");
}

absl::StatusOr<std::optional<Variables>> VariablesOf(TF_Operation* const* operations, int count,
                                                     Graph& graph) {
  if (operations == nullptr && count == 0) return std::nullopt;
  if (operations == nullptr || count < 0)
    return InvalidArgument("no array of ", count, " variables");
  Variables variables;
  for (int i = 0; i < count; ++i) {
    WEIR_ASSIGN_OR_RETURN(variables.emplace_back(), VariableOf(operations[i], graph));
  }
  return variables;
}

TF_Operation* HandleOf(const Variable& variable) {
  const Output storage = variable.handle();
  return storage.valid() ? OperationOf(storage.node) : nullptr;
}

namespace {

// Adds a variable whose shape is that of the initial value, unless it is given.
absl::StatusOr<TF_Operation*> Make(Graph& graph, const char* name, DataType dtype,
                                   std::optional<Shape> shape, Initializer initializer,
                                   const char* options) {
  VariableOptions made{.shape = std::move(shape), .initializer = std::move(initializer)};
  made.dtype = dtype;
  bool trainable = true, use_resource = true;
  std::vector<std::string> collections = {collections::kGlobalVariables};
  OptionReader reader(options);
  reader.Read("trainable", &trainable);
  reader.Read("use_resource", &use_resource);
  reader.Read("collections", &collections);
  WEIR_RETURN_IF_ERROR(reader.Finish());
  made.trainable = trainable;
  made.use_resource = use_resource;
  made.collections = std::move(collections);
  const Variable variable = GetVariable(graph, name, std::move(made), {});
  WEIR_RETURN_IF_ERROR(graph.TakeStatus());
  return HandleOf(variable);
}

// Calls a function that returns an operation of the graph, which changes; null after an error.
template <class F>
TF_Operation* AddOperation(TF_Graph* graph, TF_Status* status, F add) {
  TF_Operation* added = nullptr;
  const absl::Status changed = graph->Change([&](Graph& to) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(added, add(to));
    return absl::OkStatus();
  });
  SetStatus(status, changed);
  return changed.ok() ? added : nullptr;
}

// Implements the functions that write to a variable.
void Write(absl::string_view function, TF_Graph* graph, TF_Operation* variable,
           const TF_Output* value, TF_Output* result, TF_Status* status,
           Output (Variable::*write)(const TensorArg&, const WriteOptions&) const) {
  if (!HaveAll(function, {graph, variable, value, result}, status)) return;
  Output written;
  const absl::Status changed = graph->Change([&](Graph& to) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const Variable written_to, VariableOf(variable, to));
    WEIR_ASSIGN_OR_RETURN(const Output input, OutputOf(*value, to));
    written = (written_to.*write)(input, {});
    return absl::OkStatus();
  });
  if (changed.ok()) *result = HandleOf(written);
  SetStatus(status, changed);
}

// The nodes that report uninitialized variables, and the names of the variables.
struct UninitializedReport {
  Output names;
  std::vector<std::string> variables;
};

// Returns the string vector with the names of the uninitialized variables.
Output ReportOf(Graph& graph) {
  std::vector<std::string> names;
  for (const Variables& list : {GlobalVariables(graph), LocalVariables(graph)}) {
    for (const Variable& variable : list) names.push_back(variable.name());
  }
  auto& report = graph.Extension<UninitializedReport>();
  if (!report.names.valid() || report.variables != names)
    report = {ReportUninitializedVariables(graph), names};
  return report.names;
}

absl::StatusOr<std::vector<std::string>> UninitializedIn(TF_Session* session) {
  Output report;
  WEIR_RETURN_IF_ERROR(session->graph->Change([&](Graph& graph) {
    report = ReportOf(graph);
    return absl::OkStatus();
  }));
  WEIR_ASSIGN_OR_RETURN(const Tensors values, session->session->Run({report}));
  const auto* const names = values[0].data<std::string>();
  return std::vector<std::string>(names, names + values[0].num_elements());
}

}  // namespace

}  // namespace weir::capi

using weir::Graph;
using weir::Variable;
using weir::Variables;
using weir::capi::AddOperation;
using weir::capi::HandleOf;
using weir::capi::HaveAll;
using weir::capi::OperationOf;
using weir::capi::SetStatus;
using weir::capi::VariableOf;

TF_Operation* weir_new_variable(TF_Graph* graph, const char* name, TF_DataType dtype,
                                const int64_t* dims, int num_dims, const char* initializer,
                                const char* options, TF_Status* status) {
  if (!HaveAll("weir_new_variable", {graph, name, initializer}, status)) return nullptr;
  return AddOperation(graph, status, [&](Graph& to) -> absl::StatusOr<TF_Operation*> {
    WEIR_ASSIGN_OR_RETURN(const weir::DataType type, weir::capi::TypeOf(dtype));
    WEIR_ASSIGN_OR_RETURN(weir::Shape shape, weir::capi::ShapeOf(dims, num_dims));
    WEIR_ASSIGN_OR_RETURN(weir::Initializer made, weir::capi::ParseInitializer(initializer));
    return weir::capi::Make(to, name, type, std::move(shape), std::move(made), options);
  });
}

TF_Operation* weir_new_variable_from_tensor(TF_Graph* graph, const char* name,
                                            const TF_Tensor* initial_value, const char* options,
                                            TF_Status* status) {
  if (!HaveAll("weir_new_variable_from_tensor", {graph, name, initial_value}, status))
    return nullptr;
  return AddOperation(graph, status, [&](Graph& to) -> absl::StatusOr<TF_Operation*> {
    WEIR_ASSIGN_OR_RETURN(const weir::Tensor value, weir::capi::CopyOf(initial_value));
    return weir::capi::Make(to, name, value.dtype(), std::nullopt, weir::Literal(value), options);
  });
}

TF_Operation* weir_new_variable_from_output(TF_Graph* graph, const char* name,
                                            const TF_Output* initial_value, const char* options,
                                            TF_Status* status) {
  if (!HaveAll("weir_new_variable_from_output", {graph, name, initial_value}, status))
    return nullptr;
  return AddOperation(graph, status, [&](Graph& to) -> absl::StatusOr<TF_Operation*> {
    WEIR_ASSIGN_OR_RETURN(const weir::Output value, weir::capi::OutputOf(*initial_value, to));
    return weir::capi::Make(to, name, weir::DT_INVALID, std::nullopt, value, options);
  });
}

int weir_variables(TF_Graph* graph, const char* collection, TF_Operation** variables,
                   int max_variables, TF_Status* status) {
  if (!HaveAll("weir_variables", {graph, collection}, status)) return -1;
  const auto room = weir::capi::ArrayOf(variables, max_variables, "variables");
  SetStatus(status, room.status());
  if (!room.ok()) return -1;
  const weir::MutexLock lock(graph->mutex);
  const Variables found = VariablesIn(*graph->graph, collection);
  for (size_t i = 0; i < std::min(room->size(), found.size()); ++i) (*room)[i] = HandleOf(found[i]);
  return static_cast<int>(found.size());
}

void weir_variable_value(TF_Graph* graph, TF_Operation* variable, TF_Output* value,
                         TF_Status* status) {
  if (!HaveAll("weir_variable_value", {graph, variable, value}, status)) return;
  weir::Output read;
  const absl::Status changed = graph->Change([&](Graph& to) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const Variable of, VariableOf(variable, to));
    read = weir::Fetch(of);
    return absl::OkStatus();
  });
  if (changed.ok()) *value = HandleOf(read);
  SetStatus(status, changed);
}

void weir_variable_assign(TF_Graph* graph, TF_Operation* variable, const TF_Output* value,
                          TF_Output* result, TF_Status* status) {
  weir::capi::Write("weir_variable_assign", graph, variable, value, result, status,
                    &Variable::Assign);
}

void weir_variable_assign_add(TF_Graph* graph, TF_Operation* variable, const TF_Output* delta,
                              TF_Output* result, TF_Status* status) {
  weir::capi::Write("weir_variable_assign_add", graph, variable, delta, result, status,
                    &Variable::AssignAdd);
}

void weir_variable_assign_sub(TF_Graph* graph, TF_Operation* variable, const TF_Output* delta,
                              TF_Output* result, TF_Status* status) {
  weir::capi::Write("weir_variable_assign_sub", graph, variable, delta, result, status,
                    &Variable::AssignSub);
}

TF_Operation* weir_variable_initializer(TF_Graph* graph, TF_Operation* variable,
                                        TF_Status* status) {
  if (!HaveAll("weir_variable_initializer", {graph, variable}, status)) return nullptr;
  return AddOperation(graph, status, [&](Graph& to) -> absl::StatusOr<TF_Operation*> {
    WEIR_ASSIGN_OR_RETURN(const Variable of, VariableOf(variable, to));
    return OperationOf(of.initializer().node);
  });
}

TF_Operation* weir_variables_initializer(TF_Graph* graph, const char* collection,
                                         TF_Status* status) {
  if (!HaveAll("weir_variables_initializer", {graph, collection}, status)) return nullptr;
  return AddOperation(graph, status, [&](Graph& to) -> absl::StatusOr<TF_Operation*> {
    return OperationOf(VariablesInitializer(to, VariablesIn(to, collection)).node);
  });
}

TF_Operation* weir_tables_initializer(TF_Graph* graph, TF_Status* status) {
  if (!HaveAll("weir_tables_initializer", {graph}, status)) return nullptr;
  return AddOperation(graph, status, [&](Graph& to) -> absl::StatusOr<TF_Operation*> {
    return OperationOf(weir::TablesInitializer(to).node);
  });
}

TF_Operation* weir_global_step(TF_Graph* graph, TF_Status* status) {
  if (!HaveAll("weir_global_step", {graph}, status)) return nullptr;
  return AddOperation(graph, status, [&](Graph& to) -> absl::StatusOr<TF_Operation*> {
    return HandleOf(weir::GetOrCreateGlobalStep(to));
  });
}

void weir_uninitialized_variables(TF_Session* session, TF_Buffer* names, TF_Status* status) {
  if (!HaveAll("weir_uninitialized_variables", {session, names}, status)) return;
  const auto list = weir::capi::UninitializedIn(session);
  if (list.ok()) weir::capi::SetList(*list, names);
  SetStatus(status, list.status());
}
