#ifndef WEIR_TESTS_CORE_GRAPH_TEST_OPS_H_
#define WEIR_TESTS_CORE_GRAPH_TEST_OPS_H_

#include "weir/core/graph/graph.h"

namespace weir {

// A few ops with TensorFlow's signatures, so that tests of graphs need no op library: Const,
// Placeholder, Identity, IdentityN, Add, MatMul, AddN, Split, NoOp, VariableV2, Assign,
// FIFOQueueV2, Sum, Enter, Merge, Switch, NextIteration, LoopCond, Exit and the deprecated OldAdd.
const OpRegistry& TestOps();

// Builders for nodes that tests often need.
Output Constant(Graph& graph, const Tensor& value, absl::string_view name = "Const");
Output Placeholder(Graph& graph, DataType dtype, const Shape& shape,
                   absl::string_view name = "Placeholder");

}  // namespace weir

#endif  // WEIR_TESTS_CORE_GRAPH_TEST_OPS_H_
