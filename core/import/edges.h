#ifndef WEIR_CORE_IMPORT_EDGES_H_
#define WEIR_CORE_IMPORT_EDGES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weir/core/graph/graph.h"
#include "weir/core/import/nodes.h"

// The edges of the nodes of a GraphDef. All of it works with names and positions, before any node
// is added to the graph.
namespace weir {

// An input in the syntax of NodeDef: "name", "name:k" or "^name".
struct InputName {
  absl::string_view node;
  int index = 0;
  bool control = false;
};
// A suffix that is not a number is part of the name.
InputName ParseInputName(absl::string_view text);

// Maps the names of nodes to their positions in the GraphDef.
using NodePositions = absl::flat_hash_map<absl::string_view, int>;
// Returns INVALID_ARGUMENT for a malformed or repeated name, and ALREADY_EXISTS if the graph has a
// node of that name with `prefix`.
absl::StatusOr<NodePositions> IndexNames(absl::Span<const NodeHeader> nodes,
                                         absl::string_view prefix, const Graph& graph);

// Maps tensors of the GraphDef, as (node, index), to outputs of the graph that replace them. Index
// -1 is the control output.
using InputMap = absl::flat_hash_map<std::pair<absl::string_view, int>, Output>;
// Returns INVALID_ARGUMENT for an output of another graph. Keeps views of the names.
absl::StatusOr<InputMap> ParseInputMap(const std::map<std::string, Output>& map,
                                       const Graph& graph);
// Returns null if the tensor is not replaced.
const Output* FindMapped(const InputMap& map, const InputName& input);

// One input of a node: output `index` of the node at position `def`, or of `mapped`.
struct ImportEdge {
  int def = -1;
  int index = 0;
  Node* mapped = nullptr;
  bool control = false;
  bool back = false;  // from a NextIteration to a Merge

  // Returns true if the node at position `def` must be added first.
  bool orders() const { return mapped == nullptr && !back; }
};

// The edges into each node, in the order of its inputs: control edges come last.
class ImportEdges {
 public:
  void Reserve(size_t nodes, size_t edges) {
    ends_.reserve(nodes + 1);
    edges_.reserve(edges);
  }
  // Adds an edge into the node that EndNode ends.
  void Add(const ImportEdge& edge) {
    edges_.push_back(edge);
    has_back_edges_ |= edge.back;
  }
  void EndNode() { ends_.push_back(edges_.size()); }

  int num_nodes() const { return static_cast<int>(ends_.size()) - 1; }
  bool has_back_edges() const { return has_back_edges_; }
  absl::Span<const ImportEdge> all() const { return edges_; }
  absl::Span<const ImportEdge> Into(int i) const {
    return absl::MakeConstSpan(edges_).subspan(ends_[i], ends_[i + 1] - ends_[i]);
  }

 private:
  std::vector<ImportEdge> edges_;
  std::vector<size_t> ends_ = {0};  // element i + 1: the position after the last edge into node i
  bool has_back_edges_ = false;
};

// Resolves the inputs of all nodes. Returns INVALID_ARGUMENT for an unknown name, for a control
// input before another input, and for an entry of `map` that neither replaces an input nor names a
// node.
absl::StatusOr<ImportEdges> ResolveInputs(absl::Span<const NodeHeader> nodes,
                                          const NodePositions& positions, const InputMap& map);

}  // namespace weir

#endif  // WEIR_CORE_IMPORT_EDGES_H_
