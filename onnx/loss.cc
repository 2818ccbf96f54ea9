#include <utility>

#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"

// Losses over classes, which are dimension 1 of the scores.
namespace weir::onnx {

namespace {

// The losses of the elements from logarithms of probabilities, [n, classes, ...], and their
// classes, [n, ...]; reduced as the node says. An element of the class ignore_index does not count.
absl::StatusOr<Output> Loss(NodeContext& c, const Output& log_probabilities, int rank) {
  const std::string reduction = c.String("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return InvalidArgument("reduction is '", reduction, "'; expected none, sum or mean");
  const Output target = c.in(1), zero = ScalarLike(log_probabilities, 0);
  const Output classes = DimOf(log_probabilities, 1);
  Output weight = c.has(2) ? c.in(2) : Output(), is_ignored;
  Output safe = target;
  if (c.HasAttr("ignore_index")) {
    is_ignored = Equal(target, ScalarLike(target, static_cast<double>(c.Int("ignore_index", 0))));
    safe = SelectV2(is_ignored, ScalarLike(target, 0), target);
  }
  const Output one_hot = OneHot(safe, Cast(classes, DT_INT32),
                                {.dtype = log_probabilities.dtype(), .axis = rank == 2 ? -1 : 1});
  // A product would be NaN for a class whose probability is zero.
  const Output chosen = SelectV2(Equal(one_hot, zero), zero, log_probabilities);
  Output loss = Negative(ReduceSum(chosen, 1));
  Output weights = weight.valid() ? Gather(weight, safe) : OnesLike(loss);
  if (is_ignored.valid()) weights = SelectV2(is_ignored, zero, weights);
  loss = Multiply(loss, weights);
  if (reduction == "none") return loss;
  const Output sum = ReduceSum(loss);
  return reduction == "sum" ? sum : RealDiv(sum, ReduceSum(weights));
}

absl::Status ImportNegativeLogLikelihoodLoss(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  if (rank < 2) return InvalidArgument("the input has rank ", rank, "; expected 2 or more");
  WEIR_ASSIGN_OR_RETURN(const Output loss, Loss(c, c.in(0), rank));
  return c.Return(loss);
}

absl::Status ImportSoftmaxCrossEntropyLoss(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  if (rank < 2) return InvalidArgument("the scores have rank ", rank, "; expected 2 or more");
  const Output log_probabilities =
      SwapAxes(LogSoftmax(SwapAxes(c.in(0), 1, rank - 1)), 1, rank - 1);
  WEIR_ASSIGN_OR_RETURN(const Output loss, Loss(c, log_probabilities, rank));
  return c.Return({loss, log_probabilities});
}

constexpr Importer kImporters[] = {
    {"NegativeLogLikelihoodLoss", 12, 2, 3, ImportNegativeLogLikelihoodLoss},
    {"SoftmaxCrossEntropyLoss", 12, 2, 3, ImportSoftmaxCrossEntropyLoss},
};

}  // namespace

absl::Span<const Importer> LossImporters() { return kImporters; }

}  // namespace weir::onnx
