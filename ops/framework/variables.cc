#include "weir/ops/framework/variables.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/partitioned_variable.h"
#include "weir/ops/framework/variable_store.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/boolean_mask.h"

namespace weir {

namespace {

Variables DefaultList(const Graph& graph, const std::optional<Variables>& given) {
  if (given) return FlattenParts(*given);
  Variables all = GlobalVariables(graph);
  for (Variable& v : LocalVariables(graph)) all.push_back(std::move(v));
  return all;
}

}  // namespace

Variables VariablesIn(const Graph& graph, absl::string_view collection, absl::string_view scope) {
  Variables variables;
  for (const CollectionItem& item : graph.collection(collection, scope)) {
    const auto* object = std::get_if<std::shared_ptr<CollectionObject>>(&item);
    if (object == nullptr) continue;
    if (auto info = std::dynamic_pointer_cast<VariableInfo>(*object))
      variables.emplace_back(std::move(info));
  }
  return variables;
}

Variables GlobalVariables(const Graph& graph, absl::string_view scope) {
  return VariablesIn(graph, collections::kGlobalVariables, scope);
}
Variables LocalVariables(const Graph& graph, absl::string_view scope) {
  return VariablesIn(graph, collections::kLocalVariables, scope);
}
Variables TrainableVariables(const Graph& graph, absl::string_view scope) {
  return VariablesIn(graph, collections::kTrainableVariables, scope);
}
Variables ModelVariables(const Graph& graph, absl::string_view scope) {
  return VariablesIn(graph, collections::kModelVariables, scope);
}
Variables MovingAverageVariables(const Graph& graph, absl::string_view scope) {
  return VariablesIn(graph, collections::kMovingAverageVariables, scope);
}
Variables MetricVariables(const Graph& graph, absl::string_view scope) {
  return VariablesIn(graph, collections::kMetricVariables, scope);
}

Variable FindVariable(Graph& graph, const Node* storage) {
  const auto& all = VariableStore::Of(graph).by_storage;
  const auto it = all.find(storage);
  return it == all.end() ? Variable() : Variable(it->second);
}

Operation VariablesInitializer(Graph& graph, const Variables& variables, absl::string_view name) {
  std::vector<Operation> initializers;
  for (const Variable& v : FlattenParts(variables)) {
    if (v.valid()) initializers.push_back(v.initializer());
  }
  return GroupOps(graph, initializers, name);
}

Operation GlobalVariablesInitializer(Graph& graph) {
  return VariablesInitializer(graph, GlobalVariables(graph));
}
Operation LocalVariablesInitializer(Graph& graph) {
  return VariablesInitializer(graph, LocalVariables(graph));
}

Output IsVariableInitialized(const Variable& variable) { return variable.is_initialized(); }

Output ReportUninitializedVariables(Graph& graph, const std::optional<Variables>& variables,
                                    absl::string_view name) {
  const Variables list = DefaultList(graph, variables);
  const NameScope scope(graph, name);
  std::vector<std::string> names;
  Outputs initialized;
  for (const Variable& v : list) {
    names.push_back(v.op_name());
    initialized.push_back(v.is_initialized());
  }
  const DeviceScope cpu(graph, "/CPU:0");
  if (names.empty()) return Const(graph, Tensor(DT_STRING, Shape({0})));
  const Output missing = AddOp("LogicalNot", {Stack(initialized)});
  if (!missing.valid()) return {};
  return BooleanMask(Const(graph, names), missing, "boolean_mask");
}

// Fetches the rank of each variable: the value is irrelevant, but the variable must have one.
Operation AssertVariablesInitialized(Graph& graph, const std::optional<Variables>& variables) {
  Outputs ranks;
  for (const Variable& v : DefaultList(graph, variables)) {
    const PlaceWith place(graph, v.handle().node);
    const NameScope scope(graph, "Rank");
    ranks.push_back(AddOp("Rank", {v.value()}, {}, scope.name()));
  }
  if (ranks.empty()) return {};
  return ranks.size() == 1 ? ranks[0] : Stack(ranks);
}

Variable CreateGlobalStep(Graph& graph) {
  if (GetGlobalStep(graph).valid()) {
    graph.Fail(AlreadyExists("\"global_step\" already exists."));
    return {};
  }
  const NameScope root(graph, "");
  return GetVariable(graph, collections::kGlobalStep, Shape(),
                     {.initializer = Zeros(),
                      .dtype = DT_INT64,
                      .trainable = false,
                      .collections = {{collections::kGlobalVariables, collections::kGlobalStep}},
                      .aggregation = VariableAggregation::kOnlyFirstReplica});
}

// Returns the one in the collection, else the variable of that name.
Variable GetGlobalStep(Graph& graph) {
  const Variables listed = VariablesIn(graph, collections::kGlobalStep);
  if (listed.size() == 1) return listed[0];
  if (!listed.empty()) {
    graph.Fail(InvalidArgument("Multiple tensors in global_step collection: ", listed[0].name(),
                               ", ", listed[1].name()));
    return {};
  }
  return FindVariable(graph, graph.FindNode(collections::kGlobalStep));
}

Variable GetOrCreateGlobalStep(Graph& graph) {
  const Variable step = GetGlobalStep(graph);
  return step.valid() ? step : CreateGlobalStep(graph);
}

}  // namespace weir
