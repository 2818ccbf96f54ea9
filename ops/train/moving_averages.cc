#include "weir/ops/train/moving_averages.h"

#include <algorithm>
#include <set>

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/partitioned_variable.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/slots.h"

namespace weir {

namespace {

// Returns a name that the variable scope does not contain yet: "biased", "biased_1", ...
std::string UnusedVariableName(Graph& graph, const VariableScope& scope, absl::string_view name) {
  std::set<std::string> taken;
  for (const Variable& v : GlobalVariables(graph)) taken.insert(v.op_name());
  std::string unused(name);
  for (int i = 1; taken.contains(absl::StrCat(scope.name(), "/", unused)); ++i)
    unused = absl::StrCat(name, "_", i);
  return unused;
}

// A write, and the value after the write.
struct WriteResult {
  Operation op;
  Output value;
};

// Calls `write`, and returns the write and the value after it. For a resource variable the write is
// built without a read, and the read is built separately. (The parts of a partitioned variable are
// concatenated in the write.)
template <class Write>
WriteResult WriteAndRead(const Variable& v, const Write& write) {
  const bool separate_read = v.is_resource() && !v.is_partitioned();
  const Output op = write(WriteOptions{.read_value = !separate_read});
  if (!op.valid() || !separate_read) return {op, op};
  const ControlDependencies after(v.graph(), {op});
  return {op, v.value()};
}

// Adam's bias correction: the plain average `biased` starts at zero and is divided by 1 -
// decay^steps.
WriteResult UnbiasedAverage(const Variable& v, const std::function<Output()>& value,
                            const Output& rest, const std::string& name) {
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
    biased = GetVariable(graph, UnusedVariableName(graph, scope, "biased"), v.shape(), options);
    steps = GetVariable(graph, UnusedVariableName(graph, scope, "local_step"), Shape(), options);
  }
  if (!biased.valid() || !steps.valid()) return {};
  const Output average = biased.AssignSub((biased - value()) * rest);
  const Output count = steps.AssignAdd(1);
  const Output correction = 1 - Pow(1.0 - rest, count);
  const Output corrected = average / correction;
  return WriteAndRead(v, [&](WriteOptions options) {
    options.name = name;
    return v.Assign(corrected, options);
  });
}

WriteResult MovingAverage(const Variable& variable, const std::function<Output()>& value,
                          const TensorArg& decay, bool zero_debias, absl::string_view name) {
  if (!variable.valid()) return {};
  Graph& graph = variable.graph();
  const NameScope scope(graph, name.empty() ? "AssignMovingAvg" : name);
  Output rest;
  if (decay.is_literal()) {
    const absl::StatusOr<Tensor> number = decay.literal().Make(DT_DOUBLE);
    if (!number.ok()) return graph.Fail(number.status()), WriteResult();
    rest = ConstOf(graph, variable.dtype(), 1 - number->scalar<double>(), "decay");
  } else {
    rest = Cast(1.0 - decay.output(), variable.dtype());
  }
  if (zero_debias) return UnbiasedAverage(variable, value, rest, scope.name());
  const Output delta = (variable - value()) * rest;
  return WriteAndRead(variable, [&](WriteOptions options) {
    if (!variable.is_resource()) options.name = scope.name();
    return variable.AssignSub(delta, options);
  });
}

}  // namespace

Output AssignMovingAverage(const Variable& variable, Output value, const TensorArg& decay,
                           bool zero_debias, absl::string_view name) {
  if (!value.valid()) return {};
  return MovingAverage(
             variable, [&value] { return value; }, decay, zero_debias, name)
      .value;
}

namespace {

// The initial value of a variable's average.
Output InitialAverage(const Variable& v) {
  const DeviceScope device(v.graph(), v.device());
  return v.initialized_value();
}

}  // namespace

ExponentialMovingAverage::ExponentialMovingAverage(TensorArg decay,
                                                   ExponentialMovingAverageOptions options)
    : decay_(std::move(decay)), options_(std::move(options)) {}

Operation ExponentialMovingAverage::Apply(Graph& graph) { return Apply(TrainableVariables(graph)); }

