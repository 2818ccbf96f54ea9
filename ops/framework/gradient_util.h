#ifndef WEIR_OPS_FRAMEWORK_GRADIENT_UTIL_H_
#define WEIR_OPS_FRAMEWORK_GRADIENT_UTIL_H_

#include <initializer_list>
#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/tensor/api.h"

// Subgraphs that gradients and optimizers use, with TensorFlow's names.
namespace WEIR_API weir {

// Returns true for the dtypes that a gradient can have: floating-point and complex numbers,
// handles, variants.
bool IsTrainable(DataType type);

// Returns those of the attributes `names` that the node has, for a node of a related op.
Attrs CopyAttrs(const Node& node, std::initializer_list<absl::string_view> names);

// Returns zeros for an output without a gradient. For a variable's handle, the zeros have the
// variable's shape and dtype; for an output of a Switch, the zeros are dead when the output is.
Output ZerosForOutput(const Output& y);

// Sums the rows into a dense tensor with UnsortedSegmentSum. INVALID_ARGUMENT on the graph if the
// dense shape is unknown.
Output RowsToDense(const IndexedSlices& slices, absl::string_view name = {});
// Returns the sum of several gradients of which at least one is an IndexedSlices: IndexedSlices
// (concatenated) if all are, otherwise dense.
Grad SumWithRows(Graph& graph, const Grads& parts);
// Removes duplicate indices: rows of equal index are added (Unique, UnsortedSegmentSum).
IndexedSlices WithoutDuplicates(const IndexedSlices& slices);

// Adds a NoOp named `name` that runs after all of these ops, as tf.group does. Ops on several
// devices are grouped by device first.
Operation GroupOps(Graph& graph, const std::vector<Operation>& ops,
                   absl::string_view name = "group_deps");
// Returns the same gradients, each available only when all of them are, as tf.tuple does. Name
// scope "tuple".
Grads GateGrads(Graph& graph, const Grads& grads);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_GRADIENT_UTIL_H_
