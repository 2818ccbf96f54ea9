#include "weir/ops/train/optimizers.h"

#include <algorithm>

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/training.h"

namespace weir {

namespace {

// Returns null if there is no such rule.
const UpdateRule* FindRule(absl::string_view name) {
  for (const UpdateRule& rule : UpdateRules()) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

// Records INVALID_ARGUMENT in the graph unless `ok`.
void Require(Graph& graph, bool ok, absl::string_view name, double value,
             absl::string_view requirement) {
  if (!ok) graph.Fail(InvalidArgument(name, " must be ", requirement, ": ", value));
}

// Initializes a slot with a constant that is created beside it rather than under its name.
Initializer FillInitializer(const Variable& variable, double value) {
  const ColocateWith place(variable.graph(), variable.handle().node);
  if (!variable.shape().IsFullyDefined()) {
    return Fill(ShapeTensor(variable.initialized_value()),
                ConstOf(variable.graph(), variable.dtype(), value));
  }
  Tensor tensor(variable.dtype(), variable.shape());
  DispatchType(variable.dtype(), Floats{}, [&]<class T>() {
    for (T& x : tensor.flat<T>()) x = static_cast<T>(static_cast<float>(value));
  });
  if (variable.dtype() == DT_DOUBLE)
    std::fill_n(tensor.data<double>(), tensor.num_elements(), value);
  return Initializer(Const(variable.graph(), std::move(tensor)));
}

}  // namespace

RuleOptimizer::RuleOptimizer(std::string name, std::string rule,
                             std::vector<Hyperparameter> hyperparameters,
                             std::vector<SlotSpec> slots, bool use_locking, bool use_nesterov)
    : Optimizer(std::move(name), use_locking),
      rule_(std::move(rule)),
      hyperparameters_(std::move(hyperparameters)),
      slots_(std::move(slots)),
      use_nesterov_(use_nesterov) {}

void RuleOptimizer::CreateSlots(const Variables& variables) {
  for (const Variable& v : variables) {
    for (const SlotSpec& slot : slots_) MakeConstantSlot(v, slot.name, name(), slot.initial);
  }
}

void RuleOptimizer::Prepare(Graph& graph) {
  tensors_.clear();
  for (const Hyperparameter& h : hyperparameters_) {
    if (!h.name.empty()) tensors_[h.argument] = h.value.In(graph, DT_INVALID, h.name);
  }
}

Output RuleOptimizer::Get(absl::string_view argument, const Variable& variable) const {
  if (const auto it = tensors_.find(argument); it != tensors_.end())
    return Cast(it->second, variable.dtype());
  for (const Hyperparameter& h : hyperparameters_) {
    if (h.argument != argument) continue;
    const NameScope scope(variable.graph(), "Cast");
    return h.value.In(variable.graph(), variable.dtype(), "x");
  }
  return Output();
}

Operation RuleOptimizer::Apply(const Output& grad, const Output* indices,
                               const Variable& variable) {
  const UpdateRule* const found = FindRule(rule_);
  if (found == nullptr) {
    variable.graph().Fail(InvalidArgument("Optimizer ", name(), ": unknown update rule '", rule_,
                                          "'; UpdateRules() lists the valid names"));
    return {};
  }
  const UpdateRule& rule = *found;
  NodeBuilder builder(variable.graph(),
                      absl::StrCat(variable.is_resource() ? "Resource" : "",
                                   indices != nullptr ? "Sparse" : "", "Apply", rule_));
  builder.Input(variable.handle());
  for (const absl::string_view argument : rule.slots) {
    const auto slot = std::find_if(slots_.begin(), slots_.end(),
                                   [&](const SlotSpec& s) { return s.argument == argument; });
    if (slot == slots_.end()) {
      variable.graph().Fail(InvalidArgument("Optimizer ", name(), ": rule ", rule_,
                                            " requires a slot for ", argument));
      return {};
    }
    builder.Input(GetSlot(variable, slot->name).handle());
  }
  const Output step = GlobalStep(variable);
  for (const absl::string_view input : rule.inputs) {
    if (IsGradientArg(input)) {
      builder.Input(grad);
      if (indices != nullptr) builder.Input(*indices);
    } else {
      builder.Input(input == "global_step" ? step : Get(input, variable));
    }
  }
  builder.Attr("use_locking", use_locking());
  if (use_nesterov_) builder.Attr("use_nesterov", true);
  return builder.Build();
}

Operation RuleOptimizer::ApplyDense(const Output& grad, const Variable& variable) {
  return Apply(grad, nullptr, variable);
}

Operation RuleOptimizer::ApplySparse(const IndexedSlices& grad, const Variable& variable) {
  return Apply(grad.values, &grad.indices, variable);
}

GradientDescent::GradientDescent(TensorArg learning_rate, GradientDescentOptions options)
    : RuleOptimizer(options.name, "GradientDescent",
                    {{"learning_rate", "alpha", std::move(learning_rate)}}, {},
                    options.use_locking) {}

Operation GradientDescent::ApplySparseDuplicateIndices(const IndexedSlices& grad,
                                                       const Variable& variable) {
  if (variable.is_resource()) {
    const Output minus = Negative(grad.values);
    return ResourceScatter("Add", variable.handle(), grad.indices, minus * Get("alpha", variable));
  }
  const Output delta = grad.values * Get("alpha", variable);
  return Scatter("Sub", variable.handle(), grad.indices, delta, use_locking());
}

Momentum::Momentum(TensorArg learning_rate, TensorArg momentum, MomentumOptions options)
    : RuleOptimizer(options.name, "Momentum",
                    {{"learning_rate", "lr", std::move(learning_rate)},
                     {"momentum", "momentum", std::move(momentum)}},
                    {{"momentum", "accum"}}, options.use_locking, options.use_nesterov) {}

Adagrad::Adagrad(TensorArg learning_rate, AdagradOptions options)
    : RuleOptimizer(options.name, "Adagrad", {{"learning_rate", "lr", std::move(learning_rate)}},
                    {{"accumulator", "accum"}}, options.use_locking),
      initial_accumulator_value_(options.initial_accumulator_value) {}

void Adagrad::CreateSlots(const Variables& variables) {
  Require(variables[0].graph(), initial_accumulator_value_ > 0, "initial_accumulator_value",
          initial_accumulator_value_, "positive");
  for (const Variable& v : variables) {
    if (v.shape().IsFullyDefined()) {
      MakeSlot(v, "accumulator", name(), Constant(initial_accumulator_value_));
    } else {
      MakeConstantSlot(v, "accumulator", name(), initial_accumulator_value_);
    }
  }
}

Adadelta::Adadelta(AdadeltaOptions options)
    : RuleOptimizer(options.name, "Adadelta",
                    {{"lr", "lr", options.learning_rate},
                     {"rho", "rho", options.rho},
                     {"epsilon", "epsilon", options.epsilon}},
                    {{"accum", "accum"}, {"accum_update", "accum_update"}}, options.use_locking) {}

namespace {

std::vector<SlotSpec> RmsSlots(bool centered) {
  std::vector<SlotSpec> slots = {{"rms", "ms", 1}};
  if (centered) slots.push_back({"mg", "mg"});
  slots.push_back({"momentum", "mom"});
  return slots;
}

}  // namespace

RMSProp::RMSProp(TensorArg learning_rate, RMSPropOptions options)
    : RuleOptimizer(options.name, options.centered ? "CenteredRMSProp" : "RMSProp",
                    {{"learning_rate", "lr", std::move(learning_rate)},
                     {"decay", "rho", options.decay},
                     {"momentum", "momentum", options.momentum},
                     {"epsilon", "epsilon", options.epsilon}},
                    RmsSlots(options.centered), options.use_locking) {}

ProximalGradientDescent::ProximalGradientDescent(TensorArg learning_rate, ProximalOptions options)
    : RuleOptimizer(options.name, "ProximalGradientDescent",
                    {{"learning_rate", "alpha", std::move(learning_rate)},
                     {"l1_regularization_strength", "l1", options.l1_regularization_strength},
                     {"l2_regularization_strength", "l2", options.l2_regularization_strength}},
                    {}, options.use_locking) {}

ProximalAdagrad::ProximalAdagrad(TensorArg learning_rate, ProximalAdagradOptions options)
    : RuleOptimizer(options.name, "ProximalAdagrad",
                    {{"learning_rate", "lr", std::move(learning_rate)},
                     {"l1_regularization_strength", "l1", options.l1_regularization_strength},
                     {"l2_regularization_strength", "l2", options.l2_regularization_strength}},
                    {{"accumulator", "accum"}}, options.use_locking),
      initial_accumulator_value_(options.initial_accumulator_value) {}

void ProximalAdagrad::CreateSlots(const Variables& variables) {
  Require(variables[0].graph(), initial_accumulator_value_ > 0, "initial_accumulator_value",
          initial_accumulator_value_, "positive");
  for (const Variable& v : variables) {
    if (!GetSlot(v, "accumulator").valid())
      MakeSlot(v, "accumulator", name(), FillInitializer(v, initial_accumulator_value_));
  }
}

AdagradDA::AdagradDA(TensorArg learning_rate, Variable global_step, AdagradDAOptions options)
    : RuleOptimizer(options.name, "AdagradDA",
                    {{"learning_rate", "lr", std::move(learning_rate)},
                     {"", "l1", options.l1_regularization_strength},
                     {"", "l2", options.l2_regularization_strength}},
                    {{"gradient_accumulator", "gradient_accumulator"},
                     {"gradient_squared_accumulator", "gradient_squared_accumulator"}},
                    options.use_locking),
      global_step_(std::move(global_step)),
      initial_gradient_squared_accumulator_value_(
          options.initial_gradient_squared_accumulator_value) {}

void AdagradDA::CreateSlots(const Variables& variables) {
  const double start = initial_gradient_squared_accumulator_value_;
  Require(variables[0].graph(), start > 0, "initial_gradient_squared_accumulator_value", start,
          "positive");
  for (const Variable& v : variables) {
    if (GetSlot(v, "gradient_accumulator").valid()) continue;
    const Initializer zero = FillInitializer(v, 0), squares = FillInitializer(v, start);
    MakeSlot(v, "gradient_accumulator", name(), zero);
    MakeSlot(v, "gradient_squared_accumulator", name(), squares);
  }
}

void AdagradDA::Prepare(Graph& graph) {
  RuleOptimizer::Prepare(graph);
  const Output rate = tensors().find("lr")->second;
  if (!rate.valid() || !global_step_.valid()) {
    graph.Fail(InvalidArgument("AdagradDA needs a global step"));
    return;
  }
  const ColocateWith place(graph, rate.node);
  Output step;
  {
    const NameScope scope(graph, "Identity");
    step = Identity(global_step_.value(), scope.name());
  }
  step_on_worker_ = step + 1;
}

Output AdagradDA::GlobalStep(const Variable& variable) const { return Identity(step_on_worker_); }

Ftrl::Ftrl(TensorArg learning_rate, FtrlOptions options)
    : RuleOptimizer(options.name,
                    options.l2_shrinkage_regularization_strength > 0 ? "FtrlV2" : "Ftrl", {},
                    {{"accum", "accum"}, {"linear", "linear"}}, options.use_locking),
      learning_rate_(std::move(learning_rate)),
      options_(std::move(options)) {}

void Ftrl::CreateSlots(const Variables& variables) {
  Graph& graph = variables[0].graph();
  const FtrlOptions& o = options_;
  Require(graph, o.initial_accumulator_value >= 0, "initial_accumulator_value",
          o.initial_accumulator_value, "positive or zero");
  Require(graph, o.learning_rate_power <= 0, "learning_rate_power", o.learning_rate_power,
          "negative or zero");
  Require(graph, o.l1_regularization_strength >= 0, "l1_regularization_strength",
          o.l1_regularization_strength, "positive or zero");
  Require(graph, o.l2_regularization_strength >= 0, "l2_regularization_strength",
          o.l2_regularization_strength, "positive or zero");
  Require(graph, o.l2_shrinkage_regularization_strength >= 0,
          "l2_shrinkage_regularization_strength", o.l2_shrinkage_regularization_strength,
          "positive or zero");
  const double start = o.initial_accumulator_value;
  const Initializer accum([start](const InitializerArgs& args) {
    return Ones(args.graph, args.shape, args.dtype) * start;
  });
  for (const Variable& v : variables) {
    const std::string& accum_name = o.accum_name.empty() ? name() : o.accum_name;
    if (v.shape().IsFullyDefined()) {
      MakeSlot(v, "accum", accum_name, accum);
    } else {
      MakeConstantSlot(v, "accum", accum_name, start);
    }
    MakeConstantSlot(v, "linear", o.linear_name.empty() ? name() : o.linear_name, 0);
  }
}

// Adds beta / (2 * learning rate) to the L2 strength. TensorFlow builds the sum even if beta is 0.
void Ftrl::Prepare(Graph& graph) {
  const Output rate = learning_rate_.In(graph, DT_INVALID, "learning_rate");
  const Output l1 =
      ConstOf(graph, DT_FLOAT, options_.l1_regularization_strength, "l1_regularization_strength");
  Output bounded;
  {
    const NameScope scope(graph, "Maximum");
    const Output x = learning_rate_.In(graph, DT_INVALID, "x");
    bounded = AddOp("Maximum", {x, ConstLike(x, 1e-36, "y")}, {}, scope.name());
  }
  const Output l2 = options_.l2_regularization_strength + options_.beta / (2.0 * bounded);
  ConstOf(graph, DT_FLOAT, options_.beta, "beta");
  const Output shrinkage = ConstOf(graph, DT_FLOAT, options_.l2_shrinkage_regularization_strength,
                                   "l2_shrinkage_regularization_strength");
  const Output power =
      ConstOf(graph, DT_FLOAT, options_.learning_rate_power, "learning_rate_power");
  set_tensors(
      {{"lr", rate}, {"l1", l1}, {"l2", l2}, {"l2_shrinkage", shrinkage}, {"lr_power", power}});
}

}  // namespace weir