Operation ExponentialMovingAverage::Apply(const Variables& given) {
  const Variables variables = FlattenParts(given);
  std::vector<std::pair<Variable, Followed>> items;
  for (const Variable& v : variables) {
    if (!v.valid()) return {};
    if (!IsFloating(v.dtype())) {
      v.graph().Fail(InvalidArgument("The variables must be half, float, or double: ", v.name()));
      return {};
    }
    Variable& average = averages_[{v.handle().node, v.handle().index}];
    if (!average.valid()) {
      const ClearControlDependencies at_start(v.graph());
      average = CreateSlot(v, options_.name, InitialAverage(v));
      const std::shared_ptr<CollectionObject> item = v.info();
      v.graph().AddToCollection(collections::kMovingAverageVariables, item);
    }
    items.emplace_back(average, [v] { return Output(v); });
  }
  return items.empty() ? Operation() : Update(variables[0].graph(), items, false);
}

Operation ExponentialMovingAverage::ApplyToTensors(const Outputs& tensors) {
  std::vector<std::pair<Variable, Followed>> items;
  for (const Output& t : tensors) {
    if (!t.valid()) return {};
    if (!IsFloating(t.dtype())) {
      t.graph().Fail(InvalidArgument("The variables must be half, float, or double: ", t.name()));
      return {};
    }
    Variable& average = averages_[{t.node, t.index}];
    if (!average.valid()) {
      Graph& graph = t.graph();
      const ClearControlDependencies at_start(graph);
      const VariableScope scope(graph,
                                {.default_name = absl::StrCat(t.node->name(), "/", options_.name)});
      average = GetVariable(graph, "", t.shape(),
                            {.initializer = Zeros(), .dtype = t.dtype(), .trainable = false});
    }
    items.emplace_back(average, [t] { return t; });
  }
  return items.empty() ? Operation() : Update(tensors[0].graph(), items, options_.zero_debias);
}

Output ExponentialMovingAverage::Decay(Graph& graph) const {
  const Output decay = decay_.In(graph, DT_FLOAT, "decay");
  if (!options_.num_updates) return decay;
  Output updates;
  {
    const NameScope scope(graph, "num_updates");
    const auto* variable = std::get_if<Variable>(&*options_.num_updates);
    const Output given =
        variable != nullptr ? variable->value()
                            : std::get<TensorArg>(*options_.num_updates).In(graph, DT_INVALID, "x");
    updates = Cast(given, DT_FLOAT, scope.name());
  }
  const Output updates_plus_one = 1.0 + updates;  // built first to get its name
  return Minimum(decay, updates_plus_one / (10.0 + updates));
}

Operation ExponentialMovingAverage::Update(Graph& graph,
                                           const std::vector<std::pair<Variable, Followed>>& items,
                                           bool zero_debias) {
  const NameScope scope(graph, options_.name);
  const Output decay = Decay(graph);
  std::vector<Operation> updates;
  for (const auto& [average, value] : items)
    updates.push_back(MovingAverage(average, value, decay, zero_debias, {}).op);
  return GroupOps(graph, updates, scope.name());
}

Variable ExponentialMovingAverage::Average(const Variable& variable) const {
  return variable.valid() ? Average(variable.handle()) : Variable();
}

Variable ExponentialMovingAverage::Average(const Output& tensor) const {
  const auto it = averages_.find({tensor.node, tensor.index});
  return it == averages_.end() ? Variable() : it->second;
}

std::string ExponentialMovingAverage::AverageName(const Variable& variable) const {
  if (!variable.valid()) return {};
  const Variable average = Average(variable);
  if (average.valid()) return average.op_name();
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
  for (const Variable& v : with_average) {
    if (v.valid()) names[AverageName(v)] = v;
  }
  for (const Variable& v : GlobalVariables(graph)) {
    const bool has_average =
        std::find(with_average.begin(), with_average.end(), v) != with_average.end();
    if (!has_average) names.try_emplace(v.op_name(), v);
  }
  return names;
}

}  // namespace weir
