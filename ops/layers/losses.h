#ifndef WEIR_OPS_LAYERS_LOSSES_H_
#define WEIR_OPS_LAYERS_LOSSES_H_

#include <string>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/collections.h"
#include "weir/ops/lib/literal.h"

// Training losses, as in TensorFlow 1's tf.losses. Each compares predictions with labels, weights
// the differences, reduces them to a scalar, and adds that to the collection "losses".
//
//   Output loss = losses::SoftmaxCrossEntropy(labels, logits, {.weights = weights});
//   Operation train = Adam(1e-3).Minimize(losses::GetTotalLoss(g));  // with regularization losses
//
// Nodes have TensorFlow's names. Predictions and labels have the same shape and are cast to float32
// (cross entropies keep the logits' dtype). An error is recorded in the graph, and the loss returns
// an invalid Output: INVALID_ARGUMENT for incompatible shapes and for weights that cannot be
// broadcast. If the shapes are known only at run time, the step fails instead.
namespace WEIR_API weir {
namespace losses {

// How the weighted losses are reduced.
enum class Reduction {
  kNone,                 // no reduction
  kSum,                  // sum
  kSumOverBatchSize,     // sum divided by the number of losses
  kMean,                 // sum divided by the sum of the weights
  kSumByNonzeroWeights,  // sum divided by the number of nonzero weights
};

// Options of all losses.
struct LossOptions {
  // A scalar, or a tensor of the losses' rank in which each dimension is 1 or equal to that of the
  // losses.
  TensorArg weights = 1.0;
  // The name scope; default: the function's name in TensorFlow, for example "mean_squared_error".
  std::string scope = {};
  // The collection that the loss is added to; empty for none.
  std::string loss_collection = collections::kLosses;
  Reduction reduction = Reduction::kSumByNonzeroWeights;
};

// Weights and reduces user-defined losses.
Output ComputeWeightedLoss(Output losses, const LossOptions& options = {});

// |predictions - labels|
Output AbsoluteDifference(Output labels, Output predictions, const LossOptions& options = {});
// 1 - the dot product along `axis`. Expects unit vectors.
Output CosineDistance(Output labels, Output predictions, int64_t axis,
                      const LossOptions& options = {});
// max(1 - (2 labels - 1) logits, 0), where labels are 0 or 1.
Output HingeLoss(Output labels, Output logits, const LossOptions& options = {});
// Quadratic for errors up to delta, linear beyond.
Output HuberLoss(Output labels, Output predictions, double delta = 1,
                 const LossOptions& options = {});
// -labels log(predictions + epsilon) - (1 - labels) log(1 - predictions + epsilon)
Output LogLoss(Output labels, Output predictions, double epsilon = 1e-7,
               const LossOptions& options = {});
// (predictions - labels)^2
Output MeanSquaredError(Output labels, Output predictions, const LossOptions& options = {});
// The squared difference between the differences of all pairs of elements of an example, always
// averaged over the examples with nonzero weights. `reduction` is ignored.
Output MeanPairwiseSquaredError(Output labels, Output predictions, const LossOptions& options = {});

// Labels are independent numbers in [0, 1]. Smoothing moves them toward 1/2.
Output SigmoidCrossEntropy(Output multi_class_labels, Output logits,
                           const LossOptions& options = {}, double label_smoothing = 0);
// Labels are distributions over the last dimension; no gradient flows through them. Smoothing moves
// them toward 1/classes. Weights apply to examples.
Output SoftmaxCrossEntropy(Output onehot_labels, Output logits, const LossOptions& options = {},
                           double label_smoothing = 0);
// Labels are class numbers; weights apply to examples. A last dimension of 1 is removed from labels
// and weights.
Output SparseSoftmaxCrossEntropy(Output labels, Output logits, const LossOptions& options = {});

// Adds a user-defined loss to a collection.
void AddLoss(Output loss, absl::string_view loss_collection = collections::kLosses);
// Return the losses of the collection (or the regularization losses) whose names match `scope`, a
// regular expression anchored at the start. The default is all.
Outputs GetLosses(const Graph& graph, absl::string_view scope = {},
                  absl::string_view loss_collection = collections::kLosses);
Outputs GetRegularizationLosses(const Graph& graph, absl::string_view scope = {});
// Returns the sum of the regularization losses; 0 if there are none.
Output GetRegularizationLoss(Graph& graph, absl::string_view scope = {},
                             absl::string_view name = "total_regularization_loss");
// Returns the sum of all losses. INVALID_ARGUMENT if there are none.
Output GetTotalLoss(Graph& graph, bool add_regularization_losses = true,
                    absl::string_view name = "total_loss", absl::string_view scope = {});

}  // namespace losses
}  // namespace weir

#endif  // WEIR_OPS_LAYERS_LOSSES_H_
