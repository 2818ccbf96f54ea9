#ifndef WEIR_RPC_SESSION_GRAPH_H_
#define WEIR_RPC_SESSION_GRAPH_H_

#include <atomic>
#include <functional>

#include "absl/functional/function_ref.h"
#include "weir/core/graph/graph.h"
#include "weir/rpc/lib/graph_policy.h"

namespace weir::proto {
class GraphDef;
}

namespace weir::rpc {

// The graph of a client's session, which grows while steps run. One call changes it at a time.
class SessionGraph {
 public:
  // The graph is empty at first, at version 0.
  explicit SessionGraph(const GraphLimits& limits) : policy_(limits) {}

  const Graph& graph() const { return graph_; }
  // The number of extensions.
  int64_t version() const { return version_; }

  // Imports the nodes that a session begins with. Returns the errors of GraphPolicy and
  // ImportGraphDef.
  absl::Status Begin(const proto::GraphDef& def);
  // Adds functions and nodes, whose inputs may be existing nodes. `exclusively` calls its argument
  // while nobody reads the graph, and returns its result. Returns the new version. ABORTED if
  // `version` is not the current one; INVALID_ARGUMENT for a node that exists; otherwise as Begin.
  // On an error the graph is unchanged.
  using Exclusively = absl::FunctionRef<absl::Status(const std::function<absl::Status()>&)>;
  absl::StatusOr<int64_t> Extend(const proto::GraphDef& nodes, int64_t version,
                                 Exclusively exclusively);

 private:
  absl::Status Import(const proto::GraphDef& nodes);

  Graph graph_;
  GraphPolicy policy_;
  std::atomic<int64_t> version_{0};
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_SESSION_GRAPH_H_
