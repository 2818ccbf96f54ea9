#ifndef WEIR_SESSION_MODEL_UNNEEDED_WRITES_H_
#define WEIR_SESSION_MODEL_UNNEEDED_WRITES_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/graph/graph.h"

namespace weir::proto {
class GraphDef;
class NodeDef;
}  // namespace weir::proto

namespace weir {

// What a graph, or the body of a function, is for.
struct WantedNodes {
  std::vector<std::string> values;   // the nodes that compute its results
  std::vector<std::string> effects;  // nodes that run besides, unless they are unneeded writes
};

// Removes writes to variables that no value depends on: those that only control edges lead from,
// such as the step of a random number generator that a layer for training draws from. `def` is
// `graph` as a message, some of whose nodes may have become constants; `is_variable` tells the
// nodes that create the handle of a variable, or whose value it is. A write stays if it is wanted
// for its value, or a wanted node takes the variable after it, unless `changes_nothing(write)`.
// What was ordered after a removed write is ordered after what the write was to wait for.
void RemoveUnneededWrites(const Graph& graph, const WantedNodes& wanted,
                          absl::FunctionRef<bool(const std::string& node)> is_variable,
                          absl::FunctionRef<bool(const proto::NodeDef& write)> changes_nothing,
                          proto::GraphDef* def);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_UNNEEDED_WRITES_H_
