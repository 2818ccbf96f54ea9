#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/layers/broadcast_weights.h"
#include "weir/ops/layers/metrics_internal.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"

namespace weir::metrics {

namespace {

// Adds the no-ops with which TensorFlow marks the checks that it did at graph construction.
void AddStaticCheckNoOp(Graph& g) {
  const NameScope scope(g, "assert_type");
  NoOp(g, "statically_determined_correct_type");
}

// Asserts that the weights are a scalar or have the same rank as the values.
Operation AssertRankIsZeroOr(const Output& weights, const Output& values_rank,
                             const Output& values) {
  Graph& g = weights.graph();
  const NameScope scope(g, "assert_rank_in");
  const Output zero = Const(g, int32_t{0}, "rank");
  const Output shape = ShapeTensor(weights);
  AddStaticCheckNoOp(g);
  AddStaticCheckNoOp(g);
  const int rank = weights.shape().rank(), values_rank_static = values.shape().rank();
  if (rank < 0 || values_rank_static < 0) {
    const Output actual = Rank(weights);
    const Output is_scalar = Equal(zero, actual);
    const Output fits = LogicalOr(Equal(values_rank, actual), is_scalar);
    return AssertThat(fits,
                      {"", absl::StrCat("Tensor ", weights.name(), " must have rank in"), zero,
                       values_rank, "Received shape: ", shape},
                      "Assert");
  }
  if (rank == 0 || rank == values_rank_static) return NoOp(g, "static_checks_determined_all_ok");
  g.Fail(InvalidArgument("Tensor ", weights.name(), " must have rank in (0, ", values_rank_static,
                         ").  Received rank ", rank, ", shape ", weights.shape().ToString()));
  return {};
}

// The weighted number of times that the condition holds.
struct Count {
  Output value;
  Update update;
};

Count CountCondition(Output condition, Output weights) {
  if (!condition.valid()) return {};
  Graph& g = condition.graph();
  AddStaticCheckNoOp(g);
  const Variable count = MetricVariable(g, Shape(), DT_FLOAT, "count");
  Output values = Cast(condition, DT_FLOAT);
  if (weights.valid() && values.valid()) {
    const Output rank = Rank(values);
    const Operation check = AssertRankIsZeroOr(weights, rank, values);
    if (!check.valid()) return {};
    const ControlDependencies after(g, {check});
    values = Multiply(values, Cast(weights, DT_FLOAT));
  }
  if (!values.valid()) return {};
  const Output value = ValueOf(count);
  return {value, AddTo(count, ReduceSum(values))};
}

// Casts labels and predictions to bool.
MetricInputs PrepareBools(Output labels, Output predictions,
                          const std::optional<TensorArg>& weights) {
  if (!labels.valid() || !predictions.valid()) return {};
  predictions = Cast(predictions, DT_BOOL);
  labels = Cast(labels, DT_BOOL);
  return RemoveSqueezable(predictions, labels, weights);
}

// Counts the elements where the label is `label` and the prediction is `prediction`.
Count CountPairs(Output labels, bool label, Output predictions, bool prediction,
                 const std::optional<TensorArg>& weights, const std::string& name,
                 absl::string_view default_name) {
  if (!labels.valid() || !predictions.valid()) return {};
  const MetricScope scope(labels.graph(), name, default_name);
  const MetricInputs in = PrepareBools(labels, predictions, weights);
  if (!in.ok) return {};
  const Output label_fits = Equal(in.labels, label);
  return CountCondition(LogicalAnd(label_fits, Equal(in.predictions, prediction)), in.weights);
}

Metric CountMetric(Output labels, bool label, Output predictions, bool prediction,
                   const MetricOptions& options, absl::string_view default_name) {
  const Count c = CountPairs(labels, label, predictions, prediction, options.weights, options.name,
                             default_name);
  return Finish({c.value, c.update.value}, options);
}

// hits / (hits + misses), or 0 if the denominator is 0.
Output RateOrZero(const Source& hits, const Source& misses, absl::string_view name) {
  const Output all = Plus(hits, misses);
  if (!all.valid()) return {};
  const Output any = Greater(all, 0);
  const Output again = Plus(hits, misses);
  const Output hit = hits();
  const Output rate = Divide(hit, again);
  if (!rate.valid()) return {};
  return InScope(all.graph(), name, [&](const std::string& scope) {
    return Select(any, rate, ConstLike(rate, 0, "e"), scope);
  });
}

// True positives over true positives plus false positives (`precision`), or plus false negatives.
Metric RateMetric(Output labels, Output predictions, const MetricOptions& options, bool precision) {
  if (!labels.valid() || !predictions.valid()) return {};
  const MetricScope scope(labels.graph(), options.name, precision ? "precision" : "recall");
  const MetricInputs in = PrepareBools(labels, predictions, options.weights);
  if (!in.ok) return {};
  std::optional<TensorArg> weights;
  if (in.weights.valid()) weights = in.weights;
  const Count hits =
      CountPairs(in.labels, true, in.predictions, true, weights, "", "true_positives");
  const Count misses =
      precision
          ? CountPairs(in.labels, false, in.predictions, true, weights, "", "false_positives")
          : CountPairs(in.labels, true, in.predictions, false, weights, "", "false_negatives");
  if (!hits.update || !misses.update) return {};
  const Output value = RateOrZero(From(hits.value), From(misses.value), "value");
  return Finish({value, RateOrZero(hits.update.source, misses.update.source, "update_op")},
                options);
}

}  // namespace

Metric TruePositives(Output labels, Output predictions, const MetricOptions& options) {
  return CountMetric(labels, true, predictions, true, options, "true_positives");
}
Metric FalsePositives(Output labels, Output predictions, const MetricOptions& options) {
  return CountMetric(labels, false, predictions, true, options, "false_positives");
}
Metric TrueNegatives(Output labels, Output predictions, const MetricOptions& options) {
  return CountMetric(labels, false, predictions, false, options, "true_negatives");
}
Metric FalseNegatives(Output labels, Output predictions, const MetricOptions& options) {
  return CountMetric(labels, true, predictions, false, options, "false_negatives");
}

Metric Precision(Output labels, Output predictions, const MetricOptions& options) {
  return RateMetric(labels, predictions, options, /*precision=*/true);
}
Metric Recall(Output labels, Output predictions, const MetricOptions& options) {
  return RateMetric(labels, predictions, options, /*precision=*/false);
}

}  // namespace weir::metrics
