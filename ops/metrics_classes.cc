#include "weir/ops/array.h"
#include "weir/ops/broadcast_weights.h"
#include "weir/ops/cond.h"
#include "weir/ops/control_flow.h"
#include "weir/ops/math_internal.h"
#include "weir/ops/metrics_internal.h"
#include "weir/ops/sets.h"

namespace weir::metrics {

namespace {

Output Flat(const Output& x) { return x && x.shape().rank() > 1 ? Reshape(x, {-1}) : x; }

// x, of which no element is negative when run.
Output NonNegative(const Output& x, const std::string& message) {
  if (!x) return {};
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
  return check ? WithDependencies({check}, x) : Output();
}

// x, of which all elements are below the limit when run.
Output Below(const Output& x, const Output& limit, const std::string& message) {
  if (!x || !limit) return {};
  Operation check;
  {
    const NameScope scope(x.graph(), "assert_less");
    const Output all = ReduceAll(Less(x, limit));
    check = AssertThat(all, {message, "Condition x < y did not hold element-wise:",
                             absl::StrCat("x (", x.name(), ") = "), x,
                             absl::StrCat("y (", limit.name(), ") = "), limit});
  }
  return check ? WithDependencies({check}, x) : Output();
}

bool CheckClasses(Graph& g, int64_t num_classes) {
  if (num_classes > 0) return true;
  g.Fail(InvalidArgument("num_classes must be positive, got ", num_classes));
  return false;
}

}  // namespace

Output ConfusionMatrix(Output labels, Output predictions, const TensorArg* num_classes,
                       Output weights, DataType dtype, absl::string_view name) {
  if (!labels || !predictions) return {};
  Graph& g = labels.graph();
  const NameScope scope(g, name.empty() ? "confusion_matrix" : name);
  const LabelsAndPredictions squeezed = RemoveSqueezableDimensions(labels, predictions);
  if (!squeezed.labels || !squeezed.predictions) return {};
  predictions = Cast(squeezed.predictions, DT_INT64);
  labels = NonNegative(Cast(squeezed.labels, DT_INT64), "`labels` contains negative values");
  predictions = NonNegative(predictions, "`predictions` contains negative values");
  if (!labels || !predictions) return {};
  Output classes;
  if (num_classes == nullptr) {
    const Output highest = ReduceMax(predictions);
    classes = Maximum(highest, ReduceMax(labels)) + 1;
  } else {
    classes = CastArg(g, *num_classes, DT_INT64);
    labels = Below(labels, classes, "`labels` out of bound");
    predictions = Below(predictions, classes, "`predictions` out of bound");
  }
  if (weights) {
    if (!CheckCompatible(predictions, weights)) return {};
    weights = Cast(weights, dtype);
  }
  if (!labels || !predictions || !classes) return {};
  const Output shape = Stack({classes, classes});
  const Output indices = Stack({labels, predictions}, 1);
  const Output values = weights ? weights : OnesLike(predictions, dtype);
  return ScatterNd(indices, values, shape);
}

Metric MeanIou(Output labels, Output predictions, int64_t num_classes,
               const MetricOptions& options) {
  if (!labels || !predictions) return {};
  Graph& g = labels.graph();
  const MetricScope scope(g, options.name, "mean_iou");
  if (!CheckClasses(g, num_classes) || !CheckCompatible(predictions, labels)) return {};
  const Variable total =
      MetricVariable(g, Shape({num_classes, num_classes}), DT_DOUBLE, "total_confusion_matrix");
  predictions = Cast(predictions, DT_INT64);
  labels = Cast(labels, DT_INT64);
  const TensorArg classes = CastArg(g, num_classes, DT_INT64);
  predictions = Flat(predictions);
  labels = Flat(labels);
  Output weights;
  if (options.weights) weights = Flat(options.weights->In(g));
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
  if (!labels || !predictions) return {};
  Graph& g = labels.graph();
  const MetricScope scope(g, options.name, "mean_accuracy");
  if (!CheckClasses(g, num_classes)) return {};
  labels = Flat(Cast(labels, DT_INT64));
  predictions = Flat(predictions);
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
  if (options.weights && correct) {
    const Output weights = CastArg(g, Flat(options.weights->In(g)), DT_FLOAT);
    correct = correct * weights;
    ones = ones * weights;
  }
  const auto add = [](const Variable& v, const Output& rows, const Output& values) -> Update {
    if (!v || !rows || !values) return {};
    return Written(v, v.ScatterAdd({.values = values, .indices = rows}, {.read_value = false}));
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

// ---- rankings

namespace {

std::string AtKName(absl::string_view name, std::optional<int64_t> k, const AtKOptions& at_k) {
  std::string text = absl::StrCat(name, "_at_");
  absl::StrAppend(&text, k ? absl::StrCat(*k) : "k");
  if (at_k.class_id) absl::StrAppend(&text, "_class", *at_k.class_id);
  return text;
}

// Labels with a last dimension where predictions have one more.
Output ExpandLabels(Output labels, Output predictions) {
  Graph& g = labels.graph();
  const NameScope scope(g, "expand_labels");
  const int l = labels.shape().rank(), p = predictions.shape().rank();
  if (l >= 0 && p >= 0) {
    if (l == p) return labels;
    if (p == l + 1) return ExpandDims(labels, -1, scope.name());
    g.Fail(InvalidArgument("Unexpected labels shape ", labels.shape().ToString(),
                           " for predictions shape ", predictions.shape().ToString(),
                           ". Predictions rank should be the same rank as labels rank or labels ",
                           "rank plus one ."));
    return {};
  }
  const Output rank = Rank(predictions);
  const Output one_less = Equal(rank, Rank(labels) + 1);
  return Cond(
      one_less, [&] { return ExpandDims(labels, -1, scope.name()); }, [&] { return labels; });
}

// The sets without all ids but this one.
SparseResult OnlyClass(const Output& ids, int64_t class_id) {
  Graph& g = ids.graph();
  const Output shape = ShapeTensor(ids, DT_INT64);
  const Output last = Size(shape) - 1;
  const Output one_wide = ReducedShape(shape, Reshape(last, {1}));
  const Output filled = Fill(one_wide, CastArg(g, class_id, DT_INT64));
  SparseResult result = SetIntersection(filled, ids);
  result.dense_shape = shape;
  return result;
}

enum class Found { kBoth, kOnlyLabels, kOnlyPredictions };

// How many ids each example has of that kind.
Output CountIds(const Output& predictions, const Output& labels, Found found,
                const AtKOptions& at_k) {
  SparseResult ids;
  if (at_k.class_id) {
    const SparseResult l = OnlyClass(labels, *at_k.class_id);
    const SparseResult p = OnlyClass(predictions, *at_k.class_id);
    ids = found == Found::kBoth ? SetIntersection(p, l)
                                : SetDifference(p, l, found == Found::kOnlyPredictions);
  } else {
    ids = found == Found::kBoth
              ? SetIntersection(predictions, labels)
              : SetDifference(predictions, labels, found == Found::kOnlyPredictions);
  }
  const Output size = SetSize(ids);
  return size ? Cast(size, DT_DOUBLE) : Output();
}

struct Total {
  Variable variable;
  Update update;
};

// The weighted count over all steps, in the variable "<scope>".
Total StreamingCount(const Output& predictions, const Output& labels, Found found,
                     std::optional<int64_t> k, const MetricOptions& options,
                     const AtKOptions& at_k) {
  Graph& g = predictions.graph();
  const char* name = found == Found::kBoth         ? "true_positive"
                     : found == Found::kOnlyLabels ? "false_negative"
                                                   : "false_positive";
  const NameScope scope(g, AtKName(name, k, at_k));
  Output count;
  {
    const NameScope inner(g, absl::StrCat(name, "s"));
    count = CountIds(predictions, labels, found, at_k);
    if (options.weights && count) {
      const Operation check = AssertBroadcastable(*options.weights, count);
      if (!check) return {};
      const ControlDependencies after(g, {check});
      count = Multiply(count, CastArg(g, *options.weights, DT_DOUBLE));
    }
  }
  if (!count) return {};
  const Output sum = ReduceSum(count);
  const Variable v = MetricVariable(g, Shape(), DT_DOUBLE, scope.name());
  return {v, AddTo(v, sum, "update")};
}

// hits / (hits + misses)
Output ShareOfHits(Graph& g, const Source& hits, const Source& misses, absl::string_view name) {
  const Output all = InScope(g, "Add", [&](const std::string& scope) {
    const Output hit = hits();
    return Add(hit, misses(), scope);
  });
  return Ratio(hits, all, name);
}

Metric AtTopK(Output labels, Output predictions_idx, std::optional<int64_t> k,
              const MetricOptions& options, const AtKOptions& at_k, bool recall) {
  if (!labels || !predictions_idx) return {};
  Graph& g = labels.graph();
  const std::string name = AtKName(recall ? "recall" : "precision", k, at_k);
  const NameScope scope(g, options.name.empty() ? name : options.name);
  labels = ExpandLabels(labels, predictions_idx);
  predictions_idx = Cast(predictions_idx, DT_INT64);
  if (!labels || !predictions_idx) return {};
  const Total hits = StreamingCount(predictions_idx, labels, Found::kBoth, k, options, at_k);
  const Total misses =
      StreamingCount(predictions_idx, labels, recall ? Found::kOnlyLabels : Found::kOnlyPredictions,
                     k, options, at_k);
  if (!hits.update || !misses.update) return {};
  const Output value = ShareOfHits(g, From(hits.variable), From(misses.variable), scope.name());
  return Finish({value, ShareOfHits(g, hits.update.source, misses.update.source, "update")},
                options);
}

Metric AtK(Output labels, Output predictions, int64_t k, const MetricOptions& options,
           const AtKOptions& at_k, bool recall) {
  if (!labels || !predictions) return {};
  Graph& g = labels.graph();
  if (k < 1) {
    g.Fail(InvalidArgument("Invalid k=", k, ". `k` should be >= 1."));
    return {};
  }
  const std::string name = AtKName(recall ? "recall" : "precision", k, at_k);
  const NameScope scope(g, options.name.empty() ? name : options.name);
  MetricOptions inside = options;
  inside.name = scope.name();
  return AtTopK(labels, TopK(predictions, k).indices, k, inside, at_k, recall);
}

}  // namespace

Metric RecallAtK(Output labels, Output predictions, int64_t k, const MetricOptions& options,
                 const AtKOptions& at_k) {
  return AtK(labels, predictions, k, options, at_k, /*recall=*/true);
}
Metric PrecisionAtK(Output labels, Output predictions, int64_t k, const MetricOptions& options,
                    const AtKOptions& at_k) {
  return AtK(labels, predictions, k, options, at_k, /*recall=*/false);
}
Metric RecallAtTopK(Output labels, Output predictions_idx, const MetricOptions& options,
                    std::optional<int64_t> k, const AtKOptions& at_k) {
  return AtTopK(labels, predictions_idx, k, options, at_k, /*recall=*/true);
}
Metric PrecisionAtTopK(Output labels, Output predictions_idx, const MetricOptions& options,
                       std::optional<int64_t> k, const AtKOptions& at_k) {
  return AtTopK(labels, predictions_idx, k, options, at_k, /*recall=*/false);
}

}  // namespace weir::metrics
