#ifndef WEIR_OPS_BROADCAST_WEIGHTS_H_
#define WEIR_OPS_BROADCAST_WEIGHTS_H_

#include "weir/core/graph.h"
#include "weir/ops/literal.h"

// How losses and metrics weigh values: by a scalar, or by a tensor of the values' rank whose
// dimensions are 1 or the values'.
namespace weir {

// A NoOp if that holds statically, else an op that fails a step where it does not. INVALID_ARGUMENT
// "weights can not be broadcast to values." on the graph if it cannot hold.
Operation AssertBroadcastable(const TensorArg& weights, Output values);
// The weights in the shape of the values.
Output BroadcastWeights(Output weights, Output values);

// The argument as a tensor of that dtype: a literal becomes a Const "Cast/x", and a tensor of
// another dtype is cast.
Output CastArg(Graph& graph, const TensorArg& value, DataType dtype);

// False, and INVALID_ARGUMENT on the graph, if the static shapes contradict.
bool CheckCompatible(const Output& a, const Output& b);

struct LabelsAndPredictions {
  Output labels, predictions;
};
// Without the last dimension of predictions (labels), if that is 1, and their rank is one more
// (less) than `expected_rank_diff` above that of the labels. Decided in the step where a rank is
// not known.
LabelsAndPredictions RemoveSqueezableDimensions(Output labels, Output predictions,
                                                int expected_rank_diff = 0);

}  // namespace weir

#endif  // WEIR_OPS_BROADCAST_WEIGHTS_H_
