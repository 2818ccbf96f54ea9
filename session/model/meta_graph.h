#ifndef WEIR_SESSION_MODEL_META_GRAPH_H_
#define WEIR_SESSION_MODEL_META_GRAPH_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/train/saver.h"
#include "weir/session/session.h"

namespace weir::proto {
class MetaGraphDef;
}

// Graphs with their collections, savers and signatures (MetaGraphDef on the wire, the `.meta` file
// beside a checkpoint).
namespace WEIR_API weir {

// A function of a model: maps the names of its arguments and results to tensor names ("x:0").
struct Signature {
  std::map<std::string, std::string> inputs, outputs;  // argument or result -> tensor
  std::string method_name;                             // "tensorflow/serving/predict"
  // The values of arguments that a caller may omit.
  std::map<std::string, Tensor> defaults = {};
};

// The dtype and shape that a signature declares for a tensor, which may say more than the graph.
struct DeclaredType {
  DataType dtype = DT_INVALID;  // of an operation: invalid
  Shape shape = Shape::UnknownRank();
};

// What a meta graph contains besides the graph, and how the graph is exported.
struct MetaGraphOptions {
  std::optional<SaverDef> saver = {};                // how to save and restore the variables
  std::map<std::string, Signature> signatures = {};  // by name
  std::vector<std::string> tags = {};                // "serve"
  std::map<std::string, std::string> assets = {};    // tensor -> file, as in MetaGraph
  bool clear_devices = false;                        // without the devices that nodes request
  // Exports only the nodes of this name scope, with the scope stripped from their names. An input
  // from outside the scope becomes an unbound input, for which the importer must supply a tensor;
  // see ImportMetaGraphOptions::input_map. Collection items whose names are outside the scope are
  // omitted; numbers and strings are exported unchanged.
  std::string export_scope = {};
};
// Exports the graph, its collections, and the definitions of the ops that it uses. Collections of
// variables, savers, numbers, strings, tensors and ops are exported. The names of collections with
// other or mixed contents are appended to `dropped`, if given.
void ExportMetaGraph(const Graph& graph, const MetaGraphOptions& options, proto::MetaGraphDef* def,
                     std::vector<std::string>* dropped = nullptr);
// Returns the same as the serialized bytes of a MetaGraphDef.
std::string SerializeMetaGraph(const Graph& graph, const MetaGraphOptions& options = {},
                               std::vector<std::string>* dropped = nullptr);
// Writes the same to a file, which is replaced atomically; in text format if the name ends in
// ".pbtxt" or ".txt".
absl::Status WriteMetaGraph(const Graph& graph, const std::string& path,
                            const MetaGraphOptions& options = {},
                            Durability durability = Durability::kSynced);

// Returns true for the collections whose bytes an import parses as variables. The bytes of other
// collections may look like variables: control-flow contexts do.
bool HoldsVariables(absl::string_view collection);

// How a meta graph is added to a graph.
struct ImportMetaGraphOptions {
  // The name scope of the imported nodes, inside the current scope. It is made unique ("a_1" if "a"
  // exists), unless it ends in '/'.
  std::string import_scope = {};
  bool clear_devices = false;
  // Maps input names in the meta graph to the tensors that replace them. All unbound inputs of a
  // partial graph ("$unbound_inputs_x:0") must be present; otherwise the import returns
  // INVALID_ARGUMENT with the names of the missing ones.
  std::map<std::string, Output> input_map = {};
  // What happens to ops and attributes that this program does not know (core/io/graph_io.h).
  UnknownParts unknown = UnknownParts::kKeep;
};
// The contents of a meta graph besides the graph and its collections. Names include the import
// scope.
struct MetaGraph {
  std::string scope;              // the scope of the imported nodes; empty for the root
  std::optional<SaverDef> saver;  // unset: the meta graph has none
  std::map<std::string, Signature> signatures;   // by name
  std::map<std::string, DeclaredType> declared;  // by tensor: what the signatures say of it
  std::vector<std::string> tags;                 // that the meta graph was saved with
  std::map<std::string, std::string> assets;     // tensor -> file in the directory assets/
};
// Adds the nodes and the contents of the collections, under their new names. Variables become
// handles to the imported nodes, so that training can resume from the collections alone. Errors are
// those of ImportGraphDef. A collection element that is malformed or names a node that does not
// exist is skipped with a line on stderr: the graph is usable without it.
absl::StatusOr<MetaGraph> ImportMetaGraph(Graph& graph, const proto::MetaGraphDef& def,
                                          const ImportMetaGraphOptions& options = {});
// Imports from the bytes of a MetaGraphDef. Also returns INVALID_ARGUMENT for bytes that do not
// parse as a MetaGraphDef.
absl::StatusOr<MetaGraph> ImportMetaGraph(Graph& graph, absl::string_view bytes,
                                          const ImportMetaGraphOptions& options = {});
absl::StatusOr<MetaGraph> ImportMetaGraphFile(Graph& graph, const std::string& path,
                                              const ImportMetaGraphOptions& options = {});

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_META_GRAPH_H_
