#ifndef WEIR_OPS_RECOVERED_FLOW_H_
#define WEIR_OPS_RECOVERED_FLOW_H_

#include "weir/core/graph.h"

namespace weir {

// Finds the branches and loops of nodes that were not built by Cond and WhileLoop, but imported,
// from the nodes alone, and tells FlowStack of them.
void RecoverFlow(Graph& graph);

}  // namespace weir

#endif  // WEIR_OPS_RECOVERED_FLOW_H_
