#ifndef WEIR_OPS_LAYERS_BROADCAST_WEIGHTS_H_
#define WEIR_OPS_LAYERS_BROADCAST_WEIGHTS_H_

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/literal.h"

// Broadcasting of the weights of losses and metrics. Weights are a scalar, or a tensor of the
// values' rank in which each dimension is 1 or equal to that of the values.
namespace WEIR_API weir {

// Returns a NoOp if the static shapes show that the weights are broadcastable; otherwise returns an
// op that fails the step if they are not. Fails the graph with INVALID_ARGUMENT "weights can not be
// broadcast to values." if the static shapes contradict.
Operation AssertBroadcastable(const TensorArg& weights, Output values);
// Broadcasts the weights to the shape of the values.
Output BroadcastWeights(Output weights, Output values);

// Returns the argument as a tensor of the given dtype: a literal becomes a Const "Cast/x", and a
// tensor of another dtype is cast.
Output CastArg(Graph& graph, const TensorArg& value, DataType dtype);

// Returns false and fails the graph with INVALID_ARGUMENT if the static shapes are incompatible.
bool CheckCompatible(const Output& a, const Output& b);

// What RemoveSqueezableDimensions returns: both arguments, perhaps squeezed.
struct LabelsAndPredictions {
  Output labels, predictions;  // of equal shapes, but for expected_rank_diff
};
// Removes the last dimension of `predictions` (`labels`) if its size is 1 and rank(predictions) -
// rank(labels) is one more (less) than `expected_rank_diff`. If a rank is unknown, the decision is
// made at run time.
LabelsAndPredictions RemoveSqueezableDimensions(Output labels, Output predictions,
                                                int expected_rank_diff = 0);

}  // namespace weir

#endif  // WEIR_OPS_LAYERS_BROADCAST_WEIGHTS_H_
