#include "weir/session/plan/plan_request.h"

namespace weir {

absl::StatusOr<PlanRequest> FindByName(const Graph& graph, const std::vector<std::string>& feeds,
                                       const std::vector<std::string>& fetches,
                                       const std::vector<std::string>& targets,
                                       const NamedConnections& connections) {
  PlanRequest request;
  for (const std::string& name : feeds) {
    WEIR_ASSIGN_OR_RETURN(request.feeds.emplace_back(), graph.FindOutput(name));
  }
  for (const std::string& name : fetches) {
    WEIR_ASSIGN_OR_RETURN(request.fetches.emplace_back(), graph.FindOutput(name));
  }
  for (const std::string& name : targets) {
    Node* node = graph.FindNode(name);
    if (node == nullptr)
      return NotFound("The name '", name, "' refers to an Operation not in the graph.");
    request.targets.emplace_back(node);
  }
  for (const auto& [from, to] : connections) {
    auto& connection = request.connections.emplace_back();
    WEIR_ASSIGN_OR_RETURN(connection.first, graph.FindOutput(from));
    WEIR_ASSIGN_OR_RETURN(connection.second, graph.FindOutput(to));
  }
  return request;
}

}  // namespace weir
