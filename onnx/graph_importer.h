#ifndef WEIR_ONNX_GRAPH_IMPORTER_H_
#define WEIR_ONNX_GRAPH_IMPORTER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/onnx/importers.h"
#include "weir/onnx/onnx_import.h"
#include "weir/onnx/tensor_reader.h"
#include "weir/onnx/value.h"

namespace weir::proto::onnx {
class AttributeProto;
class FunctionProto;
class GraphProto;
class ModelProto;
class NodeProto;
}  // namespace weir::proto::onnx

namespace weir::onnx {

// The versions of the operator sets that a model, or a function of it, uses, by domain.
using Opsets = std::map<std::string, int64_t, std::less<>>;

// What all graphs of a model share while it is imported.
struct ModelImport {
  Graph& graph;
  const ImportOptions& options;
  TensorReader tensors;
  ImporterTable importers = ImporterTable::All();
  // The model's functions by domain, name and overload.
  std::map<std::vector<std::string>, const proto::onnx::FunctionProto*> functions = {};
  // A function that calls others may stand for very many nodes: so many are imported in all.
  int nodes_left = 1 << 20;
  int depth = 0;  // of graphs in nodes and of functions in functions
};

// Adds the nodes of one ONNX graph, or of the body of a function, to the model's graph, and knows
// what its names stand for. The graph of an attribute also sees the names around it.
class GraphImporter {
 public:
  // All arguments outlive the importer. `outer` is the graph around this one, or null.
  GraphImporter(ModelImport& model, const Opsets& opsets, GraphImporter* outer)
      : model_(model), opsets_(opsets), outer_(outer) {}

  Graph& graph() const { return model_.graph; }
  TensorReader& tensors() const { return model_.tensors; }

  // Gives a name its value. INVALID_ARGUMENT if it has one in this graph.
  absl::Status Define(const std::string& name, Value value);
  // Returns the value of a name; an absent value for "". INVALID_ARGUMENT for an unknown name.
  absl::StatusOr<Value> Find(const std::string& name) const;

  // Adds the initializers as constants, or (of the model's main graph, by option) variables.
  absl::Status ImportInitializers(const proto::onnx::GraphProto& def);
  // Adds the nodes, in order. Errors name the node, its operator and the version of that.
  template <class Nodes>
  absl::Status ImportNodes(const Nodes& nodes) {
    for (const auto& node : nodes) WEIR_RETURN_IF_ERROR(ImportNode(node));
    return absl::OkStatus();
  }
  // Adds the graph of an attribute of a node of this graph. Returns its outputs. INVALID_ARGUMENT
  // unless it has as many inputs as there are values.
  absl::StatusOr<Values> CallGraph(const proto::onnx::GraphProto& def, const Values& inputs);

  // Returns the attribute, or that of the call of the function around it to which it refers; null
  // if the call does not give it.
  const proto::onnx::AttributeProto* Resolve(const proto::onnx::AttributeProto& attribute) const;

 private:
  absl::Status ImportNode(const proto::onnx::NodeProto& node);
  absl::StatusOr<Values> ImportOperator(const proto::onnx::NodeProto& node, const Values& inputs);
  absl::StatusOr<Values> CallFunction(const proto::onnx::NodeProto& node,
                                      const proto::onnx::FunctionProto& function,
                                      const Values& inputs);
  absl::StatusOr<Value> AddInitializer(const std::string& name, const Tensor& tensor);

  ModelImport& model_;
  const Opsets& opsets_;
  GraphImporter* const outer_;
  absl::flat_hash_map<std::string, Value> values_;
  bool is_function_ = false;
  std::map<std::string, const proto::onnx::AttributeProto*, std::less<>> attributes_;
};

// Returns a name that a node of a graph may have: other characters become '_'.
std::string NodeNameOf(absl::string_view onnx_name, absl::string_view fallback);
// Reads the versions of operator sets. INVALID_ARGUMENT for a domain with two.
template <class Imports>
absl::StatusOr<Opsets> OpsetsOf(const Imports& imports) {
  Opsets opsets;
  for (const auto& import : imports) {
    const std::string domain = import.domain() == "ai.onnx" ? "" : import.domain();
    if (!opsets.emplace(domain, import.version()).second)
      return InvalidArgument("two versions of the operator set of domain '", domain, "'");
  }
  return opsets;
}

}  // namespace weir::onnx

#endif  // WEIR_ONNX_GRAPH_IMPORTER_H_
