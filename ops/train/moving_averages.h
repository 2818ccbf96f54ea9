#ifndef WEIR_OPS_TRAIN_MOVING_AVERAGES_H_
#define WEIR_OPS_TRAIN_MOVING_AVERAGES_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/ops/framework/variable.h"

namespace WEIR_API weir {

// Builds variable -= (1 - decay) * (variable - value). `zero_debias` corrects the bias due to the
// variable's initial value of zero (with two more variables, "<variable>/biased" and
// "<variable>/local_step", in the current variable scope).
Output AssignMovingAverage(const Variable& variable, Output value, const TensorArg& decay,
                           bool zero_debias = true, absl::string_view name = {});

// Options of ExponentialMovingAverage.
struct ExponentialMovingAverageOptions {
  // If given, the decay is min(decay, (1 + num_updates) / (10 + num_updates)), so that averages
  // move faster at the start. A variable, such as the global step, is read again in each update.
  std::optional<std::variant<TensorArg, Variable>> num_updates = {};
  // For averages of tensors, which are initialized to zero.
  bool zero_debias = false;
  std::string name = "ExponentialMovingAverage";
};

// Maintains shadow variables "<variable>/ExponentialMovingAverage" that follow variables
// (initialized to their initial values) or tensors (initialized to zero). The variables that have
// averages are in the collection "moving_average_variables".
//
//   ExponentialMovingAverage ema(0.999);
//   ControlDependencies after(g, {train});
//   Operation step = ema.Apply();
//   ... evaluate with the averages: Saver(g, {.var_list = ema.VariablesToRestore(g)}).Restore(...)
//
// An object of the program, not of the graph, like an optimizer. Variables and tensors that are not
// floating-point are INVALID_ARGUMENT on the graph.
class ExponentialMovingAverage {
 public:
  // `decay` is between 0 and 1, near 1: the weight of the old average.
  explicit ExponentialMovingAverage(TensorArg decay, ExponentialMovingAverageOptions options = {});

  // Makes the shadow variables that do not exist yet, and returns the op that updates all shadow
  // variables of `variables`.
  Operation Apply(const Variables& variables);
  Operation ApplyToTensors(const Outputs& tensors);
  // Does the same for all trainable variables.
  Operation Apply(Graph& graph);

  // The shadow variable of `variable`; invalid if Apply has not been called for it.
  Variable Average(const Variable& variable) const;
  Variable Average(const Output& tensor) const;
  // The name of the shadow variable, "<variable>/ExponentialMovingAverage", whether or not the
  // variable exists.
  std::string AverageName(const Variable& variable) const;
  // For a saver that restores the averages into the variables: maps names in the checkpoint to the
  // variables to restore. Variables without an average map under their own names. Default of
  // `averaged`: the trainable variables and the collection "moving_average_variables".
  std::map<std::string, Variable> VariablesToRestore(
      Graph& graph, const std::optional<Variables>& averaged = {}) const;

 private:
  // The value that an average follows: it is read where the function is called.
  using Followed = std::function<Output()>;
  Output Decay(Graph& graph) const;
  Operation Update(Graph& graph, const std::vector<std::pair<Variable, Followed>>& items,
                   bool zero_debias);

  const TensorArg decay_;
  const ExponentialMovingAverageOptions options_;
  std::map<std::pair<const Node*, int>, Variable>
      averages_;  // keyed by the variable's or tensor's output
};

}  // namespace weir

#endif  // WEIR_OPS_TRAIN_MOVING_AVERAGES_H_
