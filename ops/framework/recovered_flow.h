#ifndef WEIR_OPS_FRAMEWORK_RECOVERED_FLOW_H_
#define WEIR_OPS_FRAMEWORK_RECOVERED_FLOW_H_

#include "weir/core/graph/graph.h"

namespace weir {

// Recovers the branches and loops of nodes that were imported rather than built by Cond and
// WhileLoop, from the nodes alone, and registers them with FlowStack.
void RecoverFlow(Graph& graph);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_RECOVERED_FLOW_H_
