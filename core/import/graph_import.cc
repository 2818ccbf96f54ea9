#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "weir/core/graph/signature.h"
#include "weir/core/graph/unknown_op.h"
#include "weir/core/import/attrs.h"
#include "weir/core/import/connector.h"
#include "weir/core/import/definitions.h"
#include "weir/core/import/edges.h"
#include "weir/core/import/nodes.h"
#include "weir/core/import/order.h"
#include "weir/core/import/transaction.h"
#include "weir/core/import/unknown_parts.h"
#include "weir/core/import/versions.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/graph.pb.h"

namespace weir {

namespace {

std::string ScopePrefix(absl::string_view prefix) {
  while (absl::EndsWith(prefix, "/")) prefix.remove_suffix(1);
  return prefix.empty() ? "" : absl::StrCat(prefix, "/");
}

}  // namespace

// Imports a GraphDef in four steps: check and index the names; resolve inputs to nodes of the
// GraphDef or to outputs of the graph (input_map); add the nodes in topological order, lowest
// position first, so that a sorted GraphDef keeps its order; and close the back edges of loops,
// which the order ignores. The first two steps need only names, ops and inputs, which are available
// for all nodes (nodes.h). For a serialized GraphDef, the rest of a node is parsed when it
// is added. The only ignored edges are those from a NextIteration to a Merge; nodes that can never
// be added are part of a cycle, which is an error. Until the end, the graph's name index, function
// library and unknown ops are unchanged, so a failed import only drops the added nodes and restores
// the versions (transaction.h).
class GraphImporter {
 public:
  // `def`: all of the GraphDef but the nodes. `num_bytes`: the size of both.
  GraphImporter(Graph& graph, const proto::GraphDef& def, ImportNodes nodes, size_t num_bytes,
                const ImportOptions& options)
      : graph_(graph),
        def_(def),
        nodes_(std::move(nodes)),
        num_bytes_(num_bytes),
        options_(options),
        prefix_(ScopePrefix(options.prefix)),
        definitions_(options.op_list),
        unknown_parts_(graph.ops(), options.unknown),
        transaction_(graph) {}

  absl::StatusOr<Outputs> Run() {
    // Shape functions read the versions.
    MergeVersions(def_.versions(), graph_.num_nodes() == 0, &graph_.versions());
    WEIR_RETURN_IF_ERROR(CheckVersions(def_.versions()));
    WEIR_ASSIGN_OR_RETURN(functions_, Functions());
    if (functions_ != nullptr)
      WEIR_RETURN_IF_ERROR(unknown_parts_.CheckFunctions(def_.library(), *functions_));
    WEIR_RETURN_IF_ERROR(nodes_.ReadHeaders(graph_.ops()));
    WEIR_ASSIGN_OR_RETURN(positions_, IndexNames(headers(), prefix_, graph_));
    WEIR_ASSIGN_OR_RETURN(input_map_, ParseInputMap(options_.input_map, graph_));
    WEIR_ASSIGN_OR_RETURN(edges_, ResolveInputs(headers(), positions_, input_map_));
    WEIR_RETURN_IF_ERROR(AddNodes());
    WEIR_ASSIGN_OR_RETURN(Outputs returned, ReturnElements());
    if (transaction_.has_unknown_ops()) ImportConnector::ResolveOpenTypes(transaction_.added());
    transaction_.Commit(functions_);
    unknown_parts_.Log();
    return returned;
  }

 private:
  absl::Span<const NodeHeader> headers() const { return nodes_.headers(); }

  // Returns the functions of the graph and those of the GraphDef.
  absl::StatusOr<std::shared_ptr<const FunctionLibrary>> Functions() const {
    if (def_.library().ByteSizeLong() == 0) return graph_.functions();
    return FunctionLibrary::Extend(graph_.functions(), def_.library());
  }

  absl::Status AddNodes() {
    WEIR_ASSIGN_OR_RETURN(const std::vector<int> order, TopologicalOrder(headers(), edges_));
    connector_.emplace(order.size(), num_bytes_);
    transaction_.Reserve(order.size());
    for (const int i : order) {
      const absl::Status status = AddNode(i);
      if (!status.ok()) return AtNode(i, status);
    }
    if (!edges_.has_back_edges()) return absl::OkStatus();
    for (const int i : order) {
      const absl::Status status = connector_->CloseLoops(edges_.Into(i), connector_->node(i));
      if (!status.ok()) return AtNode(i, status);
    }
    return absl::OkStatus();
  }

