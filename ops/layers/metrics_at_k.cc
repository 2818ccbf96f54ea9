#include "weir/ops/framework/cond.h"
#include "weir/ops/layers/broadcast_weights.h"
#include "weir/ops/layers/metrics_internal.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/sparse/sets.h"

namespace weir::metrics {

namespace {

std::string AtKName(absl::string_view name, std::optional<int64_t> k, const AtKOptions& at_k) {
  std::string text = absl::StrCat(name, "_at_");
  absl::StrAppend(&text, k ? absl::StrCat(*k) : "k");
  if (at_k.class_id) absl::StrAppend(&text, "_class", *at_k.class_id);
  return text;
}

// Adds a last dimension to labels whose rank is one less than that of the predictions.
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

// Removes all ids but `class_id` from the sets.
SparseTensor SelectClass(const Output& ids, int64_t class_id) {
  Graph& g = ids.graph();
  const Output shape = ShapeTensor(ids, DT_INT64);
  const Output last = Size(shape) - 1;
  const Output one_wide = ReducedShape(shape, Reshape(last, {1}));
  const Output filled = Fill(one_wide, CastArg(g, class_id, DT_INT64));
  SparseTensor result = SetIntersection(filled, ids);
  result.dense_shape = shape;
  return result;
}

enum class IdKind { kBoth, kOnlyLabels, kOnlyPredictions };

// Returns for each example the number of ids of the kind `found`.
Output CountIds(const Output& predictions, const Output& labels, IdKind found,
                const AtKOptions& at_k) {
  SparseTensor ids;
  if (at_k.class_id) {
    const SparseTensor l = SelectClass(labels, *at_k.class_id);
    const SparseTensor p = SelectClass(predictions, *at_k.class_id);
    ids = found == IdKind::kBoth ? SetIntersection(p, l)
                                 : SetDifference(p, l, found == IdKind::kOnlyPredictions);
  } else {
    ids = found == IdKind::kBoth
              ? SetIntersection(predictions, labels)
              : SetDifference(predictions, labels, found == IdKind::kOnlyPredictions);
  }
  const Output size = SetSize(ids);
  return size.valid() ? Cast(size, DT_DOUBLE) : Output();
}

struct Total {
  Variable variable;
  Update update;
};

// Returns the weighted count accumulated over all steps, in the variable "<scope>".
Total StreamingCount(const Output& predictions, const Output& labels, IdKind found,
                     std::optional<int64_t> k, const MetricOptions& options,
                     const AtKOptions& at_k) {
  Graph& g = predictions.graph();
  const char* name = found == IdKind::kBoth         ? "true_positive"
                     : found == IdKind::kOnlyLabels ? "false_negative"
                                                    : "false_positive";
  const NameScope scope(g, AtKName(name, k, at_k));
  Output count;
  {
    const NameScope inner(g, absl::StrCat(name, "s"));
    count = CountIds(predictions, labels, found, at_k);
    if (options.weights && count.valid()) {
      const Operation check = AssertBroadcastable(*options.weights, count);
      if (!check.valid()) return {};
      const ControlDependencies after(g, {check});
      count = Multiply(count, CastArg(g, *options.weights, DT_DOUBLE));
    }
  }
  if (!count.valid()) return {};
  const Output sum = ReduceSum(count);
  const Variable v = MetricVariable(g, Shape(), DT_DOUBLE, scope.name());
  return {v, AddTo(v, sum, "update")};
}

// hits / (hits + misses)
Output HitRatio(Graph& g, const Source& hits, const Source& misses, absl::string_view name) {
  const Output all = InScope(g, "Add", [&](const std::string& scope) {
    const Output hit = hits();
    return Add(hit, misses(), scope);
  });
  return Ratio(hits, all, name);
}

Metric AtTopK(Output labels, Output predictions_idx, std::optional<int64_t> k,
              const MetricOptions& options, const AtKOptions& at_k, bool recall) {
  if (!labels.valid() || !predictions_idx.valid()) return {};
  Graph& g = labels.graph();
  const std::string name = AtKName(recall ? "recall" : "precision", k, at_k);
  const NameScope scope(g, options.name.empty() ? name : options.name);
  labels = ExpandLabels(labels, predictions_idx);
  predictions_idx = Cast(predictions_idx, DT_INT64);
  if (!labels.valid() || !predictions_idx.valid()) return {};
  const Total hits = StreamingCount(predictions_idx, labels, IdKind::kBoth, k, options, at_k);
  const Total misses =
      StreamingCount(predictions_idx, labels,
                     recall ? IdKind::kOnlyLabels : IdKind::kOnlyPredictions, k, options, at_k);
  if (!hits.update || !misses.update) return {};
  const Output value = HitRatio(g, From(hits.variable), From(misses.variable), scope.name());
  return Finish({value, HitRatio(g, hits.update.source, misses.update.source, "update")}, options);
}

Metric AtK(Output labels, Output predictions, int64_t k, const MetricOptions& options,
           const AtKOptions& at_k, bool recall) {
  if (!labels.valid() || !predictions.valid()) return {};
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

// ---- average precision

namespace {

// Replaces labels that are not valid classes by -1, so that they are ignored.
Output MaskInvalidLabels(const Output& labels, const Output& predictions) {
  const Output classes = Cast(StridedSlice(ShapeTensor(predictions), {-1}), DT_INT64);
  const Output any = GreaterEqual(ReduceMax(labels), classes);
  return Cond(
      any,
      [&] {
        const Output beyond = GreaterEqual(labels, classes);
        return SelectV2(beyond, -1 * OnesLike(labels), labels);
      },
      [&] { return labels; });
}

// Repeats the labels of each example `k` times, along a new dimension before the last.
Output RepeatLabels(const Output& labels, int64_t k) {
  Graph& g = labels.graph();
  return InScope(g, "labels_per_k", [&](const std::string& name) -> Output {
    const Output expanded = ExpandDims(labels, -2, "expand");
    if (k == 1) return expanded;
    const Output ones = OnesLike(ShapeTensor(labels));
    const Output before = StridedSlice(ones, {Index::Range(std::nullopt, -1)});
    const Output after = StridedSlice(ones, {Index::Range(-1, std::nullopt)});
    const Output multiples = InScope(g, "multiples", [&](const std::string& inner) {
      const Output number = Const<int32_t>(g, {static_cast<int32_t>(k)}, "values_1");
      return Concat({before, number, after}, 0, inner);
    });
    return Tile(expanded, multiples, name);
  });
}

// Returns how many of `k` predictions could be correct: the number of labels that are valid
// classes, at most k.
Output NumRelevant(const Output& labels, int64_t k) {
  return InScope(labels.graph(), "num_relevant", [&](const std::string& name) {
    const Output valid = GreaterEqual(labels, 0);
    const Output ones = OnesLike(labels);
    const Output number = ReduceSum(SelectV2(valid, ones, ZerosLike(labels)), -1);
    return Minimum(number, k, name);
  });
}

// Returns for each example the sum of the precisions at the ranks that hold a label, divided by the
// number of labels that k predictions could find.
Output AveragePrecision(Output labels, Output predictions_idx, int64_t k) {
  return InScope(labels.graph(), "average_precision", [&](const std::string& name) -> Output {
    predictions_idx = Cast(predictions_idx, DT_INT64, "predictions_idx");
    if (!predictions_idx.valid()) return {};
    labels = ExpandLabels(labels, predictions_idx);
    if (!labels.valid()) return {};
    const Output one_by_one = ExpandDims(predictions_idx, -1, "predictions_idx_per_k");
    const Output repeated = RepeatLabels(labels, k);
    const Output relevant = InScope(labels.graph(), "relevant_per_k", [&](const std::string&) {
      return CountIds(one_by_one, repeated, IdKind::kBoth, {});
    });
    if (!relevant.valid()) return {};
    const Output hits = Cumsum(relevant, -1, {}, "tp_per_k");
    const Output retrieved = Cumsum(OnesLike(relevant), -1, {}, "retrieved_per_k");
    const Output precision = Divide(hits, retrieved, "precision_per_k");
    const Output counted = Multiply(precision, relevant, "relevant_precision_per_k");
    const Output sum = ReduceSum(counted, Ints{-1}, false, "precision_sum");
    const Output possible = Cast(NumRelevant(labels, k), DT_DOUBLE);
    return Divide(sum, possible, name);
  });
}

// Adds a variable "<name>" that accumulates the values that `make` returns for each batch.
template <class Make>
Total StreamingSum(Graph& g, absl::string_view name, const Make& make) {
  const NameScope scope(g, name);
  const Variable v = MetricVariable(g, Shape(), DT_DOUBLE, scope.name());
  return {v, AddTo(v, make(), "update")};
}

}  // namespace

Metric AveragePrecisionAtK(Output labels, Output predictions, int64_t k,
                           const MetricOptions& options) {
  if (!labels.valid() || !predictions.valid()) return {};
  Graph& g = labels.graph();
  if (k < 1) {
    g.Fail(InvalidArgument("Invalid k=", k, ". `k` should be >= 1."));
    return {};
  }
  const std::string name = AtKName("average_precision", k, {});
  const NameScope scope(g, options.name.empty() ? name : options.name);
  const Output best = TopK(predictions, k).indices;
  labels = MaskInvalidLabels(labels, predictions);
  if (!best.valid() || !labels.valid()) return {};
  Output precision = AveragePrecision(labels, best, k);
  if (!precision.valid()) return {};
  Output weights;
  if (options.weights) {
    weights = BroadcastWeights(CastArg(g, *options.weights, DT_DOUBLE), precision);
    precision = Multiply(precision, weights);
    if (!precision.valid()) return {};
  }
  const Total count = StreamingSum(g, "max", [&] {
    return weights.valid() ? ReduceSum(weights, AllAxes(weights), false, "batch_max")
                           : Cast(Size(precision, DT_INT32, "batch_max"), DT_DOUBLE);
  });
  const Total total = StreamingSum(
      g, "total", [&] { return ReduceSum(precision, AllAxes(precision), false, "batch_total"); });
  if (!count.update || !total.update) return {};
  const auto divide = [&g](const Source& t, const Source& c, absl::string_view in) {
    return InScope(g, in, [&](const std::string& name) {
      const Output numerator = t();
      return DivNoNan(numerator, c(), name);
    });
  };
  const Output value = divide(From(total.variable), From(count.variable), "mean");
  return Finish({value, divide(total.update.source, count.update.source, scope.name())}, options);
}

}  // namespace weir::metrics
