#ifndef WEIR_CORE_IMPORT_CONNECTOR_H_
#define WEIR_CORE_IMPORT_CONNECTOR_H_

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "weir/core/graph/graph.h"
#include "weir/core/graph/signature.h"
#include "weir/core/import/edges.h"

namespace weir {

// Connects imported nodes: turns edges between positions into edges between nodes, and checks that
// the outputs exist and have the types of the inputs. The outputs and types of a node with an
// unknown op are often not known (HasOpenOutputs): its consumers determine them.
class ImportConnector {
 public:
  // The nodes of a GraphDef of `num_bytes`. In addition to one output per byte, all nodes together
  // may have as many outputs as one node.
  ImportConnector(size_t num_nodes, size_t num_bytes);

  // Makes the node at a position available as a source.
  void SetNode(int i, Node* node) { nodes_[i] = node; }
  Node* node(int i) const { return nodes_[i]; }

  // The number of outputs that the next node may have.
  int64_t max_outputs() const { return std::min(kMaxNodeArity, outputs_left_); }
  // Sets the types of a node's outputs, at most max_outputs().
  void SetOutputs(const NodeTypes& types, Node* node);
  // Returns false if the node has no such output and cannot get one.
  bool HasOutput(Node* node, int index) {
    return index < node->num_outputs() || AddOutputs(node, index);
  }

  // Control edges come after all other edges into a node.
  // Appends the inputs of a node with the given types, except for back edges, which stay invalid.
  // Returns INVALID_ARGUMENT for another number of inputs, an invalid output or another type.
  using Inputs = absl::InlinedVector<Output, 2>;
  absl::Status Connect(absl::Span<const ImportEdge> edges, const Node& node, const NodeTypes& types,
                       Inputs* inputs);
  // Same, for a node that accepts any inputs.
  absl::Status ConnectAny(absl::Span<const ImportEdge> edges, Inputs* inputs);
  // Appends the control inputs, each once.
  void ConnectControls(absl::Span<const ImportEdge> edges,
                       absl::InlinedVector<Node*, 2>* controls) const;
  // Connects the back edges into a node, once all nodes are set.
  absl::Status CloseLoops(absl::Span<const ImportEdge> edges, Node* node);

  // Sets the types of outputs without a consumer that determines them, and of their other
  // consumers.
  static void ResolveOpenTypes(absl::Span<const std::unique_ptr<Node>> nodes);

 private:
  bool AddOutputs(Node* node, int index);
  Node* Source(const ImportEdge& edge) const {
    return edge.mapped != nullptr ? edge.mapped : nodes_[edge.def];
  }
  absl::StatusOr<Output> CheckedSource(const ImportEdge& edge, const Node& node, int k,
                                       DataType wanted);

  std::vector<Node*> nodes_;  // by position in the GraphDef; null until set
  int64_t outputs_left_;
};

}  // namespace weir

#endif  // WEIR_CORE_IMPORT_CONNECTOR_H_
