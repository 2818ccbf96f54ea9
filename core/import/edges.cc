#include "weir/core/import/edges.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "weir/core/graph/signature.h"

namespace weir {

namespace {

std::pair<absl::string_view, int> MapKey(const InputName& input) {
  return {input.node, input.control ? -1 : input.index};
}

bool Is(const NodeHeader& node, ControlFlow kind) {
  return node.spec != nullptr && node.spec->traits().control_flow == kind;
}

// Resolves inputs that `map` does not replace.
absl::StatusOr<ImportEdge> EdgeFrom(const InputName& input, const NodeHeader& node,
                                    absl::Span<const NodeHeader> nodes,
                                    const NodePositions& positions) {
  const auto it = positions.find(input.node);
  if (it == positions.end()) {
    return InvalidArgument("Node '", node.name, "': Unknown input node '", input.node, "'");
  }
  ImportEdge edge{.def = it->second, .index = input.index, .control = input.control};
  edge.back = !edge.control && Is(node, ControlFlow::kMerge) &&
              Is(nodes[edge.def], ControlFlow::kNextIteration);
  return edge;
}

}  // namespace

InputName ParseInputName(absl::string_view text) {
  InputName input{text};
  if (absl::ConsumePrefix(&input.node, "^")) {
    input.control = true;
    return input;
  }
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon + 1 == text.size()) return input;
  const absl::string_view digits = text.substr(colon + 1);
  const bool is_number = std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit);
  if (is_number && absl::SimpleAtoi(digits, &input.index)) input.node = text.substr(0, colon);
  return input;
}

absl::StatusOr<NodePositions> IndexNames(absl::Span<const NodeHeader> nodes,
                                         absl::string_view prefix, const Graph& graph) {
  NodePositions positions;
  positions.reserve(nodes.size());
  std::string prefixed;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const absl::string_view name = nodes[i].name;
    absl::string_view full = name;
    if (!prefix.empty()) full = prefixed = absl::StrCat(prefix, name);
    if (!IsNodeName(full) || name.empty()) {
      return InvalidArgument("Node '", name, "': Node name contains invalid characters");
    }
    if (!positions.try_emplace(name, static_cast<int>(i)).second) {
      return InvalidArgument("Node '", name, "' is not unique");
    }
    if (graph.num_nodes() > 0 && graph.FindNode(full) != nullptr)
      return AlreadyExists("Node name '", full, "' already exists in the Graph");
  }
  return positions;
}

absl::StatusOr<InputMap> ParseInputMap(const std::map<std::string, Output>& map,
                                       const Graph& graph) {
  InputMap parsed;
  for (const auto& [name, output] : map) {
    if (!output.valid() || &output.graph() != &graph) {
      return InvalidArgument("input_map['", name, "'] is not an output of the graph");
    }
    parsed[MapKey(ParseInputName(name))] = output;
  }
  return parsed;
}

const Output* FindMapped(const InputMap& map, const InputName& input) {
  if (map.empty()) return nullptr;
  const auto it = map.find(MapKey(input));
  return it == map.end() ? nullptr : &it->second;
}

absl::StatusOr<ImportEdges> ResolveInputs(absl::Span<const NodeHeader> nodes,
                                          const NodePositions& positions, const InputMap& map) {
  ImportEdges edges;
  size_t num_inputs = 0;
  for (const NodeHeader& node : nodes) num_inputs += node.inputs.size();
  edges.Reserve(nodes.size(), num_inputs);
  absl::flat_hash_set<std::pair<absl::string_view, int>> used;
  for (const NodeHeader& node : nodes) {
    bool after_control = false;
    for (const absl::string_view text : node.inputs) {
      const InputName input = ParseInputName(text);
      if (after_control && !input.control) {
        return InvalidArgument("Node '", node.name,
                               "': Control dependencies must come after regular dependencies");
      }
      after_control = input.control;
      if (const Output* mapped = FindMapped(map, input)) {
        used.insert(MapKey(input));
        edges.Add({.index = mapped->index, .mapped = mapped->node, .control = input.control});
        continue;
      }
      WEIR_ASSIGN_OR_RETURN(const ImportEdge edge, EdgeFrom(input, node, nodes, positions));
      edges.Add(edge);
    }
    edges.EndNode();
  }
  for (const auto& [key, output] : map) {
    if (!used.contains(key) && !positions.contains(key.first)) {
      return InvalidArgument("Attempted to map inputs that were not found in graph_def: [",
                             key.first, ":", key.second, "]");
    }
  }
  return edges;
}

}  // namespace weir
