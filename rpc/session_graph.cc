#include "weir/rpc/session_graph.h"

#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "weir/core/graph/unknown_op.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/graph.pb.h"

namespace weir::rpc {

namespace {

// Returns the existing nodes that the new nodes refer to, by the names they use.
absl::StatusOr<std::map<std::string, Output>> ExistingNodes(const proto::GraphDef& nodes,
                                                            const Graph& graph) {
  absl::flat_hash_set<absl::string_view> here;
  for (const proto::NodeDef& node : nodes.node()) here.insert(node.name());
  std::map<std::string, Output> earlier;
  for (const proto::NodeDef& node : nodes.node()) {
    for (const std::string& input : node.input()) {
      absl::string_view name = input;
      const bool is_control = absl::ConsumePrefix(&name, "^");
      if (here.contains(name.substr(0, name.find(':')))) continue;
      if (is_control) {
        if (Node* found = graph.FindNode(name)) earlier.emplace(input, Output(found));
      } else if (const auto found = graph.FindOutput(name); found.ok()) {
        earlier.emplace(input, *found);
      } else if (Node* source = graph.FindNode(name.substr(0, name.find(':')))) {
        int index = 0;
        if (HasOpenOutputs(*source) && absl::SimpleAtoi(name.substr(name.find(':') + 1), &index) &&
            index >= 0) {
          earlier.emplace(input, Output(source, index));  // using the output creates it
          continue;
        }
        // The gradient of a condition that has already run needs more outputs of it.
        return InvalidArgument(
            "Node '", node.name(), "': Connecting to invalid output ",
            name.substr(name.find(':') + 1), " of source node ", source->name(), " which has ",
            source->num_outputs(),
            " outputs. Try using tf.compat.v1.experimental.output_all_intermediates(True).");
      }
    }
  }
  return earlier;
}

}  // namespace

absl::Status SessionGraph::Begin(const proto::GraphDef& def) {
  WEIR_RETURN_IF_ERROR(policy_.Add(def));
  return Import(def);
}

absl::Status SessionGraph::Import(const proto::GraphDef& nodes) {
  // Clients could fill the log with lines about attributes.
  ImportOptions options{.unknown = UnknownParts::kKeepQuietly};
  WEIR_ASSIGN_OR_RETURN(options.input_map, ExistingNodes(nodes, graph_));
  return ImportGraphDef(graph_, nodes, options).status();
}

absl::StatusOr<int64_t> SessionGraph::Extend(const proto::GraphDef& nodes, int64_t version,
                                             Exclusively exclusively) {
  if (version != version_) {
    return absl::AbortedError(absl::StrCat("Current version is ", version_.load(),
                                           " but caller expected ", version, "."));
  }
  GraphPolicy policy = policy_;
  WEIR_RETURN_IF_ERROR(policy.Add(nodes));
  WEIR_RETURN_IF_ERROR(exclusively([&]() -> absl::Status {
    for (const proto::NodeDef& node : nodes.node()) {
      if (graph_.FindNode(node.name()) == nullptr) continue;
      return InvalidArgument("GraphDef argument to Extend includes node '", node.name(),
                             "', which was created by a previous call to Create or Extend in this "
                             "session.");
    }
    return Import(nodes);
  }));
  policy_ = std::move(policy);
  return ++version_;
}

}  // namespace weir::rpc
