#include "weir/core/import/connector.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "weir/core/graph/unknown_op.h"

namespace weir {

namespace {

absl::Status NoSuchOutput(const Node& source, int index) {
  return InvalidArgument("Connecting to invalid output ", index, " of source node ", source.name(),
                         " which has ", source.num_outputs(), " outputs.");
}

}  // namespace

ImportConnector::ImportConnector(size_t num_nodes, size_t num_bytes)
    : nodes_(num_nodes, nullptr), outputs_left_(kMaxNodeArity + static_cast<int64_t>(num_bytes)) {}

void ImportConnector::SetOutputs(const NodeTypes& types, Node* node) {
  outputs_left_ -= static_cast<int64_t>(types.size());
  node->SetOutputTypes(types);
}

// Adds outputs up to `index`, if the node may have more.
bool ImportConnector::AddOutputs(Node* node, int index) {
  if (!HasOpenOutputs(*node) || index >= kMaxNodeArity) return false;
  const int missing = index + 1 - node->num_outputs();
  if (missing > outputs_left_) return false;
  outputs_left_ -= missing;
  node->outputs_.resize(index + 1);
  return true;
}

// Returns the output that an edge comes from, after checking its type for input k.
absl::StatusOr<Output> ImportConnector::CheckedSource(const ImportEdge& edge, const Node& node,
                                                      int k, DataType wanted) {
  Node* const source = Source(edge);
  if (!HasOutput(source, edge.index)) return NoSuchOutput(*source, edge.index);
  DataType& given = source->outputs_[edge.index].type;
  if (given == DT_INVALID) given = wanted;  // the consumer determines the type
  if (!AcceptsType(wanted, given)) {
    return InvalidArgument("Input ", k, " of node ", node.name(), " was passed ",
                           DataTypeName(given), " from ", source->output(edge.index).name(),
                           " incompatible with expected ", DataTypeName(wanted), ".");
  }
  return Output(source, edge.index);
}

absl::Status ImportConnector::Connect(absl::Span<const ImportEdge> edges, const Node& node,
                                      const NodeTypes& types, Inputs* inputs) {
  for (const ImportEdge& edge : edges) {
    if (edge.control) break;
    const size_t k = inputs->size();
    inputs->emplace_back();
    if (k >= types.size() || edge.back) continue;
    WEIR_ASSIGN_OR_RETURN((*inputs)[k], CheckedSource(edge, node, static_cast<int>(k), types[k]));
  }
  if (inputs->size() == types.size()) return absl::OkStatus();
  return InvalidArgument(
      "NodeDef expected inputs '",
      absl::StrJoin(types, ", ", [](std::string* out, DataType t) { *out += DataTypeName(t); }),
      "' do not match ", inputs->size(), " inputs specified; Op<", node.op().Signature(), ">");
}

absl::Status ImportConnector::ConnectAny(absl::Span<const ImportEdge> edges, Inputs* inputs) {
  for (const ImportEdge& edge : edges) {
    if (edge.control) break;
    Node* const source = Source(edge);
    if (!HasOutput(source, edge.index)) return NoSuchOutput(*source, edge.index);
    inputs->emplace_back(source, edge.index);
  }
  return absl::OkStatus();
}

void ImportConnector::ConnectControls(absl::Span<const ImportEdge> edges,
                                      absl::InlinedVector<Node*, 2>* controls) const {
  if (edges.empty() || !edges.back().control) return;
  absl::flat_hash_set<const Node*> listed;
  for (const ImportEdge& edge : edges) {
    if (!edge.control) continue;
    Node* const source = Source(edge);
    if (listed.insert(source).second) controls->push_back(source);
  }
}

absl::Status ImportConnector::CloseLoops(absl::Span<const ImportEdge> edges, Node* node) {
  for (size_t k = 0; k < edges.size(); ++k) {
    if (!edges[k].back) continue;
    const int input = static_cast<int>(k);
    WEIR_ASSIGN_OR_RETURN(node->inputs_[k],
                          CheckedSource(edges[k], *node, input, node->input_type(input)));
  }
  return absl::OkStatus();
}

void ImportConnector::ResolveOpenTypes(absl::Span<const std::unique_ptr<Node>> nodes) {
  for (const auto& node : nodes) {
    for (int k = 0; k < node->num_outputs(); ++k) {
      DataType& type = node->outputs_[k].type;
      if (type == DT_INVALID) type = TypeFromAttrs(*node, k);
    }
  }
  for (const auto& node : nodes) {
    for (int k = 0; k < node->num_inputs(); ++k) {
      const Output& in = node->inputs_[k];
      if (node->input_types_[k] == DT_INVALID)
        node->input_types_[k] = in.node->output_type(in.index);
    }
  }
}

}  // namespace weir
