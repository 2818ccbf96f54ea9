#ifndef WEIR_SESSION_MODEL_ANCESTORS_H_
#define WEIR_SESSION_MODEL_ANCESTORS_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "weir/core/graph/graph.h"

namespace weir {

// Returns these nodes and all nodes that they depend on, by data and control edges.
absl::flat_hash_set<const Node*> Ancestors(const std::vector<const Node*>& nodes);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_ANCESTORS_H_
