#include "weir/capi/extensions/optimizer_text.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "weir/capi/extensions/options.h"
#include "weir/ops/train/optimizers.h"

namespace weir::capi {

namespace {

using OptimizerPtr = std::unique_ptr<Optimizer>;

// Reads the hyperparameters of one optimizer.
class Reader {
 public:
  Reader(const char* text, const Graph& graph) : options_(text), graph_(graph) {}

  // Return a number or a tensor, which must be given or has a default; a number; a truth value.
  TensorArg Needed(absl::string_view key) {
    std::optional<TensorArg> value;
    options_.Read(key, graph_, &value);
    if (!value) missing_.emplace_back(key);
    return value.value_or(0.0);
  }
  TensorArg Or(absl::string_view key, double fallback) {
    std::optional<TensorArg> value;
    options_.Read(key, graph_, &value);
    return value.value_or(fallback);
  }
  double Number(absl::string_view key, double fallback) {
    options_.Read(key, &fallback);
    return fallback;
  }
  bool Flag(absl::string_view key) {
    bool flag = false;
    options_.Read(key, &flag);
    return flag;
  }
  // Read the options that all optimizers have.
  template <class Options>
  Options Common(Options made) {
    options_.Read("name", &made.name);
    made.use_locking = Flag("use_locking");
    return made;
  }
  std::optional<TensorArg> ClipNorm() {
    std::optional<TensorArg> norm;
    options_.Read("clip_norm", graph_, &norm);
    return norm;
  }

  absl::Status Finish() const {
    WEIR_RETURN_IF_ERROR(options_.Finish());
    if (missing_.empty()) return absl::OkStatus();
    return InvalidArgument("hyperparameters without a value: ", absl::StrJoin(missing_, ", "));
  }

 private:
  OptionReader options_;
  const Graph& graph_;
  std::vector<std::string> missing_;
};

OptimizerPtr MakeGradientDescent(Reader& r) {
  return std::make_unique<GradientDescent>(r.Needed("learning_rate"),
                                           r.Common(GradientDescentOptions()));
}

OptimizerPtr MakeMomentum(Reader& r) {
  MomentumOptions options = r.Common(MomentumOptions());
  options.use_nesterov = r.Flag("use_nesterov");
  const TensorArg rate = r.Needed("learning_rate");
  return std::make_unique<Momentum>(rate, r.Needed("momentum"), options);
}

OptimizerPtr MakeAdagrad(Reader& r) {
  AdagradOptions options = r.Common(AdagradOptions());
  options.initial_accumulator_value = r.Number("initial_accumulator_value", 0.1);
  return std::make_unique<Adagrad>(r.Needed("learning_rate"), options);
}

OptimizerPtr MakeAdadelta(Reader& r) {
  AdadeltaOptions options = r.Common(AdadeltaOptions());
  options.learning_rate = r.Or("learning_rate", 0.001);
  options.rho = r.Or("rho", 0.95);
  options.epsilon = r.Or("epsilon", 1e-8);
  return std::make_unique<Adadelta>(options);
}

OptimizerPtr MakeRmsProp(Reader& r) {
  RMSPropOptions options = r.Common(RMSPropOptions());
  options.decay = r.Or("decay", 0.9);
  options.momentum = r.Or("momentum", 0);
  options.epsilon = r.Or("epsilon", 1e-10);
  options.centered = r.Flag("centered");
  return std::make_unique<RMSProp>(r.Needed("learning_rate"), options);
}

OptimizerPtr MakeAdam(Reader& r) {
  AdamOptions options = r.Common(AdamOptions());
  options.beta1 = r.Or("beta1", 0.9);
  options.beta2 = r.Or("beta2", 0.999);
  options.epsilon = r.Or("epsilon", 1e-8);
  return std::make_unique<Adam>(r.Or("learning_rate", 0.001), options);
}

OptimizerPtr MakeAdamW(Reader& r) {
  AdamWOptions options = r.Common(AdamWOptions());
  options.learning_rate = r.Or("learning_rate", 0.001);
  options.beta1 = r.Or("beta1", 0.9);
  options.beta2 = r.Or("beta2", 0.999);
  options.epsilon = r.Or("epsilon", 1e-8);
  return std::make_unique<AdamW>(r.Needed("weight_decay"), options);
}

OptimizerPtr MakeFtrl(Reader& r) {
  FtrlOptions options = r.Common(FtrlOptions());
  options.learning_rate_power = r.Number("learning_rate_power", -0.5);
  options.initial_accumulator_value = r.Number("initial_accumulator_value", 0.1);
  options.l1_regularization_strength = r.Number("l1_regularization_strength", 0);
  options.l2_regularization_strength = r.Number("l2_regularization_strength", 0);
  options.l2_shrinkage_regularization_strength =
      r.Number("l2_shrinkage_regularization_strength", 0);
  options.beta = r.Number("beta", 0);
  return std::make_unique<Ftrl>(r.Needed("learning_rate"), options);
}

OptimizerPtr MakeProximal(Reader& r) {
  ProximalOptions options = r.Common(ProximalOptions());
  options.l1_regularization_strength = r.Number("l1_regularization_strength", 0);
  options.l2_regularization_strength = r.Number("l2_regularization_strength", 0);
  return std::make_unique<ProximalGradientDescent>(r.Needed("learning_rate"), options);
}

OptimizerPtr MakeProximalAdagrad(Reader& r) {
  ProximalAdagradOptions options = r.Common(ProximalAdagradOptions());
  options.initial_accumulator_value = r.Number("initial_accumulator_value", 0.1);
  options.l1_regularization_strength = r.Number("l1_regularization_strength", 0);
  options.l2_regularization_strength = r.Number("l2_regularization_strength", 0);
  return std::make_unique<ProximalAdagrad>(r.Needed("learning_rate"), options);
}

constexpr std::pair<absl::string_view, OptimizerPtr (*)(Reader&)> kOptimizers[] = {
    {"GradientDescent", MakeGradientDescent},
    {"Momentum", MakeMomentum},
    {"Adagrad", MakeAdagrad},
    {"Adadelta", MakeAdadelta},
    {"RMSProp", MakeRmsProp},
    {"Adam", MakeAdam},
    {"AdamW", MakeAdamW},
    {"Ftrl", MakeFtrl},
    {"ProximalGradientDescent", MakeProximal},
    {"ProximalAdagrad", MakeProximalAdagrad},
};

}  // namespace

absl::StatusOr<NamedOptimizer> MakeOptimizer(absl::string_view name, const char* hyperparameters,
                                             const Graph& graph) {
  const auto* const it = std::find_if(std::begin(kOptimizers), std::end(kOptimizers),
                                      [&](const auto& each) { return each.first == name; });
  if (it == std::end(kOptimizers)) {
    const auto add = [](std::string* out, const auto& each) { absl::StrAppend(out, each.first); };
    return NotFound("no optimizer '", name,
                    "'; there are: ", absl::StrJoin(kOptimizers, ", ", add));
  }
  Reader reader(hyperparameters, graph);
  NamedOptimizer made;
  made.optimizer = it->second(reader);
  made.clip_norm = reader.ClipNorm();
  const absl::Status status = reader.Finish();
  if (!status.ok()) return Annotate(status, name);
  return made;
}

}  // namespace weir::capi
