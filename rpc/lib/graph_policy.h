#ifndef WEIR_RPC_LIB_GRAPH_POLICY_H_
#define WEIR_RPC_LIB_GRAPH_POLICY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "weir/core/tensor/status.h"

namespace weir::proto {
class GraphDef;
}  // namespace weir::proto

namespace weir::rpc {

// What the graph of a session may contain. Zero: any number.
struct GraphLimits {
  // Whether it may have ops that access something outside of the server's memory: files, the
  // server's log (ops/lib/external_access.h).
  bool allow_external_access = true;
  int64_t max_nodes = 0;  // including those of its functions
  int64_t max_bytes = 0;  // of the serialized GraphDefs
  // Of nested calls of functions, including the functions of loops and branches. A limit also
  // excludes functions that call themselves.
  int max_call_depth = 0;
  // Of nodes whose ops start threads of their own: Batch, BatchFunction, Unbatch. A limit also
  // refuses these ops in functions, which may run under any number of names.
  int64_t max_thread_nodes = 0;
};

// Checks the graph of one session, which grows by GraphDefs, before it is imported. Reads the
// messages only, so its cost is that of parsing them. Not thread-safe.
class GraphPolicy {
 public:
  // The policy of an empty graph.
  explicit GraphPolicy(const GraphLimits& limits) : limits_(limits) {}

  // Adds a GraphDef to the graph. Returns PERMISSION_DENIED, with the node and the op, for an op
  // that is not allowed; RESOURCE_EXHAUSTED, with the limit, if the graph becomes too large;
  // INVALID_ARGUMENT for a function that calls itself. After an error, the object must not be used.
  absl::Status Add(const proto::GraphDef& addition);

 private:
  absl::Status CheckOps(const proto::GraphDef& addition);
  absl::Status CheckSize(const proto::GraphDef& addition);
  absl::Status CheckThreads(const proto::GraphDef& addition);
  absl::Status CheckCallDepth(const proto::GraphDef& addition);

  GraphLimits limits_;
  int64_t num_nodes_ = 0, num_bytes_ = 0, num_thread_nodes_ = 0;
  std::map<std::string, std::set<std::string>> callees_;  // of each function, by name
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_GRAPH_POLICY_H_
