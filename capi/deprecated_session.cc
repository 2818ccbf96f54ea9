#include <set>

#include "weir/capi/session.h"
#include "weir/core/import/edges.h"
#include "weir/proto/graph.pb.h"

// Sessions of the oldest form, which own their graph and name its tensors. Each function resolves
// the names and calls the one of sessions.

struct TF_DeprecatedSession {
  TF_Graph* graph;
  TF_Session* session;
};

namespace weir::capi {

namespace {

// The feeds, fetches and targets of a call, by name.
struct Names {
  const char** inputs;
  int num_inputs;
  const char** outputs;
  int num_outputs;
  const char** targets;
  int num_targets;
};

// What the names stand for.
struct Handles {
  std::vector<TF_Output> inputs, outputs;
  std::vector<const TF_Operation*> targets;
};

absl::Status ResolveTensors(const Graph& graph, const char** names, int count,
                            std::vector<TF_Output>* handles) {
  WEIR_ASSIGN_OR_RETURN(const auto array, ArrayOf(names, count, "names"));
  for (const char* name : array) {
    if (name == nullptr) return InvalidArgument("a name is null");
    WEIR_ASSIGN_OR_RETURN(const Output output, graph.FindOutput(name));
    handles->push_back(HandleOf(output));
  }
  return absl::OkStatus();
}

absl::StatusOr<Handles> Resolve(TF_Graph* graph, const Names& names) {
  const MutexLock lock(graph->mutex);
  const Graph& nodes = *graph->graph;
  if (nodes.num_nodes() == 0)
    return InvalidArgument("Session was not created with a graph before Run()!");
  Handles handles;
  WEIR_RETURN_IF_ERROR(ResolveTensors(nodes, names.inputs, names.num_inputs, &handles.inputs));
  WEIR_RETURN_IF_ERROR(ResolveTensors(nodes, names.outputs, names.num_outputs, &handles.outputs));
  WEIR_RETURN_IF_ERROR(ArrayOf(names.targets, names.num_targets, "targets").status());
  for (int i = 0; i < names.num_targets; ++i) {
    Node* const node = names.targets[i] == nullptr ? nullptr : nodes.FindNode(names.targets[i]);
    if (node == nullptr) return NotFound("target ", i, " is not in the graph");
    handles.targets.push_back(OperationOf(node));
  }
  return handles;
}

// Maps the inputs that are not in the GraphDef to the nodes of the graph.
void MapToExisting(const proto::GraphDef& def, TF_Graph* graph, TF_ImportGraphDefOptions* options) {
  std::set<absl::string_view> own;
  for (const proto::NodeDef& node : def.node()) own.insert(node.name());
  for (const proto::NodeDef& node : def.node()) {
    for (const std::string& text : node.input()) {
      const InputName input = ParseInputName(text);
      const std::string name(input.node);
      TF_Operation* const existing =
          own.count(input.node) > 0 ? nullptr : TF_GraphOperationByName(graph, name.c_str());
      if (existing == nullptr) continue;
      if (input.control) {
        TF_ImportGraphDefOptionsRemapControlDependency(options, name.c_str(), existing);
      } else {
        TF_ImportGraphDefOptionsAddInputMapping(options, name.c_str(), input.index,
                                                {existing, input.index});
      }
    }
  }
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::SetStatus;

TF_DeprecatedSession* TF_NewDeprecatedSession(const TF_SessionOptions* options, TF_Status* status) {
  TF_Graph* const graph = TF_NewGraph();
  TF_Session* const session = TF_NewSession(graph, options, status);
  if (session != nullptr) return new TF_DeprecatedSession{graph, session};
  TF_DeleteGraph(graph);
  return nullptr;
}

void TF_CloseDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status) {
  if (HaveAll("TF_CloseDeprecatedSession", {session}, status))
    TF_CloseSession(session->session, status);
}

void TF_DeleteDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status) {
  if (session != nullptr) TF_DeleteGraph(session->graph);
  TF_DeleteSession(session == nullptr ? nullptr : session->session, status);
  delete session;
}

void TF_Reset(const TF_SessionOptions* opt, const char** containers, int ncontainers,
              TF_Status* status) {
  static_cast<void>(opt);
  static_cast<void>(containers);
  static_cast<void>(ncontainers);
  SetStatus(status, weir::Unimplemented("TF_Reset: only a server has state without a session"));
}

void TF_ExtendGraph(TF_DeprecatedSession* session, const void* proto, size_t proto_len,
                    TF_Status* status) {
  if (!HaveAll("TF_ExtendGraph", {session, proto}, status)) return;
  weir::proto::GraphDef def;
  if (!weir::capi::ParseMessage(proto, proto_len, &def))
    return SetStatus(status, weir::InvalidArgument("Unparseable GraphDef"));
  TF_ImportGraphDefOptions* const options = TF_NewImportGraphDefOptions();
  weir::capi::MapToExisting(def, session->graph, options);
  const TF_Buffer bytes = {proto, proto_len, nullptr};
  TF_GraphImportGraphDef(session->graph, &bytes, options, status);
  TF_DeleteImportGraphDefOptions(options);
}

void TF_Run(TF_DeprecatedSession* session, const TF_Buffer* run_options, const char** input_names,
            TF_Tensor** inputs, int ninputs, const char** output_names, TF_Tensor** outputs,
            int noutputs, const char** target_oper_names, int ntargets, TF_Buffer* run_metadata,
            TF_Status* status) {
  weir::capi::ClearFetches(outputs, noutputs);
  if (!HaveAll("TF_Run", {session}, status)) return;
  const auto handles = weir::capi::Resolve(
      session->graph, {input_names, ninputs, output_names, noutputs, target_oper_names, ntargets});
  if (!handles.ok()) return SetStatus(status, handles.status());
  TF_SessionRun(session->session, run_options, handles->inputs.data(), inputs, ninputs,
                handles->outputs.data(), outputs, noutputs, handles->targets.data(), ntargets,
                run_metadata, status);
}

void TF_PRunSetup(TF_DeprecatedSession* session, const char** input_names, int ninputs,
                  const char** output_names, int noutputs, const char** target_oper_names,
                  int ntargets, const char** handle, TF_Status* status) {
  if (handle != nullptr) *handle = nullptr;
  if (!HaveAll("TF_PRunSetup", {session}, status)) return;
  const auto handles = weir::capi::Resolve(
      session->graph, {input_names, ninputs, output_names, noutputs, target_oper_names, ntargets});
  if (!handles.ok()) return SetStatus(status, handles.status());
  TF_SessionPRunSetup(session->session, handles->inputs.data(), ninputs, handles->outputs.data(),
                      noutputs, handles->targets.data(), ntargets, handle, status);
}

void TF_PRun(TF_DeprecatedSession* session, const char* handle, const char** input_names,
             TF_Tensor** inputs, int ninputs, const char** output_names, TF_Tensor** outputs,
             int noutputs, const char** target_oper_names, int ntargets, TF_Status* status) {
  weir::capi::ClearFetches(outputs, noutputs);
  if (!HaveAll("TF_PRun", {session}, status)) return;
  const auto handles = weir::capi::Resolve(
      session->graph, {input_names, ninputs, output_names, noutputs, target_oper_names, ntargets});
  if (!handles.ok()) return SetStatus(status, handles.status());
  TF_SessionPRun(session->session, handle, handles->inputs.data(), inputs, ninputs,
                 handles->outputs.data(), outputs, noutputs, handles->targets.data(), ntargets,
                 status);
}

TF_DeviceList* TF_DeprecatedSessionListDevices(TF_DeprecatedSession* session, TF_Status* status) {
  if (!HaveAll("TF_DeprecatedSessionListDevices", {session}, status)) return nullptr;
  return TF_SessionListDevices(session->session, status);
}
