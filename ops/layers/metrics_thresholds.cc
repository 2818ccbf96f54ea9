#include <algorithm>
#include <cstdio>

#include "weir/ops/framework/cond.h"
#include "weir/ops/layers/broadcast_weights.h"
#include "weir/ops/layers/metrics_internal.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"

namespace weir::metrics {

namespace {

constexpr double kEpsilon = 1e-7;

// Fails the step if `condition`, which compares x with y, does not hold for all elements.
Operation AssertHolds(const Output& condition, absl::string_view sign, const Output& x,
                      const Output& y) {
  if (!condition.valid()) return {};
  const Output all = ReduceAll(condition);
  return AssertThat(
      all, {"predictions must be in [0, 1]",
            absl::StrCat("Condition x ", sign, " y did not hold element-wise:"),
            absl::StrCat("x (", x.name(), ") = "), x, absl::StrCat("y (", y.name(), ") = "), y});
}

// Returns ops that fail unless all predictions are in [0, 1]. Returns no ops if one could not be
// built.
std::vector<Operation> AssertProbabilities(const Output& predictions) {
  Graph& g = predictions.graph();
  const auto bound = [&](double value) { return CastArg(g, value, predictions.dtype()); };
  const Output zero = bound(0);
  Operation at_least, at_most;
  {
    const NameScope scope(g, "assert_greater_equal");
    at_least = AssertHolds(GreaterEqual(predictions, zero), ">=", predictions, zero);
  }
  const Output one = bound(1);
  {
    const NameScope scope(g, "assert_less_equal");
    at_most = AssertHolds(LessEqual(predictions, one), "<=", predictions, one);
  }
  if (!at_least.valid() || !at_most.valid()) return {};
  return {at_least, at_most};
}

// The cells of a binary confusion matrix.
enum Cell { kTruePositives, kFalseNegatives, kTrueNegatives, kFalsePositives };
constexpr const char* kCellNames[] = {"true_positives", "false_negatives", "true_negatives",
                                      "false_positives"};

// One variable per requested cell, with one element per threshold.
struct Confusion {
  bool ok = false;
  Variable values[4];
  Update updates[4];

  Source value(Cell cell) const { return From(values[cell]); }
  Source updated(Cell cell) const { return updates[cell].source; }
};

class ConfusionBuilder {
 public:
  ConfusionBuilder(Graph& g, const std::vector<float>& thresholds)
      : g_(g), thresholds_(thresholds), count_(static_cast<int64_t>(thresholds.size())) {}

  Confusion Build(const MetricInputs& in, const std::vector<Cell>& cells) {
    if (!Compare(in, cells)) return {};
    Confusion confusion;
    for (const Cell cell : cells) {
      const Variable v = MetricVariable(g_, Shape({count_}), DT_FLOAT, kCellNames[cell]);
      const bool is_positive = cell == kTruePositives || cell == kFalseNegatives;
      const bool found = cell == kTruePositives || cell == kFalsePositives;
      const Output both = LogicalAnd(labels_[is_positive], predictions_[found]);
      if (!both.valid()) return {};
      Output number = Cast(both, DT_FLOAT);
      if (weights_.valid()) number = number * weights_;
      confusion.values[cell] = v;
      confusion.updates[cell] = AddTo(v, ReduceSum(number, 1));
      if (!confusion.updates[cell]) return {};
    }
    confusion.ok = true;
    return confusion;
  }

