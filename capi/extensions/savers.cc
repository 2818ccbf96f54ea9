#include <optional>

#include "weir/c_api.h"
#include "weir/capi/extensions/options.h"
#include "weir/capi/extensions/saver_object.h"
#include "weir/capi/extensions/variable_handles.h"
#include "weir/capi/session.h"
#include "weir/session/model/saver.h"

// Savers.

namespace weir::capi {

namespace {

absl::StatusOr<SaverOptions> ParseSaverOptions(const char* text) {
  SaverOptions saver;
  OptionReader options(text);
  options.Read("max_to_keep", &saver.max_to_keep);
  options.Read("keep_checkpoint_every_n_hours", &saver.keep_checkpoint_every_n_hours);
  options.Read("keep_best", &saver.keep_best);
  options.ReadChoice("better", {"higher", "lower"}, &saver.better);
  options.Read("sharded", &saver.sharded);
  options.Read("reshape", &saver.reshape);
  options.Read("pad_step_number", &saver.pad_step_number);
  options.Read("save_relative_paths", &saver.save_relative_paths);
  options.Read("write_version", &saver.write_version);
  options.Read("synced", &saver.durability);
  options.Read("name", &saver.name);
  WEIR_RETURN_IF_ERROR(options.Finish());
  if (saver.max_to_keep < 0 || saver.keep_best < 0)
    return InvalidArgument("max_to_keep and keep_best are not negative");
  if (saver.write_version != 1 && saver.write_version != 2)
    return InvalidArgument("write_version is 1 or 2");
  return saver;
}

absl::StatusOr<SaveOptions> ParseSaveOptions(int64_t global_step, const char* text) {
  SaveOptions save;
  if (global_step >= 0) save.global_step = global_step;
  OptionReader options(text);
  options.ReadChoice("mode", {"sync", "async", "async_or_skip"}, &save.mode);
  options.Read("metric", &save.metric);
  options.Read("latest_filename", &save.latest_filename);
  options.Read("write_state", &save.write_state);
  options.Read("write_meta_graph", &save.write_meta_graph);
  options.Read("exact_resume", &save.exact_resume);
  WEIR_RETURN_IF_ERROR(options.Finish());
  return save;
}

absl::StatusOr<Saver> MakeSaver(Graph& graph, TF_Operation* const* variables, int num_variables,
                                const char* text) {
  WEIR_ASSIGN_OR_RETURN(SaverOptions options, ParseSaverOptions(text));
  WEIR_ASSIGN_OR_RETURN(options.variables, VariablesOf(variables, num_variables, graph));
  return Saver::Create(graph, options);
}

absl::StatusOr<std::string> Save(weir_saver* saver, TF_Session* session, const char* path,
                                 int64_t global_step, const char* text) {
  WEIR_ASSIGN_OR_RETURN(const SaveOptions options, ParseSaveOptions(global_step, text));
  const MutexLock lock(saver->mutex);
  const MutexLock graph_lock(session->graph->mutex);  // for the meta graph
  return saver->saver.Save(*session->session, path, options);
}

absl::Status Restore(weir_saver* saver, TF_Session* session, const char* path) {
  const MutexLock lock(saver->mutex);
  const MutexLock graph_lock(session->graph->mutex);
  return saver->saver.Restore(*session->session, path);
}

absl::StatusOr<std::string> RestoreLatest(weir_saver* saver, TF_Session* session,
                                          const char* folder, bool skip_damaged) {
  const MutexLock lock(saver->mutex);
  const MutexLock graph_lock(session->graph->mutex);
  return saver->saver.RestoreLatest(*session->session, folder, skip_damaged);
}

}  // namespace

}  // namespace weir::capi

using weir::MutexLock;
using weir::capi::HaveAll;
using weir::capi::SetBuffer;
using weir::capi::SetStatus;

weir_saver* weir_new_saver(TF_Graph* graph, TF_Operation* const* variables, int num_variables,
                           const char* options, TF_Status* status) {
  if (!HaveAll("weir_new_saver", {graph}, status)) return nullptr;
  std::optional<weir::Saver> made;
  SetStatus(status, graph->Change([&](weir::Graph& changed) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(made, weir::capi::MakeSaver(changed, variables, num_variables, options));
    return absl::OkStatus();
  }));
  return made && TF_GetCode(status) == TF_OK ? new weir_saver(*std::move(made)) : nullptr;
}

weir_saver* weir_new_saver_from_def(const TF_Buffer* saver_def, TF_Status* status) {
  if (!HaveAll("weir_new_saver_from_def", {saver_def}, status)) return nullptr;
  auto def = weir::SaverDef::FromBytes(weir::capi::BytesOf(saver_def));
  if (def.ok() && def->save_tensor_name.empty())
    def = weir::InvalidArgument("the SaverDef names no nodes");
  SetStatus(status, def.status());
  return def.ok() ? new weir_saver(weir::Saver::FromDef(*def)) : nullptr;
}

void weir_delete_saver(weir_saver* saver) { delete saver; }

void weir_saver_def(weir_saver* saver, TF_Buffer* saver_def, TF_Status* status) {
  if (!HaveAll("weir_saver_def", {saver, saver_def}, status)) return;
  const MutexLock lock(saver->mutex);
  SetBuffer(saver->saver.def().ToBytes(), saver_def);
  SetStatus(status, absl::OkStatus());
}

void weir_saver_save(weir_saver* saver, TF_Session* session, const char* path, int64_t global_step,
                     const char* options, TF_Buffer* saved_path, TF_Status* status) {
  if (!HaveAll("weir_saver_save", {saver, session, path}, status)) return;
  const auto saved = weir::capi::Save(saver, session, path, global_step, options);
  if (saved.ok() && saved_path != nullptr) SetBuffer(*saved, saved_path);
  SetStatus(status, saved.status());
}

void weir_saver_wait(weir_saver* saver, TF_Status* status) {
  if (!HaveAll("weir_saver_wait", {saver}, status)) return;
  const MutexLock lock(saver->mutex);
  SetStatus(status, saver->saver.Wait());
}

void weir_saver_restore(weir_saver* saver, TF_Session* session, const char* path,
                        TF_Status* status) {
  if (!HaveAll("weir_saver_restore", {saver, session, path}, status)) return;
  SetStatus(status, weir::capi::Restore(saver, session, path));
}

void weir_saver_restore_latest(weir_saver* saver, TF_Session* session, const char* folder,
                               int skip_damaged, TF_Buffer* path, TF_Status* status) {
  if (!HaveAll("weir_saver_restore_latest", {saver, session, folder}, status)) return;
  const auto restored = weir::capi::RestoreLatest(saver, session, folder, skip_damaged != 0);
  if (restored.ok() && path != nullptr) SetBuffer(*restored, path);
  SetStatus(status, restored.status());
}

void weir_saver_checkpoints(weir_saver* saver, TF_Buffer* paths, TF_Status* status) {
  if (!HaveAll("weir_saver_checkpoints", {saver, paths}, status)) return;
  const MutexLock lock(saver->mutex);
  weir::capi::SetList(saver->saver.last_checkpoints(), paths);
  SetStatus(status, absl::OkStatus());
}
