#include "weir/serving/frozen_graph.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/session/plan/variable_use.h"

namespace weir::serving {
namespace {

absl::StatusOr<std::string> GraphFileIn(const std::string& directory) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> names, Files().List(directory));
  std::vector<std::string> graphs;
  for (const std::string& name : names) {
    if (absl::EndsWith(name, ".pb")) graphs.push_back(name);
  }
  if (graphs.size() == 1) return JoinPath(directory, graphs[0]);
  if (graphs.size() > 1) {
    return InvalidArgument(directory, " has several graphs: ", absl::StrJoin(graphs, ", "),
                           "; expected saved_model.pb, or one frozen graph");
  }
  return NotFound("Could not find SavedModel .pb or .pbtxt at supplied export directory path: ",
                  directory, ", and no frozen graph (*.pb) either");
}

bool IsPlaceholder(const Node& node) {
  return node.op_name() == "Placeholder" || node.op_name() == "PlaceholderV2";
}

absl::StatusOr<Signature> SignatureOf(const Graph& graph) {
  std::set<const Node*> used;
  for (const auto& node : graph.nodes()) {
    for (const Output& input : node->inputs()) used.insert(input.node);
    for (const Node* input : node->control_inputs()) used.insert(input);
  }
  Signature signature{.method_name = "tensorflow/serving/predict"};
  for (const auto& node : graph.nodes()) {
    if (IsVariable(*node)) {
      return InvalidArgument("the graph has variable ", node->Label(),
                             ", whose value is not in the file; freeze the graph, or export a "
                             "SavedModel");
    }
    if (IsPlaceholder(*node)) {
      signature.inputs[node->name()] = absl::StrCat(node->name(), ":0");
      continue;
    }
    if (used.count(node.get()) > 0 || node->op_name() == "Const") continue;
    for (int i = 0; i < node->num_outputs(); ++i) {
      const std::string tensor = absl::StrCat(node->name(), ":", i);
      signature.outputs[i == 0 ? node->name() : tensor] = tensor;
    }
  }
  if (signature.inputs.empty()) return InvalidArgument("the graph has no placeholder to feed");
  if (signature.outputs.empty()) return InvalidArgument("the graph has no output to fetch");
  return signature;
}

}  // namespace

absl::StatusOr<LoadedModel> LoadFrozenGraph(const std::string& directory, SessionOptions options) {
  WEIR_ASSIGN_OR_RETURN(const std::string path, GraphFileIn(directory));
  LoadedModel model;
  model.graph = std::make_unique<Graph>();
  WEIR_RETURN_IF_ERROR(ImportGraphFile(*model.graph, path).status());
  absl::StatusOr<Signature> signature = SignatureOf(*model.graph);
  if (!signature.ok()) return Annotate(signature.status(), path);
  model.meta.signatures["serving_default"] = *std::move(signature);
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(*model.graph, std::move(options)));
  model.session = std::make_unique<Session>(std::move(session));
  return model;
}

}  // namespace weir::serving
