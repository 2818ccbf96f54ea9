#include "weir/ops/moving_averages.h"

#include <algorithm>
#include <set>

#include "weir/core/scope.h"
#include "weir/ops/array.h"
#include "weir/ops/gradient_util.h"
#include "weir/ops/math.h"
#include "weir/ops/partitioned_variable.h"
#include "weir/ops/slots.h"
#include "weir/ops/variables.h"

namespace weir {

namespace {

// A name that the variable scope has not got yet: "biased", "biased_1", ...
std::string Unused(Graph& graph, const VariableScope& scope, absl::string_view name) {
  std::set<std::string> taken;
  for (const Variable& v : GlobalVariables(graph)) taken.insert(v.op_name());
  std::string unused(name);
  for (int i = 1; taken.contains(absl::StrCat(scope.name(), "/", unused)); ++i)
    unused = absl::StrCat(name, "_", i);
  return unused;
}

// Adam's correction: the plain average `biased` starts at zero and is divided by 1 - decay^steps.
Output UnbiasedAverage(const Variable& v, Output value, const Output& rest,
                       absl::string_view name) {
  Graph& graph = v.graph();
  Variable biased, steps;
  {
    const VariableScope scope(graph, v.op_name());
    const ClearControlDependencies at_start(graph);
    const ColocateWith place(graph, v.handle().node);
    const VariableOptions options{.initializer = Zeros(),
                                  .dtype = v.dtype(),
                                  .trainable = false,
                                  .use_resource = v.is_resource()};
    biased = GetVariable(graph, Unused(graph, scope, "biased"), v.shape(), options);
    steps = GetVariable(graph, Unused(graph, scope, "local_step"), Shape(), options);
  }
  if (!biased || !steps) return {};
  const ColocateWith place(graph, v.handle().node);
  const Output average = biased.AssignSub((biased.value() - value) * rest);
  const Output count = steps.AssignAdd(1);
  const Output correction = 1 - Pow(1.0 - rest, count);
  return v.Assign(average / correction, {.name = std::string(name)});
}

}  // namespace

Output AssignMovingAverage(const Variable& variable, Output value, const TensorArg& decay,
                           bool zero_debias, absl::string_view name) {
  if (!variable || !value) return {};
  Graph& graph = variable.graph();
  const NameScope scope(graph, name.empty() ? "AssignMovingAvg" : name);
  Output rest;
  if (decay.is_literal()) {
    const absl::StatusOr<Tensor> number = decay.literal().Make(DT_DOUBLE);
    if (!number.ok()) return graph.Fail(number.status()), Output();
    rest = ConstOf(graph, variable.dtype(), 1 - number->scalar<double>(), "decay");
  } else {
    rest = Cast(1.0 - decay.output(), variable.dtype());
  }
  if (zero_debias) return UnbiasedAverage(variable, value, rest, scope.name());
  const ColocateWith place(graph, variable.handle().node);
  return variable.AssignSub((variable.value() - value) * rest, {.name = scope.name()});
}

ExponentialMovingAverage::ExponentialMovingAverage(TensorArg decay,
                                                   ExponentialMovingAverageOptions options)
    : decay_(std::move(decay)), options_(std::move(options)) {}

Operation ExponentialMovingAverage::Apply(Graph& graph) { return Apply(TrainableVariables(graph)); }

Operation ExponentialMovingAverage::Apply(const Variables& given) {
  const Variables variables = FlattenParts(given);
  std::vector<std::pair<Variable, Output>> items;
  for (const Variable& v : variables) {
    if (!v) return {};
    if (!IsFloating(v.dtype())) {
      v.graph().Fail(InvalidArgument("The variables must be half, float, or double: ", v.name()));
      return {};
    }
    Variable& average = averages_[{v.handle().node, v.handle().index}];
    if (!average) {
      const ClearControlDependencies at_start(v.graph());
      average = CreateSlot(v, options_.name, [v] { return v.initialized_value(); });
      const std::shared_ptr<CollectionObject> item = v.info();
      v.graph().AddToCollection(collections::kMovingAverageVariables, item);
    }
    items.emplace_back(average, Output());
  }
  if (items.empty()) return {};
  Graph& graph = variables[0].graph();
  const NameScope scope(graph, options_.name);
  for (size_t i = 0; i < items.size(); ++i) items[i].second = variables[i].value();
  return Update(graph, items, false);
}

Operation ExponentialMovingAverage::ApplyToTensors(const Outputs& tensors) {
  std::vector<std::pair<Variable, Output>> items;
  for (const Output& t : tensors) {
    if (!t) return {};
    if (!IsFloating(t.dtype())) {
      t.graph().Fail(InvalidArgument("The variables must be half, float, or double: ", t.name()));
      return {};
    }
    Variable& average = averages_[{t.node, t.index}];
    if (!average) {
      Graph& graph = t.graph();
      const ClearControlDependencies at_start(graph);
      const VariableScope scope(graph,
                                {.default_name = absl::StrCat(t.node->name(), "/", options_.name)});
      average = GetVariable(graph, "", t.shape(),
                            {.initializer = Zeros(), .dtype = t.dtype(), .trainable = false});
    }
    items.emplace_back(average, t);
  }
  if (items.empty()) return {};
  Graph& graph = tensors[0].graph();
  const NameScope scope(graph, options_.name);
  return Update(graph, items, options_.zero_debias);
}

Operation ExponentialMovingAverage::Update(Graph& graph,
                                           const std::vector<std::pair<Variable, Output>>& items,
                                           bool zero_debias) {
  const std::string scope = graph.name_scope();
  Output decay = decay_.In(graph, DT_FLOAT, "decay");
  if (options_.num_updates) {
    const Output given = options_.num_updates->In(graph, DT_INVALID, "num_updates");
    const Output updates = Cast(given, DT_FLOAT, "num_updates");
    const Output one_more = 1.0 + updates;  // first, for its name
    decay = Minimum(decay, one_more / (10.0 + updates));
  }
  std::vector<Operation> updates;
  for (const auto& [average, value] : items) {
    updates.push_back(AssignMovingAverage(average, value, decay, zero_debias));
  }
  return GroupOps(graph, updates, scope);
}

Variable ExponentialMovingAverage::Average(const Variable& variable) const {
  return Average(variable.handle());
}

Variable ExponentialMovingAverage::Average(const Output& tensor) const {
  const auto it = averages_.find({tensor.node, tensor.index});
  return it == averages_.end() ? Variable() : it->second;
}

std::string ExponentialMovingAverage::AverageName(const Variable& variable) const {
  const Variable average = Average(variable);
  if (average) return average.op_name();
  return variable.graph().UniqueName(absl::StrCat(variable.op_name(), "/", options_.name),
                                     /*mark=*/false);
}

std::map<std::string, Variable> ExponentialMovingAverage::VariablesToRestore(
    Graph& graph, const std::optional<Variables>& averaged) const {
  Variables with_average = averaged.value_or(TrainableVariables(graph));
  if (!averaged) {
    for (const Variable& v : MovingAverageVariables(graph)) with_average.push_back(v);
  }
  std::map<std::string, Variable> names;
  for (const Variable& v : with_average) names[AverageName(v)] = v;
  for (const Variable& v : GlobalVariables(graph)) {
    const bool has_average =
        std::find(with_average.begin(), with_average.end(), v) != with_average.end();
    if (!has_average) names.try_emplace(v.op_name(), v);
  }
  return names;
}

}  // namespace weir
