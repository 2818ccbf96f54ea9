#ifndef WEIR_OPS_GRADIENT_UTIL_H_
#define WEIR_OPS_GRADIENT_UTIL_H_

#include <vector>

#include "weir/core/gradient.h"

// Pieces of graph that gradients and optimizers are made of, with the names that TensorFlow gives
// them.
namespace weir {

// True for the types that a gradient flows through: floating-point and complex numbers, handles,
// variants.
bool IsTrainable(DataType type);

// Zeros for an output that no gradient came to. A variable's handle gets zeros of the variable's
// shape and type; a side of a Switch gets zeros that are dead when it is.
Output ZerosForOutput(const Output& y);

// Rows summed into a dense tensor with UnsortedSegmentSum. INVALID_ARGUMENT on the graph if the
// dense shape is not known.
Output RowsToDense(const IndexedSlices& slices, absl::string_view name = {});
// The sum of several gradients of which at least one is rows: rows again (concatenated) if all are,
// else dense.
Grad SumWithRows(Graph& graph, const Grads& parts);
// Rows in which no index comes twice: those of equal index are added up (Unique,
// UnsortedSegmentSum).
IndexedSlices WithoutDuplicates(const IndexedSlices& slices);

// A NoOp named `name` that runs after all of these, as tf.group makes it: ops on several devices
// are grouped by device first.
Operation GroupOps(Graph& graph, const std::vector<Operation>& ops,
                   absl::string_view name = "group_deps");
// The same gradients, given out only when all of them are there, as tf.tuple makes it: scope
// "tuple".
Grads GateGrads(Graph& graph, const Grads& grads);

}  // namespace weir

#endif  // WEIR_OPS_GRADIENT_UTIL_H_
