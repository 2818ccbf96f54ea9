#include "weir/rpc/lib/function_holders.h"

#include "absl/strings/match.h"
#include "weir/proto/graph.pb.h"

namespace weir::rpc {

namespace {

template <class Nodes>
void AddContainers(const Nodes& nodes, std::set<std::string>* containers) {
  for (const proto::NodeDef& node : nodes) {
    const auto shared_name = node.attr().find("shared_name");
    const bool is_named = shared_name != node.attr().end() && !shared_name->second.s().empty();
    const bool calls =
        node.op() == "BatchFunction" || (is_named && absl::StrContains(node.op(), "Iterator"));
    if (!calls) continue;
    const auto container = node.attr().find("container");
    containers->insert(container == node.attr().end() ? "" : container->second.s());
  }
}

}  // namespace

std::set<std::string> ContainersHoldingFunctions(const proto::GraphDef& graph) {
  std::set<std::string> containers;
  AddContainers(graph.node(), &containers);
  for (const proto::FunctionDef& function : graph.library().function())
    AddContainers(function.node_def(), &containers);
  return containers;
}

}  // namespace weir::rpc
