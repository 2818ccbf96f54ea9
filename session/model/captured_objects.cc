#include "weir/session/model/captured_objects.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "weir/session/plan/variable_use.h"

namespace weir {

bool IsTable(const Node& node) {
  return node.num_outputs() == 1 && node.output_type(0) == DT_RESOURCE &&
         absl::StrContains(node.op_name(), "HashTable") &&
         !absl::StartsWith(node.op_name(), "Anonymous");
}

bool IsMutableTable(const Node& node) {
  return IsTable(node) && absl::StrContains(node.op_name(), "Mutable");
}

absl::StatusOr<CapturedObjects> FindCapturedObjects(
    const Graph& graph, const std::map<std::string, std::string>& assets) {
  CapturedObjects found;
  for (const auto& [tensor, file] : assets) {
    WEIR_ASSIGN_OR_RETURN(const Output output, graph.FindOutput(tensor));
    if (output.node->num_outputs() != 1 || output.dtype() != DT_STRING)
      return InvalidArgument("asset ", tensor, " is not the string of a node with one output");
    found.captured[output.node] = output.node;
    found.assets.push_back(output.node);
  }
  // The variables that hold paths, and the assets that are assigned to them.
  std::map<const Node*, Node*> paths;
  for (const std::unique_ptr<Node>& node : graph.nodes()) {
    if (node->op().traits().variable_use != VariableUse::kReplaces || node->num_inputs() < 2)
      continue;
    if (const auto asset = found.captured.find(node->input(1).node); asset != found.captured.end())
      paths[node->input(0).node] = asset->second;
  }
  std::map<std::pair<std::string, std::string>, Node*> variables, tables;
  for (const std::unique_ptr<Node>& node : graph.nodes()) {
    if (node->op().traits().variable_use == VariableUse::kReads) {
      if (const auto path = paths.find(node->input(0).node); path != paths.end())
        found.captured[node.get()] = path->second;
    }
    if (paths.count(node.get()) > 0) continue;
    const bool is_variable = IsVariable(*node) && node->num_outputs() == 1;
    if (!is_variable && !IsTable(*node)) continue;
    const auto [same, is_new] =
        (is_variable ? variables : tables).emplace(VariableKey(*node), node.get());
    found.captured[node.get()] = same->second;
    if (is_new) (is_variable ? found.variables : found.tables).push_back(node.get());
  }
  return found;
}

}  // namespace weir
