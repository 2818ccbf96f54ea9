#ifndef WEIR_SESSION_MODEL_UNNEEDED_WRITES_H_
#define WEIR_SESSION_MODEL_UNNEEDED_WRITES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
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

// Where a handle or a reference comes from.
struct HandleSource {
  std::string node;      // creates it, or is the argument that it is; empty: it is no handle
  bool is_any = false;   // that of several variables may arrive there: Merge, the result of a call
  bool in_flow = false;  // it has passed a node of v1 control flow: it may be dead, or in a loop
};

// The sources of the handles in a graph, which outlives the object. Each node is visited once.
class HandleSources {
 public:
  explicit HandleSources(const Graph& graph) : graph_(graph) {}
  // Follows an input of a node through nodes that forward a handle.
  HandleSource Of(absl::string_view input);

 private:
  const Graph& graph_;
  absl::flat_hash_map<const Node*, HandleSource> of_forwarders_;
};

// Removes writes to variables that no value depends on: those that only control edges lead from,
// such as the step of a random number generator that a layer for training draws from. `def` is
// `graph` as a message, some of whose nodes may have become constants; `is_variable` tells the
// nodes that create the handle of a variable, or whose value it is. A write stays if it is wanted
// for its value, or a wanted node takes the variable, unless `changes_nothing(write)`: the node may
// run after the write, in this step or in a later one. What was ordered after a removed write is
// ordered after what control edges ordered the write after. Returns the variables that have lost a
// write that would have changed them.
std::set<std::string> RemoveUnneededWrites(
    const Graph& graph, const WantedNodes& wanted,
    absl::FunctionRef<bool(const std::string& node)> is_variable,
    absl::FunctionRef<bool(const proto::NodeDef& write)> changes_nothing, proto::GraphDef* def);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_UNNEEDED_WRITES_H_
