#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/layers/broadcast_weights.h"
#include "weir/ops/layers/metrics_internal.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"

namespace weir::metrics {

namespace {

Output FlattenToVector(const Output& x) {
  return x.valid() && x.shape().rank() > 1 ? Reshape(x, {-1}) : x;
}

// Returns x; fails at run time if an element is negative.
Output AssertNonNegative(const Output& x, const std::string& message) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  Operation check;
  {
    const NameScope scope(g, "assert_non_negative");
    const Output zero = ConstLike(x, 0, "Const");
    const NameScope inner(g, "assert_less_equal");
    const Output all = ReduceAll(LessEqual(zero, x));
    check = AssertThat(all, {message + ".  ", "Condition x >= 0 did not hold element-wise:",
                             absl::StrCat("x (", x.name(), ") = "), x});
  }
  return check.valid() ? WithDependencies({check}, x) : Output();
}

// Returns x; fails at run time if an element is not below the limit.
Output AssertBelow(const Output& x, const Output& limit, const std::string& message) {
  if (!x.valid() || !limit.valid()) return {};
  Operation check;
  {
    const NameScope scope(x.graph(), "assert_less");
    const Output all = ReduceAll(Less(x, limit));
    check = AssertThat(all, {message, "Condition x < y did not hold element-wise:",
                             absl::StrCat("x (", x.name(), ") = "), x,
                             absl::StrCat("y (", limit.name(), ") = "), limit});
  }
  return check.valid() ? WithDependencies({check}, x) : Output();
}

bool CheckClasses(Graph& g, int64_t num_classes) {
  if (num_classes > 0) return true;
  g.Fail(InvalidArgument("num_classes must be positive, got ", num_classes));
  return false;
}

}  // namespace

Output ConfusionMatrix(Output labels, Output predictions, const TensorArg* num_classes,
                       Output weights, DataType dtype, absl::string_view name) {
  if (!labels.valid() || !predictions.valid()) return {};
  Graph& g = labels.graph();
  const NameScope scope(g, name.empty() ? "confusion_matrix" : name);
  const LabelsAndPredictions squeezed = RemoveSqueezableDimensions(labels, predictions);
  if (!squeezed.labels.valid() || !squeezed.predictions.valid()) return {};
  predictions = Cast(squeezed.predictions, DT_INT64);
  labels = AssertNonNegative(Cast(squeezed.labels, DT_INT64), "`labels` contains negative values");
  predictions = AssertNonNegative(predictions, "`predictions` contains negative values");
  if (!labels.valid() || !predictions.valid()) return {};
  Output classes;
  if (num_classes == nullptr) {
    const Output highest = ReduceMax(predictions);
    classes = Maximum(highest, ReduceMax(labels)) + 1;
  } else {
    classes = CastArg(g, *num_classes, DT_INT64);
    labels = AssertBelow(labels, classes, "`labels` out of bound");
    predictions = AssertBelow(predictions, classes, "`predictions` out of bound");
  }
  if (weights.valid()) {
    if (!CheckCompatible(predictions, weights)) return {};
    weights = Cast(weights, dtype);
  }
  if (!labels.valid() || !predictions.valid() || !classes.valid()) return {};
  const Output shape = Stack({classes, classes});
  const Output indices = Stack({labels, predictions}, 1);
  const Output values = weights.valid() ? weights : OnesLike(predictions, dtype);
  return ScatterNd(indices, values, shape);
}

