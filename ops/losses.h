#ifndef WEIR_OPS_LOSSES_H_
#define WEIR_OPS_LOSSES_H_

#include <string>

#include "weir/core/graph.h"
#include "weir/ops/collections.h"
#include "weir/ops/literal.h"

// Losses for training, as TensorFlow 1's tf.losses: each compares predictions with labels, weighs
// the differences, adds them up to a scalar, and puts that into the collection "losses".
//
//   Output loss = losses::SoftmaxCrossEntropy(labels, logits, {.weights = weights});
//   Operation train = Adam(1e-3).Minimize(losses::GetTotalLoss(g));  // with regularization losses
//
// Nodes have TensorFlow's names. Predictions and labels have one shape; they are cast to float32
// (cross entropies keep the logits' type). Errors stick to the graph and give an invalid Output:
// INVALID_ARGUMENT for shapes that are not compatible, and for weights that do not fit, which are
// refused when run if it shows only then.
namespace weir::losses {

// What becomes of the weighted losses.
enum class Reduction {
  kNone,                 // they stay as they are
  kSum,                  // their sum
  kSumOverBatchSize,     // divided by the number of losses
  kMean,                 // divided by the sum of the weights
  kSumByNonzeroWeights,  // divided by the number of weights that are not 0
};

struct LossOptions {
  // A scalar; or of the losses' rank, each dimension being 1 or theirs.
  TensorArg weights = 1.0;
  // Of the nodes; default: the function's name in TensorFlow, "mean_squared_error".
  std::string scope = {};
  // Where the loss goes; empty for nowhere.
  std::string loss_collection = collections::kLosses;
  Reduction reduction = Reduction::kSumByNonzeroWeights;
};

// Losses of one's own, weighted and reduced.
Output ComputeWeightedLoss(Output losses, const LossOptions& options = {});

// |predictions - labels|
Output AbsoluteDifference(Output labels, Output predictions, const LossOptions& options = {});
// 1 - the scalar product along `axis`; of unit vectors.
Output CosineDistance(Output labels, Output predictions, int64_t axis,
                      const LossOptions& options = {});
// max(1 - (2 labels - 1) logits, 0), labels being 0 or 1.
Output HingeLoss(Output labels, Output logits, const LossOptions& options = {});
// Quadratic for errors up to delta, linear beyond.
Output HuberLoss(Output labels, Output predictions, double delta = 1,
                 const LossOptions& options = {});
// -labels log(predictions + epsilon) - (1 - labels) log(1 - predictions + epsilon)
Output LogLoss(Output labels, Output predictions, double epsilon = 1e-7,
               const LossOptions& options = {});
// (predictions - labels)^2
Output MeanSquaredError(Output labels, Output predictions, const LossOptions& options = {});
// The squared difference between the differences of all pairs of elements of an example; always
// the mean over examples with weights that are not 0. `reduction` plays no part.
Output MeanPairwiseSquaredError(Output labels, Output predictions, const LossOptions& options = {});

// Labels are numbers in [0, 1], independent of each other; smoothing moves them toward 1/2.
Output SigmoidCrossEntropy(Output multi_class_labels, Output logits,
                           const LossOptions& options = {}, double label_smoothing = 0);
// Labels are distributions over the last dimension, through which no gradient goes; smoothing moves
// them toward 1/classes. Weights are for examples.
Output SoftmaxCrossEntropy(Output onehot_labels, Output logits, const LossOptions& options = {},
                           double label_smoothing = 0);
// Labels are class numbers; weights are for examples. A last dimension of 1 is taken off labels and
// weights.
Output SparseSoftmaxCrossEntropy(Output labels, Output logits, const LossOptions& options = {});

// Adds a loss of one's own to a collection.
void AddLoss(Output loss, absl::string_view loss_collection = collections::kLosses);
// The losses of the collection (the regularization losses) whose names match `scope` as a regular
// expression anchored at the start; all by default.
Outputs GetLosses(const Graph& graph, absl::string_view scope = {},
                  absl::string_view loss_collection = collections::kLosses);
Outputs GetRegularizationLosses(const Graph& graph, absl::string_view scope = {});
// Their sum; 0 if there are none.
Output GetRegularizationLoss(Graph& graph, absl::string_view scope = {},
                             absl::string_view name = "total_regularization_loss");
// The sum of all losses. INVALID_ARGUMENT if there are none.
Output GetTotalLoss(Graph& graph, bool add_regularization_losses = true,
                    absl::string_view name = "total_loss", absl::string_view scope = {});

}  // namespace weir::losses

#endif  // WEIR_OPS_LOSSES_H_
