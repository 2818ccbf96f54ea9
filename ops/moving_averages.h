#ifndef WEIR_OPS_MOVING_AVERAGES_H_
#define WEIR_OPS_MOVING_AVERAGES_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weir/ops/variable.h"

namespace weir {

// variable -= (1 - decay) * (variable - value). With `zero_debias` the bias toward the variable's
// start at zero is taken out (two more variables, "<variable>/biased" and "<variable>/local_step",
// in the current variable scope).
Output AssignMovingAverage(const Variable& variable, Output value, const TensorArg& decay,
                           bool zero_debias = true, absl::string_view name = {});

struct ExponentialMovingAverageOptions {
  // Where given, the decay is min(decay, (1 + num_updates) / (10 + num_updates)): averages move
  // faster at the start.
  // A variable, such as the global step, is read anew in each update.
  std::optional<std::variant<TensorArg, Variable>> num_updates = {};
  // For averages of tensors, which start at zero.
  bool zero_debias = false;
  std::string name = "ExponentialMovingAverage";
};

// Keeps shadow variables "<variable>/ExponentialMovingAverage" that follow variables (starting at
// their initial values), or tensors (starting at zero). The variables it follows are in the
// collection "moving_average_variables".
//
//   ExponentialMovingAverage ema(0.999);
//   ControlDependencies after(g, {train});
//   Operation step = ema.Apply();
//   ... evaluate with the averages: Saver(g, {.var_list = ema.VariablesToRestore(g)}).Restore(...)
//
// An object of the program, like an optimizer. INVALID_ARGUMENT on the graph for what is not
// floating-point.
class ExponentialMovingAverage {
 public:
  explicit ExponentialMovingAverage(TensorArg decay, ExponentialMovingAverageOptions options = {});

  // Makes the shadow variables that do not exist yet, and returns the op that updates all of these.
  Operation Apply(const Variables& variables);
  Operation ApplyToTensors(const Outputs& tensors);
  // The same for all trainable variables.
  Operation Apply(Graph& graph);

  // The shadow variable; invalid if Apply has not seen this one.
  Variable Average(const Variable& variable) const;
  Variable Average(const Output& tensor) const;
  // "<variable>/ExponentialMovingAverage": its name, whether it exists or not.
  std::string AverageName(const Variable& variable) const;
  // For a saver that loads the averages in place of the variables: names in the checkpoint ->
  // variables to fill. Variables without average map under their own names. Default `averaged`:
  // trainable and "moving_average_variables".
  std::map<std::string, Variable> VariablesToRestore(
      Graph& graph, const std::optional<Variables>& averaged = {}) const;

 private:
  // What averages follow: reads it where it is called.
  using Followed = std::function<Output()>;
  Output Decay(Graph& graph) const;
  Operation Update(Graph& graph, const std::vector<std::pair<Variable, Followed>>& items,
                   bool zero_debias);

  const TensorArg decay_;
  const ExponentialMovingAverageOptions options_;
  std::map<std::pair<const Node*, int>, Variable> averages_;  // by variable's or tensor's output
};

}  // namespace weir

#endif  // WEIR_OPS_MOVING_AVERAGES_H_
