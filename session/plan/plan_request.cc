#include "weir/session/plan/plan_request.h"

#include "absl/strings/match.h"

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

absl::Status CheckFeedType(const Output& to, const Tensor& value) {
  if (value.dtype() == to.dtype()) return absl::OkStatus();
  return InvalidArgument("Tensor '", to.name(), "' is of type ", DataTypeName(to.dtype()),
                         " but the value fed for it is of type ", DataTypeName(value.dtype()));
}

absl::Status CheckFeedShape(const Output& to, const Tensor& value) {
  if (!absl::StartsWith(to.node->op_name(), "Placeholder") ||
      to.shape().IsCompatibleWith(value.shape())) {
    return absl::OkStatus();
  }
  return InvalidArgument("Cannot feed value of shape ", value.shape().ToString(), " for Tensor '",
                         to.name(), "', which has shape ", to.shape().ToString());
}

absl::Status CheckFeed(const Output& to, const Tensor& value) {
  WEIR_RETURN_IF_ERROR(CheckFeedType(to, value));
  return CheckFeedShape(to, value);
}

absl::Status CheckFeedCount(const Outputs& feeds, absl::Span<const Tensor> values) {
  if (values.size() == feeds.size()) return absl::OkStatus();
  return InvalidArgument("The step takes ", feeds.size(), " feeds but got ", values.size());
}

absl::Status CheckFeeds(const Outputs& feeds, absl::Span<const Tensor> values) {
  WEIR_RETURN_IF_ERROR(CheckFeedCount(feeds, values));
  for (size_t i = 0; i < values.size(); ++i) WEIR_RETURN_IF_ERROR(CheckFeed(feeds[i], values[i]));
  return absl::OkStatus();
}

}  // namespace weir