 private:
  // Computes two [thresholds, predictions] tensors: which predictions are above which threshold,
  // and which labels are positive.
  bool Compare(const MetricInputs& in, const std::vector<Cell>& cells) {
    const auto any = [&cells](Cell a, Cell b) {
      return std::find(cells.begin(), cells.end(), a) != cells.end() ||
             std::find(cells.begin(), cells.end(), b) != cells.end();
    };
    const Output column = Reshape(in.predictions, {-1, 1});
    const Output row = Reshape(Cast(in.labels, DT_BOOL), {1, -1});
    if (!column.valid() || !row.valid()) return false;
    const Output limits = TileThresholds(ExpandDims(Const(g_, thresholds_), Ints{1}), column);
    predictions_[1] = Greater(Tile(Transpose(column), {count_, 1}), limits);
    if (any(kFalseNegatives, kTrueNegatives)) predictions_[0] = LogicalNot(predictions_[1]);
    labels_[1] = Tile(row, {count_, 1});
    if (any(kFalsePositives, kTrueNegatives)) labels_[0] = LogicalNot(labels_[1]);
    if (!in.weights.valid()) return true;
    const Output weights = BroadcastWeights(Cast(in.weights, DT_FLOAT), in.predictions);
    if (!weights.valid()) return false;
    weights_ = Tile(Reshape(weights, {1, -1}), {count_, 1});
    return weights_.valid();
  }

  // Repeats the thresholds for each prediction.
  Output TileThresholds(const Output& thresholds, const Output& column) {
    if (column.dim(0) >= 0) {
      return Tile(thresholds,
                  Const<int32_t>(g_, {1, static_cast<int32_t>(column.dim(0))}, "stack"));
    }
    const Output number = StridedSlice(ShapeTensor(column), {0});
    const Output multiples = InScope(g_, "stack", [&](const std::string& scope) {
      return AddOp("Pack", {Outputs{Const<int32_t>(g_, 1, "0"), number}}, {}, scope);
    });
    return multiples.valid() ? Tile(thresholds, multiples) : Output();
  }