  absl::Status AtNode(int i, const absl::Status& status) const {
    const NodeHeader& node = headers()[i];
    return Annotate(status, absl::StrCat("Node '", node.name, "' (", node.op, ")"));
  }

  // Returns null for an unknown op.
  absl::StatusOr<const OpSpec*> OpOf(const NodeHeader& node) const {
    if (node.spec != nullptr) return node.spec;
    const bool is_function = functions_ != nullptr && functions_->FindDef(node.op) != nullptr;
    return is_function ? functions_->FindOp(node.op) : nullptr;
  }

  absl::Status AddNode(int i) {
    WEIR_ASSIGN_OR_RETURN(const proto::NodeDef* const def, nodes_.Parse(i));
    auto node = transaction_.NewNode(prefix_, def->name(), def->device());
    WEIR_ASSIGN_OR_RETURN(node->op_, OpOf(headers()[i]));
    WEIR_RETURN_IF_ERROR(node->op_ != nullptr ? BuildKnownOp(i, *def, node.get())
                                              : BuildUnknownOp(i, *def, node.get()));
    WEIR_RETURN_IF_ERROR(RefineShapes(*def, node.get()));
    nodes_.Release(i);
    connector_->SetNode(i, transaction_.Add(std::move(node)));
    return absl::OkStatus();
  }

  absl::Status BuildKnownOp(int i, const proto::NodeDef& def, Node* node) {
    const OpSpec& op = *node->op_;
    if (op.deprecated_version() > 0 && def_.versions().producer() >= op.deprecated_version()) {
      return Unimplemented("Op ", op.name(), " is not available in GraphDef version ",
                           def_.versions().producer(), ". It has been removed in version ",
                           op.deprecated_version(), ". ", op.deprecation(), ".");
    }
    std::string unknown;
    absl::StatusOr<AttrMap> attrs = ImportAttrs(def, op, &expansion_left_, &unknown);
    if (!attrs.ok()) return attrs.status();
    if (!unknown.empty()) WEIR_RETURN_IF_ERROR(unknown_parts_.AddAttr(op, unknown));
    WEIR_RETURN_IF_ERROR(PrefixColocations(def.name(), prefix_, positions_, graph_, &*attrs));
    transaction_.SetAttrs(node, *std::move(attrs));
    WEIR_ASSIGN_OR_RETURN(const NodeTypes outputs,
                          ArgTypes(op, op.outputs(), node->attrs_, connector_->max_outputs()));
    connector_->SetOutputs(outputs, node);
    WEIR_ASSIGN_OR_RETURN(node->input_types_,
                          ArgTypes(op, op.inputs(), node->attrs_, kMaxNodeArity));
    connector_->ConnectControls(edges_.Into(i), &node->control_inputs_);
    WEIR_RETURN_IF_ERROR(
        connector_->Connect(edges_.Into(i), *node, node->input_types_, &node->inputs_));
    return HasDamagedValue(*node) ? absl::OkStatus() : graph_.InferShapes(node);
  }

  absl::Status BuildUnknownOp(int i, const proto::NodeDef& def, Node* node) {
    WEIR_RETURN_IF_ERROR(unknown_parts_.AddOp(def.op()));
    connector_->ConnectControls(edges_.Into(i), &node->control_inputs_);
    WEIR_RETURN_IF_ERROR(connector_->ConnectAny(edges_.Into(i), &node->inputs_));
    node->attrs_ = ReadableAttrs(def, &expansion_left_);
    WEIR_RETURN_IF_ERROR(PrefixColocations(def.name(), prefix_, positions_, graph_, &node->attrs_));
    const std::optional<OpDefinition> found = definitions_.Find(def.op(), &expansion_left_);
    std::optional<SignatureTypes> types;
    if (found) {
      types = TypesByDefinition(*found, node->attrs_, node->inputs_, connector_->max_outputs());
    }
    if (types) {
      node->input_types_ = types->inputs;
      connector_->SetOutputs(types->outputs, node);
    } else {
      for (const Output& in : node->inputs_)
        node->input_types_.push_back(in.node->output_type(in.index));
    }
    proto::NodeDef kept = def;
    kept.clear_name();
    kept.clear_op();
    kept.clear_input();
    kept.clear_device();
    node->op_ = transaction_.AddUnknownOp(std::make_unique<const UnknownOp>(
        types ? found->spec : OpSpec(def.op()), types.has_value(), DeterministicBytes(kept)));
    return absl::OkStatus();
  }

