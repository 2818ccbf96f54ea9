#ifndef WEIR_OPS_LAYERS_METRICS_H_
#define WEIR_OPS_LAYERS_METRICS_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/literal.h"

// Metrics accumulated over many steps, as in TensorFlow 1's tf.metrics. Local variables accumulate
// the contribution of each batch.
//
//   const metrics::Metric accuracy = metrics::Accuracy(labels, predictions);
//   session.Run(LocalVariablesInitializer(g));                  // reset the metric
//   for (...) session.Run(feeds, {}, {accuracy.update_op});     // one batch per step
//   session.Run({accuracy.value});                              // over all batches
//
// The variables ("accuracy/total", "accuracy/count") are in the collections "local_variables" and
// "metric_variables", and nodes have TensorFlow's names. `update_op` returns the value after the
// update. Labels and predictions have the same shape, except that a last dimension of 1 is squeezed
// if the other one lacks it. Errors are recorded in the graph and return invalid Outputs:
// INVALID_ARGUMENT for incompatible shapes and arguments.
namespace WEIR_API weir {
namespace metrics {

// What a metric returns: its value over all batches so far, and the operation that adds a batch.
struct Metric {
  Output value, update_op;  // of the metric's shape: a scalar, unless it says otherwise
};

// Options of all metrics.
struct MetricOptions {
  // A scalar, or a tensor whose rank equals the rank of the values (a difference of one is
  // adjusted) and whose dimensions are each 1 or equal to those of the values.
  std::optional<TensorArg> weights = {};
  // The collections to which `value` and `update_op` are added.
  std::vector<std::string> metrics_collections = {}, updates_collections = {};
  // The name of the scope. Default: the name of TensorFlow's function, such as "mean".
  std::string name = {};
};

// ---- means

// Returns the weighted mean of all values.
Metric Mean(Output values, const MetricOptions& options = {});
// Returns the elementwise weighted mean: a tensor with the shape of one batch of values.
Metric MeanTensor(Output values, const MetricOptions& options = {});
// Returns the fraction of predictions that equal their labels.
Metric Accuracy(Output labels, Output predictions, const MetricOptions& options = {});
Metric MeanAbsoluteError(Output labels, Output predictions, const MetricOptions& options = {});
Metric MeanSquaredError(Output labels, Output predictions, const MetricOptions& options = {});
Metric RootMeanSquaredError(Output labels, Output predictions, const MetricOptions& options = {});
// Returns the mean of |labels - predictions| / normalizer; an element is 0 where its normalizer is
// 0.
Metric MeanRelativeError(Output labels, Output predictions, Output normalizer,
                         const MetricOptions& options = {});
// Returns 1 - the dot product along `dim`, for unit vectors.
Metric MeanCosineDistance(Output labels, Output predictions, int64_t dim,
                          const MetricOptions& options = {});
// Returns the fraction of values below the threshold.
Metric PercentageBelow(Output values, double threshold, const MetricOptions& options = {});

// ---- binary classification: labels and predictions are cast to bool

Metric TruePositives(Output labels, Output predictions, const MetricOptions& options = {});
Metric FalsePositives(Output labels, Output predictions, const MetricOptions& options = {});
Metric TrueNegatives(Output labels, Output predictions, const MetricOptions& options = {});
Metric FalseNegatives(Output labels, Output predictions, const MetricOptions& options = {});
// Precision: the fraction of predicted positives that are positive. Recall: the fraction of
// positives that are predicted positive.
Metric Precision(Output labels, Output predictions, const MetricOptions& options = {});
Metric Recall(Output labels, Output predictions, const MetricOptions& options = {});

// ---- binary classification with thresholds: predictions are numbers in [0, 1] and count as
// positive above a threshold; there is one result per threshold. Numbers outside [0, 1] are
// INVALID_ARGUMENT at run time, but, as in TensorFlow, only if the predictions are not float32 or a
// last dimension is squeezed.

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

// The curve of Auc: true against false positive rates, or precision against recall.
enum class Curve { kRoc, kPr };
// How the area is summed: by trapezoids; by rectangles of the smaller (minoring) or of the larger
// height (majoring); or, for kPr, by the interpolation of Davis and Goadrich 2006, where trapezoids
// overestimate the area.
enum class Summation { kTrapezoidal, kCarefulInterpolation, kMinoring, kMajoring };
struct AucOptions {
  int64_t num_thresholds = 200;         // evenly spaced
  std::vector<double> thresholds = {};  // replace the evenly spaced ones; 0 and 1 are added
  Curve curve = Curve::kRoc;            // whose area is computed
  Summation summation_method = Summation::kTrapezoidal;  // how
};
// Returns the area under the curve of true against false positive rates (ROC), or of precision
// against recall (PR).
Metric Auc(Output labels, Output predictions, const MetricOptions& options = {},
           const AucOptions& auc = {});
// SensitivityAtSpecificity returns the sensitivity (true positive rate) at the threshold where the
// specificity (true negative rate) is nearest to the given one. SpecificityAtSensitivity does the
// reverse.
Metric SensitivityAtSpecificity(Output labels, Output predictions, double specificity,
                                const MetricOptions& options = {}, int64_t num_thresholds = 200);
Metric SpecificityAtSensitivity(Output labels, Output predictions, double sensitivity,
                                const MetricOptions& options = {}, int64_t num_thresholds = 200);

// ---- multiclass classification: labels and predictions are class numbers in [0, num_classes)

// Returns the mean intersection over union (of the examples labeled as a class and those predicted
// as it) over the classes that occur. `update_op` returns the confusion matrix,
// "<name>/total_confusion_matrix".
Metric MeanIou(Output labels, Output predictions, int64_t num_classes,
               const MetricOptions& options = {});
// Returns the mean of the per-class accuracies. `update_op` returns the per-class accuracies.
Metric MeanPerClassAccuracy(Output labels, Output predictions, int64_t num_classes,
                            const MetricOptions& options = {});
// Returns a matrix whose element [i, j] is the number, or total weight, of the examples of class i
// predicted as j. Labels and predictions are vectors. If num_classes is not given, their largest
// value determines the size. The matrix is not accumulated over steps. INVALID_ARGUMENT at run time
// for class numbers out of range.
Output ConfusionMatrix(Output labels, Output predictions, const TensorArg* num_classes = nullptr,
                       Output weights = {}, DataType dtype = DT_INT32, absl::string_view name = {});

// ---- ranking: labels (int64, [..., labels] or [...]) against the k best predictions (scores,
// [..., classes])

struct AtKOptions {
  std::optional<int64_t> class_id = {};  // counts only this class
};
// Recall: the fraction of labels that are among the k best classes. Precision: the fraction of the
// k best classes that are labels.
Metric RecallAtK(Output labels, Output predictions, int64_t k, const MetricOptions& options = {},
                 const AtKOptions& at_k = {});
Metric PrecisionAtK(Output labels, Output predictions, int64_t k, const MetricOptions& options = {},
                    const AtKOptions& at_k = {});
// Like RecallAtK and PrecisionAtK, but the k best classes are given, int64 [..., k].
Metric RecallAtTopK(Output labels, Output predictions_idx, const MetricOptions& options = {},
                    std::optional<int64_t> k = {}, const AtKOptions& at_k = {});
Metric PrecisionAtTopK(Output labels, Output predictions_idx, const MetricOptions& options = {},
                       std::optional<int64_t> k = {}, const AtKOptions& at_k = {});
// Returns the mean average precision: for each example, the sum of the precisions at those of the k
// ranks that hold a label, divided by the number of labels that k predictions could find.
Metric AveragePrecisionAtK(Output labels, Output predictions, int64_t k,
                           const MetricOptions& options = {});

}  // namespace metrics
}  // namespace weir

#endif  // WEIR_OPS_LAYERS_METRICS_H_
