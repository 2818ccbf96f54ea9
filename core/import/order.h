#ifndef WEIR_CORE_IMPORT_ORDER_H_
#define WEIR_CORE_IMPORT_ORDER_H_

#include <vector>

#include "absl/types/span.h"
#include "weir/core/import/edges.h"

namespace weir {

// Returns the positions of the nodes in topological order, lowest position first, so that a sorted
// GraphDef keeps its order. Back edges of loops do not count. Nodes that can never be added are
// part of a cycle or behind one: returns INVALID_ARGUMENT with their number and a cycle of names.
absl::StatusOr<std::vector<int>> TopologicalOrder(absl::Span<const NodeHeader> nodes,
                                                  const ImportEdges& edges);

}  // namespace weir

#endif  // WEIR_CORE_IMPORT_ORDER_H_