  absl::Status RefineShapes(const proto::NodeDef& def, Node* node) {
    const auto it = def.attr().find(std::string(kOutputShapesAttr));
    if (it == def.attr().end()) return absl::OkStatus();
    const auto& shapes = it->second.list().shape();
    if (shapes.empty() && node->num_outputs() > 0) return absl::OkStatus();
    if (!connector_->HasOutput(node, shapes.size() - 1) || shapes.size() != node->num_outputs()) {
      return InvalidArgument("Node '", node->name(), "' has ", node->num_outputs(),
                             " outputs but the _output_shapes attribute specifies shapes for ",
                             shapes.size(), " outputs");
    }
    for (int k = 0; k < node->num_outputs(); ++k) {
      WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeFromProto(shapes.Get(k)));
      const absl::Status status = graph_.RefineShape(node->output(k), shape);
      if (!status.ok()) {
        return InvalidArgument("Node '", node->name(), "' has an _output_shapes attribute ",
                               "inconsistent with the GraphDef for output #", k, ": ",
                               status.message());
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Outputs> ReturnElements() {
    Outputs out;
    for (const std::string& name : options_.return_elements) {
      const InputName element = ParseInputName(name);
      const bool is_tensor = element.node.size() != name.size();
      const Output* const mapped = FindMapped(input_map_, element);
      if (is_tensor && mapped != nullptr) {
        out.push_back(*mapped);
        continue;
      }
      const auto it = positions_.find(element.node);
      Node* const node = it == positions_.end() ? nullptr : connector_->node(it->second);
      if (node == nullptr || element.control ||
          (is_tensor && !connector_->HasOutput(node, element.index))) {
        return InvalidArgument("Requested return_element '", name, "' not found in graph_def.");
      }
      out.emplace_back(node, element.index);
    }
    return out;
  }

  Graph& graph_;
  const proto::GraphDef& def_;
  ImportNodes nodes_;
  const size_t num_bytes_;
  const ImportOptions& options_;
  const std::string prefix_;  // empty, or ends in '/'
  OpDefinitions definitions_;
  UnknownPartsChecker unknown_parts_;
  ImportTransaction transaction_;
  int64_t expansion_left_ = kExpansionBudget;
  std::shared_ptr<const FunctionLibrary> functions_;
  NodePositions positions_;
  InputMap input_map_;
  ImportEdges edges_;
  std::optional<ImportConnector> connector_;  // once the nodes are in order
};

namespace {

absl::StatusOr<Outputs> Import(Graph& graph, const proto::GraphDef& def, ImportNodes nodes,
                               size_t num_bytes, const ImportOptions& options) {
  if (graph.finalized()) return FailedPrecondition("Graph is finalized and cannot be modified.");
  return GraphImporter(graph, def, std::move(nodes), num_bytes, options).Run();
}

}  // namespace

absl::StatusOr<Outputs> ImportGraphDef(Graph& graph, const proto::GraphDef& def,
                                       const ImportOptions& options) {
  return Import(graph, def, ImportNodes(def), def.ByteSizeLong(), options);
}

absl::StatusOr<Outputs> ImportGraph(Graph& graph, absl::string_view bytes,
                                    const ImportOptions& options) {
  proto::GraphDef rest;
  WEIR_ASSIGN_OR_RETURN(std::vector<absl::string_view> nodes, SplitGraph(bytes, &rest));
  return Import(graph, rest, ImportNodes(std::move(nodes)), bytes.size(), options);
}

// Used by graph_file.cc.
absl::StatusOr<Outputs> ImportAndClear(Graph& graph, proto::GraphDef* def,
                                       const ImportOptions& options) {
  const size_t num_bytes = def->ByteSizeLong();
  return Import(graph, *def, ImportNodes::Clearing(def), num_bytes, options);
}

}  // namespace weir
