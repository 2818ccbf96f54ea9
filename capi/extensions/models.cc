#include "weir/c_api.h"
#include "weir/capi/extensions/options.h"
#include "weir/capi/session.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/model/freeze.h"
#include "weir/session/model/saved_model.h"
#include "weir/session/model/saver.h"

// Models for others: SavedModels and frozen graphs.

namespace weir::capi {

namespace {

constexpr char kInputs[] = "/inputs/", kOutputs[] = "/outputs/";

// Returns the signatures of a text: "serving_default/inputs/x=x:0".
absl::StatusOr<std::map<std::string, Signature>> ParseSignatures(absl::string_view text) {
  std::map<std::string, Signature> signatures;
  WEIR_ASSIGN_OR_RETURN(const auto pairs, ParsePairs(text));
  for (const auto& [key, tensor] : pairs) {
    const size_t input = key.find(kInputs), output = key.find(kOutputs);
    const size_t at = std::min(input, output);
    if (at == std::string::npos || at == 0)
      return InvalidArgument("signatures: '", key, "' is not NAME/inputs/ARGUMENT or NAME/outputs/",
                             "RESULT");
    Signature& signature = signatures[key.substr(0, at)];
    signature.method_name = "tensorflow/serving/predict";
    const size_t size = input == at ? sizeof(kInputs) - 1 : sizeof(kOutputs) - 1;
    (input == at ? signature.inputs : signature.outputs)[key.substr(at + size)] = tensor;
  }
  return signatures;
}

absl::StatusOr<Operation> OperationNamed(const std::string& name, const Graph& graph) {
  Node* const node = graph.FindNode(name);
  if (node == nullptr) return NotFound("the graph has no operation '", name, "'");
  return Operation(node);
}

absl::StatusOr<SavedModelOptions> ParseModelOptions(const char* text, const Graph& graph) {
  SavedModelOptions model;
  std::string init_op;
  OptionReader options(text);
  options.Read("tags", &model.tags);
  options.Read("clear_devices", &model.clear_devices);
  options.Read("init_op", &init_op);
  options.Read("objects", &model.objects);
  options.Read("as_text", &model.as_text);
  options.Read("synced", &model.durability);
  WEIR_RETURN_IF_ERROR(options.Finish());
  if (!init_op.empty()) {
    WEIR_ASSIGN_OR_RETURN(model.init_op, OperationNamed(init_op, graph));
  }
  return model;
}

// The nodes by which models are saved, and the variables that they save.
struct ModelSaver {
  std::optional<SaverDef> def;
  std::vector<std::string> variables;
};

// Adds nodes that save the variables of the graph, unless an export before has done so.
absl::Status UpdateSaver(Graph& graph) {
  std::vector<std::string> names;
  for (const Variable& variable : GlobalVariables(graph)) names.push_back(variable.name());
  auto& saver = graph.Extension<ModelSaver>();
  if (saver.variables == names && (saver.def || names.empty())) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const Saver made, Saver::Create(graph));
  saver = {made.def(), std::move(names)};
  return absl::OkStatus();
}

absl::Status ExportModel(TF_Session* session, const char* folder, const char* signatures,
                         const char* text) {
  WEIR_RETURN_IF_ERROR(session->graph->Change(UpdateSaver));
  const MutexLock lock(session->graph->mutex);
  Graph& graph = *session->graph->graph;
  WEIR_ASSIGN_OR_RETURN(SavedModelOptions options, ParseModelOptions(text, graph));
  WEIR_ASSIGN_OR_RETURN(const auto parsed, ParseSignatures(signatures));
  options.saver = graph.Extension<ModelSaver>().def;
  return WriteSavedModel(*session->session, graph, folder, parsed, options);
}

absl::StatusOr<std::string> Freeze(TF_Session* session, const TF_Output* outputs, int num_outputs,
                                   const char* text) {
  const MutexLock lock(session->graph->mutex);
  const Graph& graph = *session->graph->graph;
  FreezeOptions freeze;
  std::vector<std::string> targets;
  OptionReader options(text);
  options.Read("targets", &targets);
  options.Read("clear_devices", &freeze.clear_devices);
  WEIR_RETURN_IF_ERROR(options.Finish());
  for (const std::string& target : targets) {
    WEIR_ASSIGN_OR_RETURN(freeze.targets.emplace_back(), OperationNamed(target, graph));
  }
  WEIR_ASSIGN_OR_RETURN(const Outputs kept, OutputsOf(outputs, num_outputs, graph));
  WEIR_ASSIGN_OR_RETURN(const auto frozen, FreezeGraph(*session->session, kept, freeze));
  std::string bytes = SerializeGraph(*frozen);
  if (bytes.empty()) return InvalidArgument("the graph is too large to be serialized (2 GiB)");
  return bytes;
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::SetStatus;

void weir_export_saved_model(TF_Session* session, const char* folder, const char* signatures,
                             const char* options, TF_Status* status) {
  if (!HaveAll("weir_export_saved_model", {session, folder, signatures}, status)) return;
  SetStatus(status, weir::capi::ExportModel(session, folder, signatures, options));
}

void weir_freeze(TF_Session* session, const TF_Output* outputs, int num_outputs,
                 const char* options, TF_Buffer* graph_def, TF_Status* status) {
  if (!HaveAll("weir_freeze", {session, graph_def}, status)) return;
  const auto bytes = weir::capi::Freeze(session, outputs, num_outputs, options);
  if (bytes.ok()) weir::capi::SetBuffer(*bytes, graph_def);
  SetStatus(status, bytes.status());
}
