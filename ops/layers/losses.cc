#include "weir/ops/layers/losses.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/layers/broadcast_weights.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"

namespace weir::losses {

namespace {

absl::string_view NameOr(absl::string_view name, absl::string_view otherwise) {
  return name.empty() ? otherwise : name;
}

// Returns the options for the last step of a loss, with the scope that the loss has opened.
LossOptions WithScope(const NameScope& scope, const LossOptions& options) {
  LossOptions inside = options;
  inside.scope = scope.name();
  return inside;
}

// Returns all axes but the first, computed at run time.
Output AxesOfExamples(Output x) { return Range(x.graph(), 1, Rank(x), 1); }

Output SafeMean(Output losses, Output num_present) {
  return DivNoNan(ReduceSum(losses), num_present, "value");
}

// Returns the number of nonzero weights after broadcasting, in total or for each example.
Output NumPresent(Output losses, Output weights, bool per_batch = false) {
  if (!losses.valid() || !weights.valid()) return {};
  const NameScope scope(losses.graph(), "num_present");
  const Output absent = Equal(weights, 0);
  const Output zeros = ZerosLike(weights);
  const Output present = BroadcastWeights(Select(absent, zeros, OnesLike(weights)), losses);
  if (!present.valid()) return {};
  return ReduceSum(present, per_batch ? AxesOfExamples(present) : AllAxes(present), per_batch,
                   scope.name());
}

Output NumElements(Output losses) {
  if (!losses.valid()) return {};
  const NameScope scope(losses.graph(), "num_elements");
  return Cast(Size(losses, DT_INT32, scope.name()), losses.dtype());
}

Output Reduce(Output losses, Output weights, Output weighted, Reduction reduction) {
  if (!weighted.valid() || reduction == Reduction::kNone) return weighted;
  const Output sum = ReduceSum(weighted);
  switch (reduction) {
    case Reduction::kMean:
      return SafeMean(sum, ReduceSum(OnesLike(losses) * weights));
    case Reduction::kSumByNonzeroWeights:
      return SafeMean(sum, NumPresent(losses, weights));
    case Reduction::kSumOverBatchSize:
      return SafeMean(sum, NumElements(losses));
    default:
      return sum;
  }
}

// Converts labels and predictions to float32, and checks that their shapes are compatible.
struct Pair {
  Output labels, predictions;
  explicit operator bool() const { return labels.valid() && predictions.valid(); }
};

Pair FloatPair(Output labels, Output predictions) {
  if (!labels.valid() || !predictions.valid()) return {};
  predictions = Cast(predictions, DT_FLOAT);
  labels = Cast(labels, DT_FLOAT);
  return CheckCompatible(predictions, labels) ? Pair{labels, predictions} : Pair{};
}

// Converts labels to the dtype of the logits, and checks that their shapes are compatible.
Output LabelsFor(Output logits, Output labels) {
  if (!logits.valid() || !labels.valid()) return {};
  labels = Cast(labels, logits.dtype());
  return CheckCompatible(logits, labels) ? labels : Output();
}

}  // namespace

Output ComputeWeightedLoss(Output losses, const LossOptions& options) {
  if (!losses.valid()) return {};
  Graph& g = losses.graph();
  const NameScope scope(g, NameOr(options.scope, "weighted_loss"));
  const Operation check = AssertBroadcastable(options.weights, losses);
  if (!check.valid()) return {};
  const ControlDependencies after(g, {check});
  const DataType dtype = losses.dtype();
  losses = Cast(losses, DT_FLOAT);
  const Output weights = CastArg(g, options.weights, DT_FLOAT);
  const Output weighted = Multiply(losses, weights);
  const Output reduced = Reduce(losses, weights, weighted, options.reduction);
  const Output loss = reduced.valid() ? Cast(reduced, dtype) : Output();
  AddLoss(loss, options.loss_collection);
  return loss;
}

Output AbsoluteDifference(Output labels, Output predictions, const LossOptions& options) {
  if (!predictions.valid()) return {};
  const NameScope scope(predictions.graph(), NameOr(options.scope, "absolute_difference"));
  const Pair p = FloatPair(labels, predictions);
  if (!p) return {};
  return ComputeWeightedLoss(Abs(Subtract(p.predictions, p.labels)), WithScope(scope, options));
}

Output CosineDistance(Output labels, Output predictions, int64_t axis, const LossOptions& options) {
  if (!predictions.valid()) return {};
  const NameScope scope(predictions.graph(), NameOr(options.scope, "cosine_distance_loss"));
  const Pair p = FloatPair(labels, predictions);
  if (!p) return {};
  const Output products = Multiply(p.predictions, p.labels);
  const Output product = ReduceSum(products, Ints{axis}, /*keep_dims=*/true);
  return product.valid() ? ComputeWeightedLoss(1 - product, WithScope(scope, options)) : Output();
}

Output HingeLoss(Output labels, Output logits, const LossOptions& options) {
  if (!logits.valid()) return {};
  const NameScope scope(logits.graph(), NameOr(options.scope, "hinge_loss"));
  const Pair p = FloatPair(labels, logits);
  if (!p) return {};
  const Output ones = OnesLike(p.labels);
  const Output signs = Subtract(2 * p.labels, ones);
  const Output losses = Relu(Subtract(ones, Multiply(signs, p.predictions)));
  return ComputeWeightedLoss(losses, WithScope(scope, options));
}

Output HuberLoss(Output labels, Output predictions, double delta, const LossOptions& options) {
  if (!predictions.valid()) return {};
  Graph& g = predictions.graph();
  const NameScope scope(g, NameOr(options.scope, "huber_loss"));
  const Pair p = FloatPair(labels, predictions);
  if (!p) return {};
  const Output error = Abs(Subtract(p.predictions, p.labels));
  const Output quadratic = Minimum(error, delta);
  const Output linear = Subtract(error, quadratic);
  const Output half = Const(g, 0.5f);
  const Output square = Multiply(half, Multiply(quadratic, quadratic));
  return ComputeWeightedLoss(Add(square, Multiply(delta, linear)), WithScope(scope, options));
}

Output LogLoss(Output labels, Output predictions, double epsilon, const LossOptions& options) {
  if (!predictions.valid()) return {};
  const NameScope scope(predictions.graph(), NameOr(options.scope, "log_loss"));
  const Pair p = FloatPair(labels, predictions);
  if (!p) return {};
  const Output positive = -Multiply(p.labels, Log(p.predictions + epsilon));
  const Output complement = 1 - p.labels;
  const Output negative = Multiply(complement, Log((1 - p.predictions) + epsilon));
  return ComputeWeightedLoss(positive - negative, WithScope(scope, options));
}

Output MeanSquaredError(Output labels, Output predictions, const LossOptions& options) {
  if (!predictions.valid()) return {};
  const NameScope scope(predictions.graph(), NameOr(options.scope, "mean_squared_error"));
  const Pair p = FloatPair(labels, predictions);
  if (!p) return {};
  return ComputeWeightedLoss(SquaredDifference(p.predictions, p.labels), WithScope(scope, options));
}

// For n differences d in an example, the mean over pairs of (d_i - d_j)^2 is
//   2 sum(d^2) / (n - 1) - 2 sum(d)^2 / (n (n - 1)),
// and 0 if there are no pairs.
Output MeanPairwiseSquaredError(Output labels, Output predictions, const LossOptions& options) {
  if (!predictions.valid() || !labels.valid()) return {};
  Graph& g = predictions.graph();
  const NameScope scope(g, NameOr(options.scope, "mean_pairwise_squared_error"));
  const Output weights = CastArg(g, options.weights, DT_FLOAT);
  labels = Cast(labels, DT_FLOAT);
  if (!weights.valid() || !labels.valid()) return {};
  const Operation check = AssertBroadcastable(weights, labels);
  if (!check.valid()) return {};
  const ControlDependencies after(g, {check});
  predictions = Cast(predictions, DT_FLOAT);
  if (!CheckCompatible(predictions, labels)) return {};
  const Output differences = Subtract(predictions, labels);
  if (!differences.valid()) return {};
  const Output axes = AxesOfExamples(differences);
  const Output squares = ReduceSum(Square(differences), axes, /*keep_dims=*/true);
  const Output n = NumPresent(differences, weights, /*per_batch=*/true);
  if (!squares.valid() || !n.valid()) return {};
  const Output square_term = 2 * DivNoNan(squares, Maximum(n - 1, 0), "value");
  const Output sums = ReduceSum(differences, axes, /*keep_dims=*/true);
  const Output squared_sums = Square(sums);
  const Output pairs = Maximum(Multiply(n, n - 1), 0);
  const Output sum_term = 2 * DivNoNan(squared_sums, pairs, "value");
  const Output total = ReduceSum(Multiply(square_term - sum_term, weights));
  if (!total.valid()) return {};
  const Output any = ReduceSum(n) > 0;
  const Output loss = Select(any, total, ZerosLike(total), "value");
  AddLoss(loss, options.loss_collection);
  return loss;
}

Output SigmoidCrossEntropy(Output multi_class_labels, Output logits, const LossOptions& options,
                           double label_smoothing) {
  if (!logits.valid()) return {};
  const NameScope scope(logits.graph(), NameOr(options.scope, "sigmoid_cross_entropy_loss"));
  Output labels = LabelsFor(logits, multi_class_labels);
  if (!labels.valid()) return {};
  if (label_smoothing > 0) labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing;
  const Output losses = weir::SigmoidCrossEntropy(logits, labels, "xentropy");
  return ComputeWeightedLoss(losses, WithScope(scope, options));
}

Output SoftmaxCrossEntropy(Output onehot_labels, Output logits, const LossOptions& options,
                           double label_smoothing) {
  if (!logits.valid()) return {};
  const NameScope scope(logits.graph(), NameOr(options.scope, "softmax_cross_entropy_loss"));
  Output labels = LabelsFor(logits, onehot_labels);
  if (!labels.valid()) return {};
  if (label_smoothing > 0) {
    const Output classes = Cast(StridedSlice(ShapeTensor(labels), {-1}), logits.dtype());
    if (!classes.valid()) return {};
    const Output elsewhere = label_smoothing / classes;
    labels = labels * (1 - label_smoothing) + elsewhere;
  }
  labels = StopGradient(labels, "labels_stop_gradient");
  const Output losses = weir::SoftmaxCrossEntropy(logits, labels, "xentropy");
  return ComputeWeightedLoss(losses, WithScope(scope, options));
}

Output SparseSoftmaxCrossEntropy(Output labels, Output logits, const LossOptions& options) {
  if (!logits.valid() || !labels.valid()) return {};
  Graph& g = logits.graph();
  const NameScope scope(g, NameOr(options.scope, "sparse_softmax_cross_entropy_loss"));
  labels = RemoveSqueezableDimensions(labels, logits, 1).labels;
  Output weights = options.weights.In(g);
  if (!labels.valid() || !weights.valid()) return {};
  const Shape &l = labels.shape(), &w = weights.shape();
  if (l.has_rank() && w.has_rank()) {
    if (w.rank() - l.rank() == 1) weights = Squeeze(weights, {-1});
  } else {
    const Output weights_rank = Rank(weights);
    const Output diff = weights_rank - Rank(labels);
    if (!w.has_rank() || (w.rank() > 0 && w.dim(-1) <= 1 && w.dim(-1) != 0)) {
      const Output given = weights;
      weights = Cond(
          Equal(1, diff), [&] { return Squeeze(given, {-1}); }, [&] { return given; });
    }
  }
  LossOptions inside = WithScope(scope, options);
  inside.weights = weights;
  return ComputeWeightedLoss(weir::SparseSoftmaxCrossEntropy(logits, labels, "xentropy"), inside);
}

void AddLoss(Output loss, absl::string_view loss_collection) {
  if (loss.valid() && !loss_collection.empty()) loss.graph().AddToCollection(loss_collection, loss);
}

Outputs GetLosses(const Graph& graph, absl::string_view scope, absl::string_view loss_collection) {
  Outputs losses;
  for (const CollectionItem& item : graph.collection(loss_collection, scope)) {
    if (const auto* loss = std::get_if<Output>(&item)) losses.push_back(*loss);
  }
  return losses;
}

Outputs GetRegularizationLosses(const Graph& graph, absl::string_view scope) {
  return GetLosses(graph, scope, collections::kRegularizationLosses);
}

Output GetRegularizationLoss(Graph& graph, absl::string_view scope, absl::string_view name) {
  const Outputs losses = GetRegularizationLosses(graph, scope);
  return losses.empty() ? Const(graph, 0.0f) : AddN(losses, name);
}

Output GetTotalLoss(Graph& graph, bool add_regularization_losses, absl::string_view name,
                    absl::string_view scope) {
  Outputs losses = GetLosses(graph, scope);
  if (add_regularization_losses) {
    for (const Output& loss : GetRegularizationLosses(graph, scope)) losses.push_back(loss);
  }
  if (losses.empty()) {
    graph.Fail(
        InvalidArgument("GetTotalLoss: the graph has no losses",
                        scope.empty() ? "" : absl::StrCat(" whose names match '", scope, "'"),
                        "; the functions of weir::losses and AddLoss add them to the collection '",
                        collections::kLosses, "'"));
    return {};
  }
  return AddN(losses, name);
}

}  // namespace weir::losses
