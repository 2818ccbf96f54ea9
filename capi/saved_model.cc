#include "weir/session/model/saved_model.h"
#include "weir/capi/plugins.h"
#include "weir/capi/session.h"
#include "weir/proto/meta_graph.pb.h"

namespace weir::capi {

namespace {

// Loads a model; the messages are those that clients look for.
absl::StatusOr<LoadedModel> Load(const std::string& directory, const std::vector<std::string>& tags,
                                 const SessionOptions& options, proto::MetaGraphDef* meta) {
  if (!HoldsSavedModel(directory)) {
    return NotFound("Could not find SavedModel .pb or .pbtxt at supplied export directory path: ",
                    directory, ". Check that the directory exists and that you have the right ",
                    "permissions for accessing it.");
  }
  WEIR_RETURN_IF_ERROR(ReadSavedModel(directory, tags, meta));
  if (tags.empty() && meta->meta_info_def().tags_size() > 0) {
    return NotFound("Could not find meta graph def matching supplied tags: { }. To inspect ",
                    "available tag-sets in the SavedModel, please use `weir model show`");
  }
  return LoadSavedModel(directory, tags, options, UnknownParts::kKeepQuietly,
                        Plugins::Instance().ops());
}

absl::StatusOr<TF_Session*> LoadInto(TF_Graph* graph, const std::string& directory,
                                     const std::vector<std::string>& tags,
                                     const SessionOptions& options, TF_Buffer* meta_graph_def) {
  if (meta_graph_def != nullptr && meta_graph_def->data != nullptr)
    return InvalidArgument("Passing non-empty meta_graph_def is invalid.");
  const MutexLock lock(graph->mutex);
  if (graph->graph->num_nodes() > 0 || !graph->sessions.empty())
    return InvalidArgument("Graph is non-empty.");
  proto::MetaGraphDef meta;
  WEIR_ASSIGN_OR_RETURN(LoadedModel model, Load(directory, tags, options, &meta));
  graph->graph = std::move(model.graph);
  if (meta_graph_def != nullptr) SetBuffer(meta.SerializeAsString(), meta_graph_def);
  return Register(graph, std::move(model.session));
}

}  // namespace

}  // namespace weir::capi

TF_Session* TF_LoadSessionFromSavedModel(const TF_SessionOptions* session_options,
                                         const TF_Buffer* run_options, const char* export_dir,
                                         const char* const* tags, int tags_len, TF_Graph* graph,
                                         TF_Buffer* meta_graph_def, TF_Status* status) {
  static_cast<void>(run_options);  // of the init op, which has no time limit here
  if (!weir::capi::HaveAll("TF_LoadSessionFromSavedModel", {export_dir, graph}, status))
    return nullptr;
  std::vector<std::string> wanted;
  for (int i = 0; i < tags_len; ++i) {
    if (tags == nullptr || tags[i] == nullptr) {
      weir::capi::SetStatus(status, weir::InvalidArgument("a tag is null"));
      return nullptr;
    }
    wanted.emplace_back(tags[i]);
  }
  const absl::StatusOr<TF_Session*> session = weir::capi::LoadInto(
      graph, export_dir, wanted,
      session_options == nullptr ? weir::capi::DefaultOptions() : session_options->options,
      meta_graph_def);
  weir::capi::SetStatus(status, session.status());
  return session.ok() ? *session : nullptr;
}
