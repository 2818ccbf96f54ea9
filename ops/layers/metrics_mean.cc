#include "weir/ops/framework/cond.h"
#include "weir/ops/layers/broadcast_weights.h"
#include "weir/ops/layers/metrics_internal.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"

namespace weir::metrics {

MetricScope::MetricScope(Graph& graph, const std::string& name, absl::string_view default_name) {
  if (name.empty()) {
    scope_.emplace(graph, VariableScopeOptions{.default_name = std::string(default_name)});
  } else {
    scope_.emplace(graph, name);
  }
}

Variable MetricVariable(Graph& graph, const Shape& shape, DataType dtype, absl::string_view name) {
  return MakeVariable(
      graph, [&graph, shape, dtype] { return Zeros(graph, shape, dtype); },
      {.name = std::string(name),
       .trainable = false,
       .collections = {{collections::kLocalVariables, collections::kMetricVariables}},
       .synchronization = VariableSynchronization::kOnRead,
       .aggregation = VariableAggregation::kSum});
}

Output Plus(const Source& x, const Source& y) {
  const Output left = x();
  if (!left.valid()) return {};
  return InScope(left.graph(), "add",
                 [&](const std::string& name) { return Add(left, y(), name); });
}

Output Ratio(const Source& x, Output y, absl::string_view name) {
  if (!y.valid()) return {};
  return InScope(y.graph(), name, [&](const std::string& scope) { return RealDiv(x(), y, scope); });
}

Output ValueOf(const Variable& v) {
  if (!v.valid()) return {};
  return InScope(v.graph(), "Identity",
                 [&](const std::string& scope) { return Identity(v.value(), scope); });
}

Update AsUpdate(const Variable& variable, Output write) {
  if (!variable.valid() || !write.valid()) return {};
  if (!variable.is_resource()) return {write, From(write)};
  const Source source = [variable, write] {
    const ControlDependencies after(variable.graph(), {write});
    return variable.value();
  };
  return {source(), source};
}

Update AddTo(const Variable& variable, Output delta, absl::string_view name) {
  if (!variable.valid() || !delta.valid()) return {};
  WriteOptions options{.read_value = false};
  if (!variable.is_resource()) options.name = std::string(name);
  return AsUpdate(variable, variable.AssignAdd(delta, options));
}

Metric Finish(const Metric& metric, const MetricOptions& options) {
  if (!metric.value.valid() || !metric.update_op.valid()) return {};
  Graph& g = metric.value.graph();
  g.AddToCollections(options.metrics_collections, metric.value);
  g.AddToCollections(options.updates_collections, metric.update_op);
  return metric;
}

namespace {

// Adds or removes one dimension of the weights if that makes their rank equal to that of the
// predictions.
Output AdjustRank(Output weights, Output predictions) {
  const Shape &w = weights.shape(), &p = predictions.shape();
  if (w.rank() == 0) return weights;
  const auto squeezed = [&] { return Squeeze(weights, {-1}); };
  const auto expanded = [&] { return ExpandDims(weights, Ints{-1}); };
  const auto same = [&] { return weights; };
  if (w.has_rank() && p.has_rank()) {
    const int diff = w.rank() - p.rank();
    return diff == 1 ? squeezed() : diff == -1 ? expanded() : weights;
  }
  const Output rank = Rank(weights);
  const Output diff = rank - Rank(predictions);
  const bool may_squeeze = !w.has_rank() || w.dim(-1) == 1 || w.dim(-1) < 0;
  const auto adjusted = [&]() -> Output {
    return Cond(
        Equal(diff, 1), [&]() -> Output { return may_squeeze ? squeezed() : same(); },
        [&]() -> Output { return Cond(Equal(diff, -1), expanded, same); });
  };
  return Cond(Equal(rank, 0), same, adjusted);
}

}  // namespace

MetricInputs RemoveSqueezable(Output predictions, Output labels,
                              const std::optional<TensorArg>& weights) {
  if (!predictions.valid()) return {};
  MetricInputs in{predictions, labels};
  if (labels.valid()) {
    const LabelsAndPredictions squeezed = RemoveSqueezableDimensions(labels, predictions);
    in.labels = squeezed.labels;
    in.predictions = squeezed.predictions;
    if (!in.predictions.valid() || !CheckCompatible(in.predictions, in.labels)) return {};
  }
  in.ok = true;
  if (!weights) return in;
  in.weights = weights->In(predictions.graph());
  if (in.weights.valid()) in.weights = AdjustRank(in.weights, in.predictions);
  in.ok = in.weights.valid();
  return in;
}

MetricInputs Prepare(Output labels, Output predictions, const MetricOptions& options) {
  if (!labels.valid() || !predictions.valid()) return {};
  return RemoveSqueezable(predictions, labels, options.weights);
}

namespace {

// Returns total / count, and the same quotient after the updates.
Metric Quotient(const Variable& total, const Variable& count, const Update& new_total,
                const Update& new_count, const MetricOptions& options) {
  if (!total.valid() || !count.valid() || !new_total || !new_count) return {};
  Graph& g = total.graph();
  const auto divide = [&g](const Source& t, const Source& c, absl::string_view name) {
    const Output positive =
        InScope(g, "Maximum", [&](const std::string& scope) { return Maximum(c(), 0, scope); });
    return InScope(g, name,
                   [&](const std::string& scope) { return DivNoNan(t(), positive, scope); });
  };
  const Output value = divide(From(total), From(count), "value");
  return Finish({value, divide(new_total.source, new_count.source, "update_op")}, options);
}

// Returns the options that a metric passes to the metric that it is built from.
MetricOptions WithName(const Output& weights, const MetricOptions& options,
                       absl::string_view name) {
  MetricOptions inner = options;
  if (weights.valid()) inner.weights = weights;
  if (inner.name.empty()) inner.name = std::string(name);
  return inner;
}

}  // namespace

Metric Mean(Output values, const MetricOptions& options) {
  if (!values.valid()) return {};
  Graph& g = values.graph();
  const MetricScope scope(g, options.name, "mean");
  values = Cast(values, DT_FLOAT);
  const Variable total = MetricVariable(g, Shape(), DT_FLOAT, "total");
  const Variable count = MetricVariable(g, Shape(), DT_FLOAT, "count");
  Output number;
  if (!options.weights) {
    number = Cast(Size(values), DT_FLOAT);
  } else {
    const MetricInputs in = RemoveSqueezable(values, {}, options.weights);
    if (!in.ok) return {};
    const Output weights = BroadcastWeights(Cast(in.weights, DT_FLOAT), in.predictions);
    values = Multiply(in.predictions, weights);
    number = weights.valid() ? ReduceSum(weights) : Output();
  }
  if (!values.valid() || !number.valid()) return {};
  const Update new_total = AddTo(total, ReduceSum(values));
  Update new_count;
  {
    const ControlDependencies after(g, {values});
    new_count = AddTo(count, number);
  }
  return Quotient(total, count, new_total, new_count, options);
}

Metric MeanTensor(Output values, const MetricOptions& options) {
  if (!values.valid()) return {};
  Graph& g = values.graph();
  const MetricScope scope(g, options.name, "mean");
  values = Cast(values, DT_FLOAT);
  if (!values.shape().IsFullyDefined()) {
    g.Fail(InvalidArgument("MeanTensor requires values with a static shape, but ", values.name(),
                           " has shape ", values.shape().ToString()));
    return {};
  }
  const Variable total = MetricVariable(g, values.shape(), DT_FLOAT, "total_tensor");
  const Variable count = MetricVariable(g, values.shape(), DT_FLOAT, "count_tensor");
  Output number = OnesLike(values);
  if (options.weights) {
    const MetricInputs in = RemoveSqueezable(values, {}, options.weights);
    if (!in.ok) return {};
    const Output weights = BroadcastWeights(Cast(in.weights, DT_FLOAT), in.predictions);
    values = Multiply(in.predictions, weights);
    number = Multiply(number, weights);
  }
  if (!values.valid() || !number.valid()) return {};
  const Update new_total = AddTo(total, values);
  Update new_count;
  {
    const ControlDependencies after(g, {values});
    new_count = AddTo(count, number);
  }
  return Quotient(total, count, new_total, new_count, options);
}

Metric Accuracy(Output labels, Output predictions, const MetricOptions& options) {
  MetricInputs in = Prepare(labels, predictions, options);
  if (!in.ok) return {};
  in.predictions = Cast(in.predictions, in.labels.dtype());
  const Output correct = Equal(in.predictions, in.labels);
  if (!correct.valid()) return {};
  return Mean(Cast(correct, DT_FLOAT), WithName(in.weights, options, "accuracy"));
}

Metric MeanAbsoluteError(Output labels, Output predictions, const MetricOptions& options) {
  const MetricInputs in = Prepare(labels, predictions, options);
  if (!in.ok) return {};
  return Mean(Abs(in.predictions - in.labels),
              WithName(in.weights, options, "mean_absolute_error"));
}

Metric MeanSquaredError(Output labels, Output predictions, const MetricOptions& options) {
  const MetricInputs in = Prepare(labels, predictions, options);
  if (!in.ok) return {};
  return Mean(SquaredDifference(in.labels, in.predictions),
              WithName(in.weights, options, "mean_squared_error"));
}

Metric RootMeanSquaredError(Output labels, Output predictions, const MetricOptions& options) {
  const MetricInputs in = Prepare(labels, predictions, options);
  if (!in.ok) return {};
  MetricOptions inner = WithName(in.weights, options, "root_mean_squared_error");
  inner.metrics_collections.clear();
  inner.updates_collections.clear();
  const Metric squared = MeanSquaredError(in.labels, in.predictions, inner);
  if (!squared.value.valid()) return {};
  const Output value = Sqrt(squared.value);
  return Finish({value, Sqrt(squared.update_op)}, options);
}

Metric MeanRelativeError(Output labels, Output predictions, Output normalizer,
                         const MetricOptions& options) {
  const MetricInputs in = Prepare(labels, predictions, options);
  if (!in.ok || !normalizer.valid()) return {};
  const LabelsAndPredictions squeezed = RemoveSqueezableDimensions(in.predictions, normalizer);
  predictions = squeezed.labels;
  normalizer = squeezed.predictions;
  if (!CheckCompatible(predictions, normalizer)) return {};
  const Output undefined = Equal(normalizer, 0);
  const Output zeros = ZerosLike(in.labels);
  const Output error = Abs(in.labels - predictions);
  if (!error.valid()) return {};
  const Output relative = Select(undefined, zeros, error / normalizer);
  return Mean(relative, WithName(in.weights, options, "mean_relative_error"));
}

Metric MeanCosineDistance(Output labels, Output predictions, int64_t dim,
                          const MetricOptions& options) {
  const MetricInputs in = Prepare(labels, predictions, options);
  if (!in.ok) return {};
  const Output products = Multiply(in.predictions, in.labels);
  const Output product = ReduceSum(products, Ints{dim}, /*keep_dims=*/true);
  MetricOptions inner = WithName(in.weights, options, "mean_cosine_distance");
  inner.metrics_collections.clear();
  inner.updates_collections.clear();
  const Metric mean = Mean(product, inner);
  if (!mean.value.valid()) return {};
  const Output value = Subtract(1, mean.value);
  return Finish({value, Subtract(1, mean.update_op)}, options);
}

Metric PercentageBelow(Output values, double threshold, const MetricOptions& options) {
  if (!values.valid()) return {};
  const Output below = Less(values, threshold);
  if (!below.valid()) return {};
  return Mean(Cast(below, DT_FLOAT), WithName({}, options, "percentage_below_threshold"));
}

}  // namespace weir::metrics
