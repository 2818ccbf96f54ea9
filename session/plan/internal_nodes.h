#ifndef WEIR_SESSION_PLAN_INTERNAL_NODES_H_
#define WEIR_SESSION_PLAN_INTERNAL_NODES_H_

#include "weir/core/graph/graph.h"

namespace weir {

// Returns an internal node of the runtime that passes a value of this type through ("_Read",
// "_Copy"). The node is never destroyed.
const Node& InternalNode(absl::string_view op, DataType dtype);
// The runtime's internal ops: of these nodes, and of nodes that run a subplan. They never occur in
// files.
const OpRegistry& InternalOps();

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_INTERNAL_NODES_H_
