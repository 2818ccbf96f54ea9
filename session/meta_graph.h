#ifndef WEIR_SESSION_META_GRAPH_H_
#define WEIR_SESSION_META_GRAPH_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/file.h"
#include "weir/ops/saver.h"
#include "weir/session/session.h"

namespace weir::proto {
class MetaGraphDef;
}

// Graphs with what belongs to them: collections, savers, signatures (MetaGraphDef on the wire, the
// `.meta` file beside a checkpoint).
namespace weir {

// A function of a model: names of tensors ("x:0") by the names of its arguments and results.
struct Signature {
  std::map<std::string, std::string> inputs, outputs;
  std::string method_name;
};

struct MetaGraphOptions {
  std::optional<SaverDef> saver = {};
  std::map<std::string, Signature> signatures = {};
  std::vector<std::string> tags = {};
  std::map<std::string, std::string> assets = {};  // tensor -> file, as in MetaGraph
  bool clear_devices = false;
  // Only the nodes of this name scope, under their names in it. What they take from outside becomes
  // an unbound input, which an import needs a tensor for; see ImportMetaGraphOptions::input_map. Of
  // collections, what has a name elsewhere is left out; numbers and strings stay as they are.
  std::string export_scope = {};
};
// The graph, its collections, and the signatures of the ops it uses. Collections of variables,
// savers, numbers, strings, tensors and ops are kept; of those with other or mixed things,
// `dropped` (if given) gets the names.
void ExportMetaGraph(const Graph& graph, const MetaGraphOptions& options, proto::MetaGraphDef* def,
                     std::vector<std::string>* dropped = nullptr);
// The same as a MetaGraphDef's serialized bytes.
std::string SerializeMetaGraph(const Graph& graph, const MetaGraphOptions& options = {},
                               std::vector<std::string>* dropped = nullptr);
// To a file, which is replaced in one step; as text if the name ends in ".pbtxt" or ".txt".
absl::Status WriteMetaGraph(const Graph& graph, const std::string& path,
                            const MetaGraphOptions& options = {},
                            Durability durability = Durability::kSynced);

// True for the collections whose bytes an import reads as variables. What others hold may look like
// one: the contexts of control flow do.
bool HoldsVariables(absl::string_view collection);

struct ImportMetaGraphOptions {
  // The name scope that the nodes go to, inside the current one; made unique ("a_1" if there is an
  // "a" already), unless it ends in '/'.
  std::string import_scope = {};
  bool clear_devices = false;
  // Inputs by their names in the meta graph -> tensors to take instead. All unbound inputs of a
  // part of a graph ("$unbound_inputs_x:0") must be here, else INVALID_ARGUMENT names those that
  // are not.
  std::map<std::string, Output> input_map = {};
};
// What a meta graph says besides the graph and its collections. Names have the import scope in
// front.
struct MetaGraph {
  std::string scope;  // where the nodes went; empty for the root
  std::optional<SaverDef> saver;
  std::map<std::string, Signature> signatures;
  std::vector<std::string> tags;
  std::map<std::string, std::string> assets;  // tensor -> file in the directory assets/
};
// Adds the nodes, and what the collections hold, under its new names: variables as handles onto
// these nodes, so that a model trains on by its collections alone. Errors are those of
// ImportGraphDef. An element of a collection that is malformed, or names what is not
// there, is left out with a line on stderr: the graph is usable without it.
absl::StatusOr<MetaGraph> ImportMetaGraph(Graph& graph, const proto::MetaGraphDef& def,
                                          const ImportMetaGraphOptions& options = {});
// The same from a MetaGraphDef's bytes; INVALID_ARGUMENT as well for what is no MetaGraphDef.
absl::StatusOr<MetaGraph> ImportMetaGraph(Graph& graph, absl::string_view bytes,
                                          const ImportMetaGraphOptions& options = {});
absl::StatusOr<MetaGraph> ImportMetaGraphFile(Graph& graph, const std::string& path,
                                              const ImportMetaGraphOptions& options = {});

}  // namespace weir

#endif  // WEIR_SESSION_META_GRAPH_H_