Metric MeanIou(Output labels, Output predictions, int64_t num_classes,
               const MetricOptions& options) {
  if (!labels.valid() || !predictions.valid()) return {};
  Graph& g = labels.graph();
  const MetricScope scope(g, options.name, "mean_iou");
  if (!CheckClasses(g, num_classes) || !CheckCompatible(predictions, labels)) return {};
  const Variable total =
      MetricVariable(g, Shape({num_classes, num_classes}), DT_DOUBLE, "total_confusion_matrix");
  predictions = Cast(predictions, DT_INT64);
  labels = Cast(labels, DT_INT64);
  const TensorArg classes = CastArg(g, num_classes, DT_INT64);
  predictions = FlattenToVector(predictions);
  labels = FlattenToVector(labels);
  Output weights;
  if (options.weights) weights = FlattenToVector(options.weights->In(g));
  const Update update =
      AddTo(total, ConfusionMatrix(labels, predictions, &classes, weights, DT_DOUBLE));
  if (!update) return {};
  const auto sum_over = [&](int64_t axis) {
    return Cast(InScope(g, "Sum",
                        [&](const std::string& name) {
                          return ReduceSum(total.value(), axis, false, name);
                        }),
                DT_FLOAT);
  };
  const Output rows = sum_over(0);
  const Output columns = sum_over(1);
  const Output diagonal =
      Cast(InScope(g, "DiagPart",
                   [&](const std::string& name) { return DiagPart(total.value(), name); }),
           DT_FLOAT);
  const Output in_union = (rows + columns) - diagonal;
  const Output valid = ReduceSum(Cast(NotEqual(in_union, 0), DT_FLOAT));
  const Output occurs = Greater(in_union, 0);
  const Output iou = Divide(diagonal, Select(occurs, in_union, OnesLike(in_union)));
  const Output any = Greater(valid, 0);
  const Output sum = ReduceSum(iou, AllAxes(iou), false, "mean_iou");
  const Output mean = sum / valid;
  const Output value = InScope(g, "Select", [&](const std::string& name) {
    return Select(any, mean, ConstLike(mean, 0, "e"), name);
  });
  return Finish({value, update.value}, options);
}

Metric MeanPerClassAccuracy(Output labels, Output predictions, int64_t num_classes,
                            const MetricOptions& options) {
  if (!labels.valid() || !predictions.valid()) return {};
  Graph& g = labels.graph();
  const MetricScope scope(g, options.name, "mean_accuracy");
  if (!CheckClasses(g, num_classes)) return {};
  labels = FlattenToVector(Cast(labels, DT_INT64));
  predictions = FlattenToVector(predictions);
  if (!CheckCompatible(predictions, labels)) return {};
  const Variable total = MetricVariable(g, Shape({num_classes}), DT_FLOAT, "total");
  const Variable count = MetricVariable(g, Shape({num_classes}), DT_FLOAT, "count");
  const Output number = Size(labels);
  Output ones = InScope(g, "ones", [&](const std::string& name) {
    const Output dims = AddOp("Pack", {Outputs{number}}, {}, "packed");
    return Fill(dims, Const(g, 1.0f), name);
  });
  predictions = Cast(predictions, labels.dtype());
  Output correct = Cast(Equal(predictions, labels), DT_FLOAT);
  if (options.weights && correct.valid()) {
    const Output weights = CastArg(g, FlattenToVector(options.weights->In(g)), DT_FLOAT);
    correct = correct * weights;
    ones = ones * weights;
  }
  const auto add = [](const Variable& v, const Output& rows, const Output& values) -> Update {
    if (!v.valid() || !rows.valid() || !values.valid()) return {};
    return AsUpdate(v, v.ScatterAdd({.values = values, .indices = rows}, {.read_value = false}));
  };
  const Update new_total = add(total, labels, ones);
  const Update new_count = add(count, labels, correct);
  if (!new_total || !new_count) return {};
  const auto accuracies = [&](const Source& c, const Source& t, absl::string_view name) {
    const Output positive =
        InScope(g, "Maximum", [&](const std::string& in) { return Maximum(t(), 0, in); });
    return InScope(g, name, [&](const std::string& in) { return DivNoNan(c(), positive, in); });
  };
  const Output each = accuracies(From(count), From(total), "div_no_nan");
  const Output value = ReduceMean(each, AllAxes(each), false, "mean_accuracy");
  return Finish({value, accuracies(new_count.source, new_total.source, "update_op")}, options);
}

}  // namespace weir::metrics