  Graph& g_;
  const std::vector<float>& thresholds_;
  const int64_t count_;
  Output predictions_[2], labels_[2];  // indexed by [is positive]
  Output weights_;
};

Confusion ConfusionAtThresholds(Output labels, Output predictions,
                                const std::vector<float>& thresholds, const MetricOptions& options,
                                const std::vector<Cell>& cells) {
  Graph& g = predictions.graph();
  if (thresholds.empty()) {
    g.Fail(InvalidArgument("no thresholds given for predictions ", predictions.name()));
    return {};
  }
  const std::vector<Operation> checks = AssertProbabilities(predictions);
  if (checks.empty()) return {};
  MetricInputs in;
  {
    const ControlDependencies after(g, checks);
    predictions = Cast(predictions, DT_FLOAT);
    in = RemoveSqueezable(predictions, Cast(labels, DT_BOOL), options.weights);
  }
  if (!in.ok) return {};
  return ConfusionBuilder(g, thresholds).Build(in, cells);
}

// Returns 0, `inner` and 1, where 0 and 1 are moved outward by an epsilon so that every prediction
// is between two thresholds.
std::vector<float> AddEndpoints(const std::vector<double>& inner, double last = 1 + kEpsilon) {
  std::vector<float> all = {static_cast<float>(0 - kEpsilon)};
  all.insert(all.end(), inner.begin(), inner.end());
  all.push_back(static_cast<float>(last));
  return all;
}

std::vector<double> EvenlySpaced(int64_t num_thresholds) {
  std::vector<double> inner;
  for (int64_t i = 0; i < num_thresholds - 2; ++i)
    inner.push_back(static_cast<double>(i + 1) / static_cast<double>(num_thresholds - 1));
  return inner;
}

constexpr int64_t kMaxThresholds = 1'000'000;
bool CheckThresholds(Graph& g, int64_t num_thresholds) {
  if (num_thresholds >= 2 && num_thresholds <= kMaxThresholds) return true;
  g.Fail(InvalidArgument("num_thresholds must be between 2 and ", kMaxThresholds, ", got ",
                         num_thresholds));
  return false;
}

bool CheckFraction(Graph& g, absl::string_view name, double value) {
  if (value >= 0 && value <= 1) return true;
  g.Fail(InvalidArgument("`", name, "` must be in the range [0, 1]. Currently, `", name, "` got ",
                         value, "."));
  return false;
}

Metric CellAtThresholds(Output labels, Output predictions, const std::vector<float>& thresholds,
                        const MetricOptions& options, Cell cell) {
  if (!labels.valid() || !predictions.valid()) return {};
  const MetricScope scope(labels.graph(), options.name, kCellNames[cell]);
  const Confusion c = ConfusionAtThresholds(labels, predictions, thresholds, options, {cell});
  if (!c.ok) return {};
  return Finish({ValueOf(c.values[cell]), c.updates[cell].value}, options);
}

// hits / (epsilon + hits + misses)
Output RateOf(const Source& hits, const Source& misses, absl::string_view name) {
  const Output hit = hits();
  if (!hit.valid()) return {};
  const Output all = Plus([&] { return kEpsilon + hit; }, misses);
  return Ratio(hits, all, name);
}

Metric RateAtThresholds(Output labels, Output predictions, const std::vector<float>& thresholds,
                        const MetricOptions& options, Cell miss, const std::string& name) {
  if (!labels.valid() || !predictions.valid()) return {};
  const MetricScope scope(labels.graph(), options.name, name + "_at_thresholds");
  const Confusion c =
      ConfusionAtThresholds(labels, predictions, thresholds, options, {kTruePositives, miss});
  if (!c.ok) return {};
  const Output value = RateOf(c.value(kTruePositives), c.value(miss), name + "_value");
  return Finish({value, RateOf(c.updated(kTruePositives), c.updated(miss), name + "_update_op")},
                options);
}

// ---- areas

// AllButLast returns elements 0 to n - 2, and AllButFirst elements 1 to n - 1, of a vector of n
// elements.
Output AllButLast(const Output& x, int64_t n) {
  return StridedSlice(x, {Index::Range(std::nullopt, n - 1)});
}
Output AllButFirst(const Output& x) { return StridedSlice(x, {Index::Range(1, std::nullopt)}); }

// Returns the area under the precision-recall curve between neighboring thresholds, where true and
// false positives are interpolated linearly and precision is their quotient.
Output InterpolatePr(const Source& tp, const Source& fp, const Source& fn, int64_t n) {
  const Output tp_left = AllButLast(tp(), n);
  const Output tp_right = AllButFirst(tp());
  if (!tp_left.valid() || !tp_right.valid()) return {};
  const Output rise = tp_left - tp_right;
  const Output found = Plus(tp, fp);
  const auto left = [&] { return AllButLast(found, n); };
  const auto right = [&] { return AllButFirst(found); };
  const Output run_left = left();
  const Output run = run_left - right();
  const Output slope = DivNoNan(rise, Maximum(run, 0), "prec_slope");
  const Output base = AllButFirst(tp());
  const Output intercept = base - Multiply(slope, right());
  const Output left_positive = left() > 0;
  const Output defined = LogicalAnd(left_positive, right() > 0);
  const Output numerator = left();
  const Output relative = DivNoNan(numerator, Maximum(right(), 0), "recall_relative_ratio");
  const Output ratio = Select(defined, relative, OnesLike(right()));
  const Output logarithm = Log(ratio);
  if (!logarithm.valid()) return {};
  const Output area = slope * (rise + intercept * logarithm);
  const Output hits = AllButFirst(tp());
  const Output positives = hits + AllButFirst(fn());
  const Output increments = DivNoNan(area, Maximum(positives, 0), "pr_auc_increment");
  return increments.valid()
             ? ReduceSum(increments, AllAxes(increments), false, "interpolate_pr_auc")
             : Output();
}

// Integrates y over x. `summation` determines the heights.
Output Integrate(const Output& x, const Output& y, int64_t n, Summation summation,
                 absl::string_view name) {
  const Output left = AllButLast(x, n);
  const Output width = left - AllButFirst(x);
  const Output low = AllButLast(y, n);
  const Output high = AllButFirst(y);
  if (!low.valid() || !high.valid() || !width.valid()) return {};
  const Output height = summation == Summation::kMinoring   ? Minimum(low, high)
                        : summation == Summation::kMajoring ? Maximum(low, high)
                                                            : (low + high) / 2.0;
  const Output areas = Multiply(width, height);
  return areas.valid() ? ReduceSum(areas, AllAxes(areas), false, name) : Output();
}

Output AreaUnder(const std::function<Source(Cell)>& cell, int64_t n, const AucOptions& auc,
                 absl::string_view name) {
  constexpr double kSmall = 1e-6;
  const Source tp = cell(kTruePositives), fn = cell(kFalseNegatives), tn = cell(kTrueNegatives),
               fp = cell(kFalsePositives);
  if (auc.curve == Curve::kPr && auc.summation_method == Summation::kCarefulInterpolation)
    return InterpolatePr(tp, fp, fn, n);
  const Output hits = tp() + kSmall;
  const Output recall = Divide(hits, Plus(tp, fn) + kSmall);
  if (auc.curve == Curve::kRoc) {
    const Output negatives = Plus(fp, tn) + kSmall;
    return Integrate(Divide(fp(), negatives), recall, n, auc.summation_method, name);
  }
  const Output found = tp() + kSmall;
  const Output precision = Divide(found, Plus(tp, fp) + kSmall);
  return Integrate(recall, precision, n, auc.summation_method, name);
}

// ---- operating points

// Returns numerator / (numerator + misses + epsilon) at one threshold.
Output RateAt(const Source& hits, const Source& misses, const Output& index,
              absl::string_view name) {
  const auto at = [&](const Source& x) { return StridedSlice(x(), {Index(index)}); };
  const Output numerator = at(hits);
  const Output again = at(hits);
  const Output all = again + at(misses);
  if (!numerator.valid() || !all.valid()) return {};
  return Divide(numerator, all + kEpsilon, name);
}

// Returns Divide(x, x + y + epsilon) for variables.
Output FractionOf(const Source& x, const Source& y) {
  const Output all = Plus(x, y);
  if (!all.valid()) return {};
  const Output denominator = all + kEpsilon;
  return Divide(x(), denominator);
}

Output Sensitivity(const std::function<Source(Cell)>& cell, double specificity,
                   absl::string_view name) {
  const Output specificities = FractionOf(cell(kTrueNegatives), cell(kFalsePositives));
  if (!specificities.valid()) return {};
  const Output index = Cast(ArgMin(Abs(specificities - specificity), 0), DT_INT32);
  return RateAt(cell(kTruePositives), cell(kFalseNegatives), index, name);
}

// Selects the last of the nearest thresholds: the cumulative sum of the matches first reaches its
// maximum there.
Output Specificity(const std::function<Source(Cell)>& cell, double sensitivity,
                   absl::string_view name) {
  const Output sensitivities = FractionOf(cell(kTruePositives), cell(kFalseNegatives));
  if (!sensitivities.valid()) return {};
  const Output least = ReduceMin(Abs(sensitivities - sensitivity));
  const Output nearest = Equal(Abs(sensitivities - sensitivity), least);
  const Output marks = Cumsum(Cast(nearest, DT_INT64));
  const Output index = Cast(ArgMax(marks, 0), DT_INT32);
  return RateAt(cell(kTrueNegatives), cell(kFalsePositives), index, name);
}

const std::vector<Cell>& AllCells() {
  static const auto* const cells =
      new std::vector<Cell>{kTruePositives, kFalseNegatives, kTrueNegatives, kFalsePositives};
  return *cells;
}

// Applies `make` to the values and to the updated values.
template <class Make>
Metric FromConfusion(const Confusion& c, const MetricOptions& options, const Make& make) {
  if (!c.ok) return {};
  const Output value = make([&c](Cell cell) { return c.value(cell); }, "value");
  return Finish({value, make([&c](Cell cell) { return c.updated(cell); }, "update_op")}, options);
}

}  // namespace

Metric TruePositivesAtThresholds(Output labels, Output predictions,
                                 const std::vector<float>& thresholds,
                                 const MetricOptions& options) {
  return CellAtThresholds(labels, predictions, thresholds, options, kTruePositives);
}
Metric FalsePositivesAtThresholds(Output labels, Output predictions,
                                  const std::vector<float>& thresholds,
                                  const MetricOptions& options) {
  return CellAtThresholds(labels, predictions, thresholds, options, kFalsePositives);
}
Metric TrueNegativesAtThresholds(Output labels, Output predictions,
                                 const std::vector<float>& thresholds,
                                 const MetricOptions& options) {
  return CellAtThresholds(labels, predictions, thresholds, options, kTrueNegatives);
}
Metric FalseNegativesAtThresholds(Output labels, Output predictions,
                                  const std::vector<float>& thresholds,
                                  const MetricOptions& options) {
  return CellAtThresholds(labels, predictions, thresholds, options, kFalseNegatives);
}
Metric PrecisionAtThresholds(Output labels, Output predictions,
                             const std::vector<float>& thresholds, const MetricOptions& options) {
  return RateAtThresholds(labels, predictions, thresholds, options, kFalsePositives, "precision");
}
Metric RecallAtThresholds(Output labels, Output predictions, const std::vector<float>& thresholds,
                          const MetricOptions& options) {
  return RateAtThresholds(labels, predictions, thresholds, options, kFalseNegatives, "recall");
}

Metric Auc(Output labels, Output predictions, const MetricOptions& options, const AucOptions& auc) {
  if (!labels.valid() || !predictions.valid()) return {};
  Graph& g = labels.graph();
  const MetricScope scope(g, options.name, "auc");
  if (!CheckThresholds(g, auc.num_thresholds)) return {};
  if (auc.curve == Curve::kPr && auc.summation_method == Summation::kTrapezoidal) {
    std::fprintf(stderr,
                 "weir: the trapezoidal rule overestimates the area under the precision-recall "
                 "curve; see Summation::kCarefulInterpolation\n");
  }
  std::vector<double> inner = auc.thresholds;
  std::sort(inner.begin(), inner.end());
  const std::vector<float> thresholds =
      AddEndpoints(inner.empty() ? EvenlySpaced(auc.num_thresholds) : inner);
  const int64_t n = static_cast<int64_t>(thresholds.size());
  return FromConfusion(ConfusionAtThresholds(labels, predictions, thresholds, options, AllCells()),
                       options,
                       [&](const std::function<Source(Cell)>& cell, absl::string_view name) {
                         return AreaUnder(cell, n, auc, name);
                       });
}

Metric SensitivityAtSpecificity(Output labels, Output predictions, double specificity,
                                const MetricOptions& options, int64_t num_thresholds) {
  if (!labels.valid() || !predictions.valid()) return {};
  Graph& g = labels.graph();
  if (!CheckFraction(g, "specificity", specificity) || !CheckThresholds(g, num_thresholds))
    return {};
  const MetricScope scope(g, options.name, "sensitivity_at_specificity");
  return FromConfusion(
      ConfusionAtThresholds(labels, predictions, AddEndpoints(EvenlySpaced(num_thresholds)),
                            options, AllCells()),
      options, [&](const std::function<Source(Cell)>& cell, absl::string_view name) {
        return Sensitivity(cell, specificity, name);
      });
}

Metric SpecificityAtSensitivity(Output labels, Output predictions, double sensitivity,
                                const MetricOptions& options, int64_t num_thresholds) {
  if (!labels.valid() || !predictions.valid()) return {};
  Graph& g = labels.graph();
  if (!CheckFraction(g, "sensitivity", sensitivity) || !CheckThresholds(g, num_thresholds))
    return {};
  const MetricScope scope(g, options.name, "specificity_at_sensitivity");
  const std::vector<float> thresholds = AddEndpoints(EvenlySpaced(num_thresholds), 1 - kEpsilon);
  return FromConfusion(ConfusionAtThresholds(labels, predictions, thresholds, options, AllCells()),
                       options,
                       [&](const std::function<Source(Cell)>& cell, absl::string_view name) {
                         return Specificity(cell, sensitivity, name);
                       });
}

}  // namespace weir::metrics
