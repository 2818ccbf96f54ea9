// Compares weir::metrics with the graphs of tf.metrics (make_layer_goldens.py).

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variable_scope.h"
#include "weir/ops/layers/metrics.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/ops/lib/goldens.h"

namespace weir {
namespace {

Output In(Graph& g, absl::string_view name, const Shape& shape = Shape::UnknownRank(),
          DataType dtype = DT_FLOAT) {
  return Placeholder(g, dtype, shape, name);
}

// Labels and predictions of four examples.
struct Pair {
  Pair(Graph& g, DataType x_type, DataType y_type)
      : x(In(g, "x", {4}, x_type)), y(In(g, "y", {4}, y_type)) {}
  Output x, y;
};

void Mean(Graph& g) {
  const Output x = In(g, "x", {4, 3});
  metrics::Mean(x);
  metrics::Mean(x, {.weights = In(g, "w", {4, 1})});
  metrics::Mean(x, {.weights = In(g, "s", Shape())});
  metrics::Mean(x, {.weights = 2.0});
  metrics::Mean(x, {.weights = In(g, "full", {4, 3}, DT_DOUBLE)});
  const Output i = In(g, "i", {5}, DT_INT32);
  metrics::Mean(i, {.weights = In(g, "narrow", {5, 1}),
                    .metrics_collections = {"m", "all"},
                    .updates_collections = {"u"},
                    .name = "named"});
  {
    const NameScope outer(g, "outer");
    metrics::Mean(x);
  }
  const VariableScope scope(g, "vs");
  metrics::Mean(In(g, "open", {-1, 3}));
}

void MeanOfUnknownRank(Graph& g) {
  const Output x = In(g, "x");
  metrics::Mean(x, {.weights = In(g, "w")});
  const Output labels = In(g, "labels", Shape::UnknownRank(), DT_INT32);
  metrics::Accuracy(labels, In(g, "predictions", Shape::UnknownRank(), DT_INT32));
}

void MeanTensor(Graph& g) {
  const Output x = In(g, "x", {4, 3});
  metrics::MeanTensor(x);
  metrics::MeanTensor(x, {.weights = In(g, "w", {4, 1}), .updates_collections = {"u"}});
}

void Accuracy(Graph& g) {
  const Output y = In(g, "y", {4}, DT_INT64);
  metrics::Accuracy(y, In(g, "same", {4}, DT_INT64));
  const Output other = In(g, "other", {4, 1}, DT_INT32);
  metrics::Accuracy(y, other, {.weights = In(g, "w", {4})});
  const Output ys = In(g, "ys", {-1}, DT_INT64);
  metrics::Accuracy(ys, In(g, "xs", {-1}, DT_INT64),
                    {.metrics_collections = {"m"}, .updates_collections = {"u"}, .name = "acc"});
}

void Errors(Graph& g) {
  const Output x = In(g, "x", {4, 3}), y = In(g, "y", {4, 3}), w = In(g, "w", {4, 3});
  const metrics::MetricOptions collected = {.metrics_collections = {"m"},
                                            .updates_collections = {"u"}};
  metrics::MeanAbsoluteError(y, x);
  metrics::MeanSquaredError(y, x, {.weights = w});
  metrics::RootMeanSquaredError(y, x, collected);
  metrics::MeanCosineDistance(y, x, 1, collected);
  metrics::MeanRelativeError(y, x, In(g, "n", {4, 3}));
  metrics::PercentageBelow(x, 0.5);
  metrics::PercentageBelow(x, 0.5, {.weights = w});
}

void Counts(Graph& g) {
  const Pair p(g, DT_BOOL, DT_BOOL);
  metrics::TruePositives(p.y, p.x, {.metrics_collections = {"m"}, .updates_collections = {"u"}});
  metrics::FalsePositives(p.y, p.x);
  metrics::TrueNegatives(p.y, p.x);
  metrics::FalseNegatives(p.y, p.x);
  const Output f = In(g, "f", {4, 1});
  metrics::TruePositives(p.y, f, {.weights = In(g, "w", {4})});
  metrics::FalseNegatives(p.y, p.x, {.weights = 0.5, .name = "named"});
}

void PrecisionAndRecall(Graph& g) {
  const Pair p(g, DT_BOOL, DT_INT32);
  metrics::Precision(p.y, p.x);
  metrics::Recall(p.y, p.x, {.metrics_collections = {"m"}, .updates_collections = {"u"}});
  metrics::Precision(p.y, p.x, {.weights = In(g, "w", {4})});
  metrics::Recall(p.y, p.x, {.weights = In(g, "v", {4})});
}

void Thresholds(Graph& g) {
  const Pair p(g, DT_FLOAT, DT_BOOL);
  const std::vector<float> limits = {0.25f, 0.75f};
  metrics::TruePositivesAtThresholds(p.y, p.x, limits);
  metrics::FalsePositivesAtThresholds(p.y, p.x, limits);
  metrics::TrueNegativesAtThresholds(p.y, p.x, limits);
  metrics::FalseNegativesAtThresholds(p.y, p.x, limits,
                                      {.metrics_collections = {"m"}, .updates_collections = {"u"}});
  metrics::PrecisionAtThresholds(p.y, p.x, limits, {.weights = In(g, "w", {4})});
  metrics::RecallAtThresholds(p.y, p.x, limits);
}

void Auc(Graph& g) {
  using metrics::Curve, metrics::Summation;
  const Pair p(g, DT_FLOAT, DT_BOOL);
  metrics::Auc(p.y, p.x, {.metrics_collections = {"m"}, .updates_collections = {"u"}});
  metrics::Auc(p.y, p.x, {.weights = In(g, "w", {4})}, {.num_thresholds = 5, .curve = Curve::kPr});
  metrics::Auc(p.y, p.x, {},
               {.num_thresholds = 5,
                .curve = Curve::kPr,
                .summation_method = Summation::kCarefulInterpolation});
  metrics::Auc(p.y, p.x, {}, {.num_thresholds = 5, .summation_method = Summation::kMinoring});
  metrics::Auc(p.y, p.x, {}, {.thresholds = {0.7, 0.3}, .summation_method = Summation::kMajoring});
  const Output ys = In(g, "ys", {-1, 1});
  metrics::Auc(ys, In(g, "xs", {-1, 1}), {}, {.num_thresholds = 5});
}

void OperatingPoints(Graph& g) {
  const Pair p(g, DT_FLOAT, DT_BOOL);
  metrics::SensitivityAtSpecificity(p.y, p.x, 0.7, {}, 5);
  metrics::SpecificityAtSensitivity(p.y, p.x, 0.7, {.weights = In(g, "w", {4})}, 5);
}

void Classes(Graph& g) {
  const Pair p(g, DT_INT64, DT_INT64);
  metrics::MeanIou(p.y, p.x, 3);
  const Output y2 = In(g, "y2", {2, 2}, DT_INT32), x2 = In(g, "x2", {2, 2}, DT_INT32);
  metrics::MeanIou(
      y2, x2, 3,
      {.weights = In(g, "w2", {2, 2}), .metrics_collections = {"m"}, .updates_collections = {"u"}});
  metrics::MeanPerClassAccuracy(p.y, p.x, 3);
  const Output xi = In(g, "xi", {4}, DT_INT32);
  metrics::MeanPerClassAccuracy(p.y, xi, 3, {.weights = In(g, "w", {4})});
}

void AtK(Graph& g) {
  const Output x = In(g, "x", {4, 5}), y = In(g, "y", {4, 2}, DT_INT64);
  metrics::RecallAtK(y, x, 2);
  metrics::PrecisionAtK(y, x, 2, {.metrics_collections = {"m"}, .updates_collections = {"u"}});
  metrics::RecallAtK(In(g, "y1", {4}, DT_INT64), x, 2, {}, {.class_id = 1});
  metrics::PrecisionAtK(y, x, 2, {.weights = In(g, "w", {4})});
  metrics::AveragePrecisionAtK(y, x, 2);
  metrics::AveragePrecisionAtK(y, x, 2, {.weights = In(g, "v", {4})});
}

const GoldenProgram kPrograms[] = {
    {"metric_mean", Mean},
    {"metric_mean_of_unknown_rank", MeanOfUnknownRank},
    {"metric_mean_tensor", MeanTensor},
    {"metric_accuracy", Accuracy},
    {"metric_errors", Errors},
    {"metric_counts", Counts},
    {"metric_precision_and_recall", PrecisionAndRecall},
    {"metric_thresholds", Thresholds},
    {"metric_auc", Auc},
    {"metric_operating_points", OperatingPoints},
    {"metric_classes", Classes},
    {"metric_at_k", AtK},
};

INSTANTIATE_TEST_SUITE_P(Metrics, GoldenTest, GoldensOf(kPrograms), GoldenName);

}  // namespace
}  // namespace weir
