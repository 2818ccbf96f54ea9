#include "weir/ops/train/schedules.h"

#include <cmath>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"

namespace weir {

namespace {

constexpr double kPi = 3.14159265358979323846;

// The arguments of a schedule inside its scope: the rate as "initial_learning_rate", and the other
// arguments cast to its type.
class Schedule {
 public:
  Schedule(Output step, const TensorArg& rate, absl::string_view name, absl::string_view fallback)
      : graph_(step.graph()),
        step_(step),
        scope_(graph_, name.empty() ? fallback : name),
        rate_(rate.In(graph_, DT_INVALID, "initial_learning_rate")) {}

  const Output& rate() const { return rate_; }
  const std::string& name() const { return scope_.name(); }
  // The step cast to the rate's type.
  Output step() const { return Cast(step_, rate_.dtype()); }
  Output As(const TensorArg& arg) const {
    if (!arg.is_literal()) return Cast(arg.output(), rate_.dtype());
    const NameScope cast(graph_, "Cast");
    return arg.In(graph_, rate_.dtype(), "x");
  }
  Output Number(double value) const { return ConstOf(graph_, rate_.dtype(), value); }

 private:
  Graph& graph_;
  const Output step_;
  const NameScope scope_;
  const Output rate_;
};

// (1 + cos(pi * fraction)) / 2
Output CosineOf(const Schedule& s, const Output& fraction) {
  return 0.5 * (1.0 + Cos(s.Number(kPi) * fraction));
}

}  // namespace

Output ExponentialDecay(const TensorArg& learning_rate, Output global_step,
                        const TensorArg& decay_steps, const TensorArg& decay_rate,
                        const DecayOptions& options) {
  if (!global_step.valid()) return {};
  const Schedule s(global_step, learning_rate, options.name, "ExponentialDecay");
  const Output steps = s.As(decay_steps), rate = s.As(decay_rate);
  Output p = s.step() / steps;
  if (options.staircase) p = Floor(p);
  return Multiply(s.rate(), Pow(rate, p), s.name());
}

Output NaturalExpDecay(const TensorArg& learning_rate, Output global_step,
                       const TensorArg& decay_steps, const TensorArg& decay_rate,
                       const DecayOptions& options) {
  if (!global_step.valid()) return {};
  const Output factor = Exp(Negative(decay_rate.In(global_step.graph(), DT_INVALID, "Neg/x")));
  DecayOptions named = options;
  if (named.name.empty()) named.name = "NaturalExpDecay";
  return ExponentialDecay(learning_rate, global_step, decay_steps, factor, named);
}

Output InverseTimeDecay(const TensorArg& learning_rate, Output global_step,
                        const TensorArg& decay_steps, const TensorArg& decay_rate,
                        const DecayOptions& options) {
  if (!global_step.valid()) return {};
  const Schedule s(global_step, learning_rate, options.name, "InverseTimeDecay");
  const Output steps = s.As(decay_steps), rate = s.As(decay_rate);
  Output p = s.step() / steps;
  if (options.staircase) p = Floor(p);
  const Output one = s.Number(1);
  return Divide(s.rate(), Add(one, Multiply(rate, p)), s.name());
}

Output PolynomialDecay(const TensorArg& learning_rate, Output global_step,
                       const TensorArg& decay_steps, const PolynomialDecayOptions& options) {
  if (!global_step.valid()) return {};
  const Schedule s(global_step, learning_rate, options.name, "PolynomialDecay");
  const Output end = s.As(options.end_learning_rate), power = s.As(options.power);
  Output step = s.step(), steps = s.As(decay_steps);
  if (options.cycle) {
    const Output periods = Ceil(step / steps);
    steps = Multiply(steps, SelectV2(Equal(step, 0), 1.0, periods));
  } else {
    step = Minimum(step, steps);
  }
  const Output p = Divide(step, steps);
  const Output range = s.rate() - end;
  return Add(Multiply(range, Pow(1 - p, power)), end, s.name());
}

// Selects from the last interval to the first the value of the first boundary that the step does
// not exceed.
Output PiecewiseConstant(Output global_step, const std::vector<int64_t>& boundaries,
                         const std::vector<TensorArg>& values, absl::string_view name) {
  if (!global_step.valid()) return {};
  Graph& graph = global_step.graph();
  if (boundaries.empty() || values.size() != boundaries.size() + 1) {
    graph.Fail(InvalidArgument(
        "PiecewiseConstant: the length of boundaries should be 1 less than the length of values, ",
        "got ", boundaries.size(), " and ", values.size()));
    return {};
  }
  for (size_t i = 1; i < boundaries.size(); ++i) {
    if (boundaries[i] > boundaries[i - 1]) continue;
    graph.Fail(InvalidArgument("PiecewiseConstant: boundaries must ascend, got ", boundaries[i - 1],
                               " before ", boundaries[i]));
    return {};
  }
  const NameScope scope(graph, name.empty() ? "PiecewiseConstant" : name);
  Outputs rates;
  for (const TensorArg& value : values)
    rates.push_back(value.In(graph, rates.empty() ? DT_INVALID : rates[0].dtype()));
  if (!graph.status().ok()) return {};
  Output rate = rates.back();
  for (size_t i = boundaries.size(); i-- > 0;) {
    const Output boundary = ConstLike(global_step, boundaries[i]);
    rate = Select(LessEqual(global_step, boundary), rates[i], rate);
  }
  return rate;
}

Output CosineDecay(const TensorArg& learning_rate, Output global_step, const TensorArg& decay_steps,
                   const CosineDecayOptions& options) {
  if (!global_step.valid()) return {};
  const Schedule s(global_step, learning_rate, options.name, "CosineDecay");
  const Output steps = s.As(decay_steps);
  const Output step = Minimum(s.step(), steps);
  const Output decayed = (1 - options.alpha) * CosineOf(s, step / steps) + options.alpha;
  return Multiply(s.rate(), decayed);
}

Output LinearCosineDecay(const TensorArg& learning_rate, Output global_step,
                         const TensorArg& decay_steps, const LinearCosineDecayOptions& options) {
  if (!global_step.valid()) return {};
  const Schedule s(global_step, learning_rate, options.name, "LinearCosineDecay");
  const Output steps = s.As(decay_steps);
  const Output step = Minimum(s.step(), steps);
  const Output linear = (steps - step) / steps;
  const Output cosine = CosineOf(s, 2.0 * options.num_periods * (step / steps));
  return Multiply(s.rate(), (options.alpha + linear) * cosine + options.beta, s.name());
}

// Period i has the length t_mul^i, in units of the first period. The sum of a geometric series
// determines the number of completed periods.
Output CosineDecayRestarts(const TensorArg& learning_rate, Output global_step,
                           const TensorArg& first_decay_steps,
                           const CosineDecayRestartsOptions& options) {
  if (!global_step.valid()) return {};
  const Schedule s(global_step, learning_rate, options.name, "SGDRDecay");
  const Output steps = s.As(first_decay_steps);
  const Output completed = s.step() / steps;
  Output restarts, fraction;
  if (options.t_mul == 1.0) {
    restarts = Floor(completed);
    fraction = completed - restarts;
  } else {
    const double t_mul = options.t_mul;
    restarts = Floor(Log(1.0 - completed * (1.0 - t_mul)) / std::log(t_mul));
    const Output growth = Pow(s.Number(t_mul), restarts);
    fraction = (completed - (1.0 - growth) / (1.0 - t_mul)) / growth;
  }
  const Output peak = Pow(s.Number(options.m_mul), restarts);
  const Output decayed = (1 - options.alpha) * (peak * CosineOf(s, fraction)) + options.alpha;
  return Multiply(s.rate(), decayed, s.name());
}

}  // namespace weir
