#ifndef WEIR_OPS_TRAIN_SCHEDULES_H_
#define WEIR_OPS_TRAIN_SCHEDULES_H_

#include <string>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/ops/lib/literal.h"

// Learning rates that change with the step (tf.train.*_decay): scalars to pass to an optimizer.
// `global_step` is a scalar of any integer or floating-point type. The other arguments are numbers
// or scalars. The result has the type of the learning rate.
namespace WEIR_API weir {

// Options of the exponential, natural exponential and inverse time decays.
struct DecayOptions {
  bool staircase = false;  // step / decay_steps is rounded down
  std::string name = {};   // of the name scope
};
// learning_rate * decay_rate ^ (step / decay_steps)
Output ExponentialDecay(const TensorArg& learning_rate, Output global_step,
                        const TensorArg& decay_steps, const TensorArg& decay_rate,
                        const DecayOptions& options = {});
// learning_rate * exp(-decay_rate * step / decay_steps)
Output NaturalExpDecay(const TensorArg& learning_rate, Output global_step,
                       const TensorArg& decay_steps, const TensorArg& decay_rate,
                       const DecayOptions& options = {});
// learning_rate / (1 + decay_rate * step / decay_steps)
Output InverseTimeDecay(const TensorArg& learning_rate, Output global_step,
                        const TensorArg& decay_steps, const TensorArg& decay_rate,
                        const DecayOptions& options = {});

// Options of PolynomialDecay; `name` is that of the name scope.
struct PolynomialDecayOptions {
  TensorArg end_learning_rate = 0.0001;  // the rate after decay_steps
  TensorArg power = 1.0;                 // of the remaining fraction of the steps
  // If true, the decay restarts after decay_steps with a longer period; otherwise the rate remains
  // at its final value.
  bool cycle = false;
  std::string name = {};
};
// (learning_rate - end) * (1 - min(step, decay_steps) / decay_steps) ^ power + end
Output PolynomialDecay(const TensorArg& learning_rate, Output global_step,
                       const TensorArg& decay_steps, const PolynomialDecayOptions& options = {});

// values[0] up to and including step boundaries[0], values[1] up to boundaries[1], ..., and
// values.back() afterward. INVALID_ARGUMENT on the graph unless there is one more value than
// boundaries, the boundaries are ascending, and all values have the type of the first one.
Output PiecewiseConstant(Output global_step, const std::vector<int64_t>& boundaries,
                         const std::vector<TensorArg>& values, absl::string_view name = {});

// Options of CosineDecay.
struct CosineDecayOptions {
  double alpha = 0;       // the lowest rate, as a fraction of learning_rate
  std::string name = {};  // of the name scope
};
// learning_rate * ((1 - alpha) * (1 + cos(pi * min(step, decay_steps) / decay_steps)) / 2 + alpha)
Output CosineDecay(const TensorArg& learning_rate, Output global_step, const TensorArg& decay_steps,
                   const CosineDecayOptions& options = {});

// Options of LinearCosineDecay: `num_periods`, `alpha` and `beta` as in its formula, and the `name`
// of the name scope.
struct LinearCosineDecayOptions {
  double num_periods = 0.5;
  double alpha = 0;
  double beta = 0.001;
  std::string name = {};
};
// learning_rate * ((alpha + 1 - f) * (1 + cos(2 * pi * num_periods * f)) / 2 + beta), f = min(step,
// decay_steps) / decay_steps
Output LinearCosineDecay(const TensorArg& learning_rate, Output global_step,
                         const TensorArg& decay_steps,
                         const LinearCosineDecayOptions& options = {});

// Options of CosineDecayRestarts: `alpha` as in CosineDecayOptions, and the `name` of the name
// scope.
struct CosineDecayRestartsOptions {
  double t_mul = 2.0;  // factor by which each period is longer than the previous one
  double m_mul = 1.0;  // factor by which its initial rate is smaller
  double alpha = 0;
  std::string name = {};
};
// Cosine decay with warm restarts after each period (SGDR, Loshchilov and Hutter 2016).
Output CosineDecayRestarts(const TensorArg& learning_rate, Output global_step,
                           const TensorArg& first_decay_steps,
                           const CosineDecayRestartsOptions& options = {});

}  // namespace weir

#endif  // WEIR_OPS_TRAIN_SCHEDULES_H_
