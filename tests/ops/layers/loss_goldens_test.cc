// Compares weir::losses with the graphs of tf.losses (make_layer_goldens.py).

#include "weir/core/graph/scope.h"
#include "weir/ops/layers/losses.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/ops/lib/goldens.h"

namespace weir {
namespace {

using losses::Reduction;

Output In(Graph& g, absl::string_view name, const Shape& shape = Shape::UnknownRank(),
          DataType dtype = DT_FLOAT) {
  return Placeholder(g, dtype, shape, name);
}

struct Pair {
  explicit Pair(Graph& g, int64_t batch = 4)
      : x(In(g, "x", {batch, 3})), y(In(g, "y", {batch, 3})) {}
  Output x, y;
};

void Functions(Graph& g) {
  const Pair p(g);
  losses::AbsoluteDifference(p.y, p.x);
  losses::CosineDistance(p.y, p.x, 1);
  losses::HingeLoss(p.y, p.x);
  losses::HuberLoss(p.y, p.x, 0.5);
  losses::LogLoss(p.y, p.x);
  losses::MeanPairwiseSquaredError(p.y, p.x);
  losses::MeanSquaredError(p.y, p.x);
  losses::SigmoidCrossEntropy(p.y, p.x);
  losses::SoftmaxCrossEntropy(p.y, p.x);
  losses::SparseSoftmaxCrossEntropy(In(g, "labels", {4}, DT_INT64), p.x);
}

void OpenBatch(Graph& g) {
  const Pair p(g, -1);
  losses::MeanSquaredError(p.y, p.x);
  losses::SoftmaxCrossEntropy(p.y, p.x);
  losses::SparseSoftmaxCrossEntropy(In(g, "labels", {-1}, DT_INT32), p.x);
  losses::MeanPairwiseSquaredError(p.y, p.x);
}

void Reductions(Graph& g) {
  const Pair p(g);
  const Output w = In(g, "w", {4, 1});
  for (const Reduction reduction : {Reduction::kNone, Reduction::kSum, Reduction::kSumOverBatchSize,
                                    Reduction::kMean, Reduction::kSumByNonzeroWeights}) {
    losses::MeanSquaredError(p.y, p.x, {.weights = w, .reduction = reduction});
  }
}

void Weights(Graph& g) {
  const Pair p(g);
  losses::AbsoluteDifference(p.y, p.x, {.weights = 2.0});
  losses::AbsoluteDifference(p.y, p.x, {.weights = 2});
  losses::AbsoluteDifference(p.y, p.x, {.weights = Literal{{1.0}, {2.0}, {3.0}, {4.0}}});
  losses::AbsoluteDifference(p.y, p.x, {.weights = In(g, "s", Shape())});
  losses::AbsoluteDifference(p.y, p.x, {.weights = In(g, "full", {4, 3}, DT_DOUBLE)});
  losses::MeanPairwiseSquaredError(p.y, p.x, {.weights = In(g, "rows", {4, 1})});
}

void Types(Graph& g) {
  const Output labels = In(g, "y", {4}, DT_INT32);
  losses::MeanSquaredError(labels, In(g, "x", {4}, DT_DOUBLE));
  const Output classes = In(g, "labels", {4}, DT_INT32);
  losses::SigmoidCrossEntropy(classes, In(g, "logits", {4}, DT_DOUBLE));
  losses::ComputeWeightedLoss(In(g, "losses", {4}, DT_DOUBLE));
}

void ScopesAndCollections(Graph& g) {
  const Pair p(g);
  {
    const NameScope tower(g, "tower");
    losses::MeanSquaredError(p.y, p.x, {.scope = "mse"});
    losses::MeanSquaredError(p.y, p.x, {.scope = "mse"});
  }
  losses::MeanSquaredError(p.y, p.x, {.loss_collection = "mine"});
  losses::MeanSquaredError(p.y, p.x, {.loss_collection = ""});
  losses::ComputeWeightedLoss(p.x, {.weights = 3.0});
  losses::AddLoss(Const(g, 1.0f, "own"));
}

void DynamicWeights(Graph& g) {
  const Pair p(g, -1);
  losses::MeanSquaredError(p.y, p.x, {.weights = In(g, "w", {-1, 1})});
  const Output b = In(g, "b"), a = In(g, "a");
  losses::AbsoluteDifference(b, a, {.weights = In(g, "any")});
}

void DynamicLabels(Graph& g) {
  const Output labels = In(g, "labels", Shape::UnknownRank(), DT_INT32);
  const Output x = In(g, "x", {-1, 3});
  losses::SparseSoftmaxCrossEntropy(labels, x, {.weights = In(g, "w")});
}

void LabelSmoothing(Graph& g) {
  const Pair p(g);
  losses::SigmoidCrossEntropy(p.y, p.x, {}, 0.1);
  losses::SoftmaxCrossEntropy(p.y, p.x, {}, 0.1);
}

void Squeezed(Graph& g) {
  const Output x = In(g, "x", {4, 3});
  losses::SparseSoftmaxCrossEntropy(In(g, "labels", {4, 1}, DT_INT32), x);
  const Output more = In(g, "more", {4}, DT_INT32);
  losses::SparseSoftmaxCrossEntropy(more, x, {.weights = In(g, "w", {4, 1})});
}

void Totals(Graph& g) {
  const Pair p(g);
  losses::GetRegularizationLoss(g);
  losses::MeanSquaredError(p.y, p.x);
  {
    const NameScope more(g, "more");
    losses::AbsoluteDifference(p.y, p.x);
  }
  losses::AddLoss(Const(g, 3.0f, "penalty"), collections::kRegularizationLosses);
  losses::GetRegularizationLoss(g);
  losses::GetTotalLoss(g);
  losses::GetTotalLoss(g, false, "plain");
  losses::GetTotalLoss(g, false, "total_loss", "more");
}

const GoldenProgram kPrograms[] = {
    {"loss_functions", Functions},
    {"loss_open_batch", OpenBatch},
    {"loss_reductions", Reductions},
    {"loss_weights", Weights},
    {"loss_types", Types},
    {"loss_scopes_and_collections", ScopesAndCollections},
    {"loss_dynamic_weights", DynamicWeights},
    {"loss_dynamic_labels", DynamicLabels},
    {"loss_label_smoothing", LabelSmoothing},
    {"loss_squeezed", Squeezed},
    {"loss_totals", Totals},
};

INSTANTIATE_TEST_SUITE_P(Losses, GoldenTest, RefGoldensOf(kPrograms), GoldenName);

}  // namespace
}  // namespace weir
