#ifndef WEIR_OPS_METRICS_H_
#define WEIR_OPS_METRICS_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph.h"
#include "weir/ops/literal.h"

// Metrics over many steps, as TensorFlow 1's tf.metrics: local variables add up what each batch
// contributes.
//
//   const metrics::Metric accuracy = metrics::Accuracy(labels, predictions);
//   session.Run(LocalVariablesInitializer(g));                  // starts from nothing
//   for (...) session.Run(feeds, {}, {accuracy.update_op});     // a batch each
//   session.Run({accuracy.value});                              // of all batches
//
// The variables ("accuracy/total", "accuracy/count") are in the collections "local_variables" and
// "metric_variables", and nodes have TensorFlow's names. `update_op` gives the value after the
// update. Labels and predictions have one shape, but a last dimension of 1 is taken off if the
// other lacks it. Errors stick to the graph and give invalid Outputs: INVALID_ARGUMENT for shapes
// and arguments that do not fit.
namespace weir::metrics {

struct Metric {
  Output value, update_op;
};

struct MetricOptions {
  // A scalar; or of the values' rank (one more or less is adjusted), each dimension being 1 or
  // theirs.
  std::optional<TensorArg> weights = {};
  // Where `value` and `update_op` go.
  std::vector<std::string> metrics_collections = {}, updates_collections = {};
  // Of the scope; default: the function's name in TensorFlow, "mean".
  std::string name = {};
};

// ---- means

// The weighted mean of all values.
Metric Mean(Output values, const MetricOptions& options = {});
// The same for each element: a tensor like a batch of values.
Metric MeanTensor(Output values, const MetricOptions& options = {});
// How often predictions and labels are equal.
Metric Accuracy(Output labels, Output predictions, const MetricOptions& options = {});
Metric MeanAbsoluteError(Output labels, Output predictions, const MetricOptions& options = {});
Metric MeanSquaredError(Output labels, Output predictions, const MetricOptions& options = {});
Metric RootMeanSquaredError(Output labels, Output predictions, const MetricOptions& options = {});
// |labels - predictions| / normalizer; 0 where that is 0.
Metric MeanRelativeError(Output labels, Output predictions, Output normalizer,
                         const MetricOptions& options = {});
// 1 - the scalar product along `dim`; of unit vectors.
Metric MeanCosineDistance(Output labels, Output predictions, int64_t dim,
                          const MetricOptions& options = {});
// How often values are below the threshold.
Metric PercentageBelow(Output values, double threshold, const MetricOptions& options = {});

// ---- two classes: labels and predictions are cast to bool

Metric TruePositives(Output labels, Output predictions, const MetricOptions& options = {});
Metric FalsePositives(Output labels, Output predictions, const MetricOptions& options = {});
Metric TrueNegatives(Output labels, Output predictions, const MetricOptions& options = {});
Metric FalseNegatives(Output labels, Output predictions, const MetricOptions& options = {});
// Of what was predicted positive, how much is; of what is positive, how much was predicted.
Metric Precision(Output labels, Output predictions, const MetricOptions& options = {});
Metric Recall(Output labels, Output predictions, const MetricOptions& options = {});

// ---- two classes: predictions are numbers in [0, 1], and count as positive above a threshold; one
// result for each threshold. Numbers outside are INVALID_ARGUMENT when run, but, as in TensorFlow,
// only where the predictions are not float32 or a last dimension is taken off.

Metric TruePositivesAtThresholds(Output labels, Output predictions,
                                 const std::vector<float>& thresholds,
                                 const MetricOptions& options = {});
Metric FalsePositivesAtThresholds(Output labels, Output predictions,
                                  const std::vector<float>& thresholds,
                                  const MetricOptions& options = {});
Metric TrueNegativesAtThresholds(Output labels, Output predictions,
                                 const std::vector<float>& thresholds,
                                 const MetricOptions& options = {});
Metric FalseNegativesAtThresholds(Output labels, Output predictions,
                                  const std::vector<float>& thresholds,
                                  const MetricOptions& options = {});
Metric PrecisionAtThresholds(Output labels, Output predictions,
                             const std::vector<float>& thresholds,
                             const MetricOptions& options = {});
Metric RecallAtThresholds(Output labels, Output predictions, const std::vector<float>& thresholds,
                          const MetricOptions& options = {});

enum class Curve { kRoc, kPr };
// How the area is added up: trapezoids; rectangles of the smaller, or of the bigger height; for kPr
// by the interpolation of Davis and Goadrich 2006, which trapezoids overestimate.
enum class Summation { kTrapezoidal, kCarefulInterpolation, kMinoring, kMajoring };
struct AucOptions {
  int64_t num_thresholds = 200;         // evenly spaced
  std::vector<double> thresholds = {};  // in place of these, besides 0 and 1
  Curve curve = Curve::kRoc;
  Summation summation_method = Summation::kTrapezoidal;
};
// The area under the curve of true against false positive rates, or of precision against recall.
Metric Auc(Output labels, Output predictions, const MetricOptions& options = {},
           const AucOptions& auc = {});
// The sensitivity (true positive rate) at the threshold where the specificity (true negative rate)
// is nearest to that given; and the other way round.
Metric SensitivityAtSpecificity(Output labels, Output predictions, double specificity,
                                const MetricOptions& options = {}, int64_t num_thresholds = 200);
Metric SpecificityAtSensitivity(Output labels, Output predictions, double sensitivity,
                                const MetricOptions& options = {}, int64_t num_thresholds = 200);

// ---- many classes: labels and predictions are class numbers in [0, num_classes)

// Intersection over union of what is, and what was predicted as, a class; the mean over the classes
// that occur. `update_op` gives the confusion matrix, "<name>/total_confusion_matrix".
Metric MeanIou(Output labels, Output predictions, int64_t num_classes,
               const MetricOptions& options = {});
// The mean of the classes' accuracies. `update_op` gives these.
Metric MeanPerClassAccuracy(Output labels, Output predictions, int64_t num_classes,
                            const MetricOptions& options = {});
// A matrix whose element [i, j] counts, or weighs, the examples of class i predicted as j. Labels
// and predictions are vectors; their largest value decides the size if num_classes is not given.
// Not over many steps. INVALID_ARGUMENT when run for class numbers out of range.
Output ConfusionMatrix(Output labels, Output predictions, const TensorArg* num_classes = nullptr,
                       Output weights = {}, DataType dtype = DT_INT32, absl::string_view name = {});

// ---- rankings: labels (int64, [..., labels] or [...]) against the k best of predictions (scores,
// [..., classes])

struct AtKOptions {
  std::optional<int64_t> class_id = {};  // only this class counts
};
// How many of the labels are among the k best; how many of the k best are labels.
Metric RecallAtK(Output labels, Output predictions, int64_t k, const MetricOptions& options = {},
                 const AtKOptions& at_k = {});
Metric PrecisionAtK(Output labels, Output predictions, int64_t k, const MetricOptions& options = {},
                    const AtKOptions& at_k = {});
// The same where the k best classes are given, int64 [..., k].
Metric RecallAtTopK(Output labels, Output predictions_idx, const MetricOptions& options = {},
                    std::optional<int64_t> k = {}, const AtKOptions& at_k = {});
Metric PrecisionAtTopK(Output labels, Output predictions_idx, const MetricOptions& options = {},
                       std::optional<int64_t> k = {}, const AtKOptions& at_k = {});
// The mean of the precisions at each of the k ranks that holds a label, as far as labels could have
// been found.
Metric AveragePrecisionAtK(Output labels, Output predictions, int64_t k,
                           const MetricOptions& options = {});

}  // namespace weir::metrics

#endif  // WEIR_OPS_METRICS_H_
