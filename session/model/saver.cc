#include "weir/session/model/saver.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/core/io/file.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/model/interrupted_saves.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/model/restore_latest.h"
#include "weir/session/model/resume_state.h"
#include "weir/session/model/save_snapshot.h"

namespace weir {
namespace {

double Now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

// Returns whether a checkpoint of this name has a file of that name.
bool IsFileOf(absl::string_view checkpoint, absl::string_view file) {
  return absl::ConsumePrefix(&file, checkpoint) &&
         (file.empty() || file == ".index" || file == ".meta" || file == ".metric" ||
          file == ".resume" || absl::StartsWith(file, ".data-"));
}

// Returns the checkpoints that the state file lists, oldest first, but damaged ones before all:
// sound ones outlast them. The restored one, if the state file is damaged.
std::vector<std::string> OldestFirst(const RestoredLatest& restored) {
  std::vector<std::string> paths = restored.state.all_model_checkpoint_paths;
  if (restored.state.model_checkpoint_path.empty()) return {restored.path};
  std::stable_partition(paths.begin(), paths.end(), [&](const std::string& path) {
    return absl::c_linear_search(restored.skipped, path);
  });
  return paths;
}

// A checkpoint that a saver has written, and the metric that it was saved with.
struct SavedCheckpoint {
  std::string path;
  double time;  // seconds since 1970
  std::optional<double> metric;
};

// What remains to be done after the values are in files.
struct PendingSave {
  std::string prefix;
  SaveOptions options;
  std::string meta_graph;                  // its bytes; empty: none
  std::unique_ptr<SaveMark> mark;          // null without a state file
  std::optional<ResumeState> resume = {};  // nothing without exact_resume
  // Of checkpoints of interrupted saves, which the new state file does not list any more.
  std::vector<std::unique_ptr<SaveMark>> adopted = {};

  // Removes what a save that failed before its values were in files has left.
  void CleanUp() {
    if (mark != nullptr) CleanUpFailedSave(prefix, mark.get());
  }
  void FinishMarks() {
    for (const std::unique_ptr<SaveMark>& each : adopted) each->Finish();
    if (mark != nullptr) mark->Finish();
  }
};

}  // namespace

// While `thread` runs, it alone uses `checkpoints`, `next_kept` and `last_preserved`.
struct Saver::Impl {
  explicit Impl(SaverDef d) : def(std::move(d)), next_kept(Now() + keep_seconds()) {}
  ~Impl() { Join(); }

  double keep_seconds() const { return def.keep_checkpoint_every_n_hours * 3600.0; }
  void Join();
  absl::Status TakeError();
  std::string PrefixOf(const std::string& path, const SaveOptions& options) const;
  absl::Status Check(const std::string& path, const SaveOptions& options) const;
  absl::StatusOr<std::string> Save(Session& session, const std::string& path,
                                   const SaveOptions& options);
  absl::StatusOr<ResumeState> TakeResumeState(Session& session);
  absl::StatusOr<std::string> SaveNow(Session& session, PendingSave save);
  absl::StatusOr<std::string> SaveLater(Session& session, PendingSave save);
  void AdoptInterrupted(const std::string& path, PendingSave* save);
  absl::Status Commit(PendingSave& save, absl::Status* removal);
  std::vector<RetainedCheckpoint> Decide(bool explain) const;
  void Record(const std::string& path, std::optional<double> metric);
  absl::Status RemoveOthers(const PendingSave& save, absl::Status* removal);
  void Recover(const std::vector<std::string>& paths);

  SaverDef def;
  int keep_best = 0;
  Better better = Better::kHigher;
  bool pad_step_number = false, save_relative_paths = false;
  bool has_warned = false;  // that a resume will not be exact
  Durability durability = Durability::kSynced;
  double next_kept;           // when the next period with a checkpoint that stays begins
  double last_preserved = 0;  // the time of the last of these checkpoints; 0: none
  std::vector<SavedCheckpoint> checkpoints;  // oldest first

  std::thread thread;
  std::atomic<bool> is_writing{false};
  absl::Status status;  // of the last writing, until it is returned
};

void Saver::Impl::Join() {
  if (thread.joinable()) thread.join();
}

absl::Status Saver::Impl::TakeError() {
  Join();
  return std::exchange(status, absl::OkStatus());
}

std::string Saver::Impl::PrefixOf(const std::string& path, const SaveOptions& options) const {
  if (!options.global_step) return path;
  return path + (pad_step_number ? absl::StrFormat("-%08d", *options.global_step)
                                 : absl::StrCat("-", *options.global_step));
}

absl::Status Saver::Impl::Check(const std::string& path, const SaveOptions& options) const {
  if (path.empty()) return InvalidArgument("no path specified to save to");
  const absl::string_view name = BaseName(path);
  if (name.empty() || name == "." || name == "..")
    return InvalidArgument("'", path, "' is a directory; append the name of a checkpoint");
  if (!Files().IsDirectory(DirectoryOf(path))) {
    return NotFound("Parent directory of ", path, " doesn't exist, can't save.");
  }
  const std::string prefix = PrefixOf(path, options);
  if (options.latest_filename == name || IsFileOf(BaseName(prefix), options.latest_filename)) {
    return InvalidArgument("latest_filename collides with save_path: '", options.latest_filename,
                           "' and '", path, "'");
  }
  return options.write_state ? CheckStatePath(prefix) : absl::OkStatus();
}

absl::StatusOr<std::string> Saver::Impl::Save(Session& session, const std::string& path,
                                              const SaveOptions& options) {
  WEIR_RETURN_IF_ERROR(Check(path, options));
  if (options.mode == SaveMode::kAsyncOrSkip && is_writing) return std::string();
  WEIR_RETURN_IF_ERROR(TakeError());
  PendingSave save{.prefix = PrefixOf(path, options), .options = options};
  if (options.exact_resume) {
    WEIR_ASSIGN_OR_RETURN(save.resume, TakeResumeState(session));
  }
  if (options.write_state && def.version >= 2) {
    AdoptInterrupted(path, &save);
    WEIR_ASSIGN_OR_RETURN(save.mark, SaveMark::Create(save.prefix, options.latest_filename));
  }
  return options.mode == SaveMode::kSync ? SaveNow(session, std::move(save))
                                         : SaveLater(session, std::move(save));
}

absl::StatusOr<ResumeState> Saver::Impl::TakeResumeState(Session& session) {
  if (def.version < 2) return Unimplemented("format V1 does not save for an exact resume");
  WEIR_ASSIGN_OR_RETURN(ResumeState state, ResumeState::Take(session, def));
  if (!state.lost().empty() && !has_warned) {
    std::fprintf(
        stderr,
        "weir: warning: a run resumed from its checkpoints will not be exact, but lose: %s\n",
        absl::StrJoin(state.lost(), "; ").c_str());
    has_warned = true;
  }
  return state;
}

absl::StatusOr<std::string> Saver::Impl::SaveNow(Session& session, PendingSave save) {
  const absl::StatusOr<Tensors> ran = session.Run(
      {{def.filename_tensor_name, Tensor::Scalar(save.prefix)}}, {def.save_tensor_name}, {});
  if (!ran.ok()) save.CleanUp();
  WEIR_RETURN_IF_ERROR(ran.status());
  const Tensors& saved = *ran;
  if (saved[0].dtype() != DT_STRING || saved[0].num_elements() != 1) {
    return InvalidArgument(def.save_tensor_name, " returned ", saved[0].Description(),
                           " instead of a path");
  }
  save.prefix = saved[0].scalar<std::string>();
  if (save.options.write_meta_graph) {
    WEIR_RETURN_IF_ERROR(
        WriteMetaGraph(session.graph(), MetaGraphPath(save.prefix), {.saver = def}, durability));
  }
  absl::Status removal;
  WEIR_RETURN_IF_ERROR(Commit(save, &removal));
  WEIR_RETURN_IF_ERROR(removal);
  return save.prefix;
}

absl::StatusOr<std::string> Saver::Impl::SaveLater(Session& session, PendingSave save) {
  absl::StatusOr<SaveSnapshot> snapshot = SaveSnapshot::Take(session, def, save.prefix);
  if (!snapshot.ok()) {
    save.CleanUp();
    return snapshot.status();
  }
  if (save.options.write_meta_graph) {
    save.meta_graph = SerializeMetaGraph(session.graph(), {.saver = def});
    if (save.meta_graph.empty()) {
      save.CleanUp();
      return InvalidArgument(save.prefix, ": the meta graph is too large to be serialized (2 GiB)");
    }
  }
  std::string prefix = save.prefix;
  is_writing = true;
  thread = std::thread([this, snapshot = *std::move(snapshot), save = std::move(save)]() mutable {
    status = snapshot.Write();
    if (!status.ok()) save.CleanUp();
    if (status.ok() && !save.meta_graph.empty())
      status = WriteFileAtomically(MetaGraphPath(save.prefix), save.meta_graph, durability);
    absl::Status removal;
    if (status.ok()) status = Commit(save, &removal);
    if (!removal.ok()) {  // no reason to save nothing the next time, which tries again
      std::fprintf(stderr, "weir: warning: an old checkpoint cannot be removed: %s\n",
                   removal.ToString().c_str());
    }
    save = {};  // releases the marks
    is_writing = false;
  });
  return prefix;
}

// Checkpoints that an earlier process completed, but neither listed nor removed, become the oldest
// ones: so they are removed as soon as there are too many.
void Saver::Impl::AdoptInterrupted(const std::string& path, PendingSave* save) {
  std::vector<std::string> known;
  for (const SavedCheckpoint& each : checkpoints) known.push_back(each.path);
  std::vector<SavedCheckpoint> adopted;
  for (InterruptedSave& each : FinishInterruptedSaves(path, save->options.latest_filename, known)) {
    if (each.prefix == save->prefix) continue;  // overwritten now; releases the mark
    const double time = TimeOfCheckpoint(each.prefix);
    std::optional<double> metric = ReadMetric(each.prefix);
    adopted.push_back({std::move(each.prefix), time, metric});
    save->adopted.push_back(std::move(each.mark));
  }
  checkpoints.insert(checkpoints.begin(), adopted.begin(), adopted.end());
}

// Makes the checkpoint known, once it is written, and removes others. `removal` gets the first
// error of removing one, after which the new checkpoint is known all the same.
absl::Status Saver::Impl::Commit(PendingSave& save, absl::Status* removal) {
  if (save.resume) WEIR_RETURN_IF_ERROR(save.resume->Write(save.prefix, durability));
  WEIR_RETURN_IF_ERROR(WriteMetric(save.prefix, save.options.metric, durability));
  if (!save.options.write_state) return absl::OkStatus();
  Record(save.prefix, save.options.metric);
  WEIR_RETURN_IF_ERROR(RemoveOthers(save, removal));
  save.FinishMarks();
  return absl::OkStatus();
}

void Saver::Impl::Record(const std::string& path, std::optional<double> metric) {
  std::erase_if(checkpoints, [&](const SavedCheckpoint& each) { return each.path == path; });
  checkpoints.push_back({path, Now(), metric});
}

// Returns what becomes of `checkpoints`, newest first.
std::vector<RetainedCheckpoint> Saver::Impl::Decide(bool explain) const {
  std::vector<RetainedCheckpoint> decided;
  for (auto it = checkpoints.rbegin(); it != checkpoints.rend(); ++it)
    decided.push_back(
        {.prefix = it->path, .time = it->time, .metric = it->metric, .is_complete = true});
  // As in TensorFlow, periods of no length keep every checkpoint.
  constexpr float kShortestPeriod = 1e-9F;
  const RetentionRules rules = {
      .keep = def.max_to_keep > 0 ? def.max_to_keep : static_cast<int>(decided.size()),
      .best = keep_best,
      .better = better,
      .every_hours = std::max(def.keep_checkpoint_every_n_hours, kShortestPeriod),
      .period_start = next_kept,
      .explain = explain};
  DecideRetention(rules, decided.empty() ? "" : BaseName(decided[0].prefix), &decided);
  return decided;
}

// Writes the state file without the checkpoints that are no longer listed, and then removes those
// of them that do not stay for good. They are marked meanwhile, so that after a kill the next save
// finds them.
absl::Status Saver::Impl::RemoveOthers(const PendingSave& save, absl::Status* removal) {
  CheckpointState state{.model_checkpoint_path = save.prefix};
  std::vector<SavedCheckpoint> listed, removed;
  double preserved = last_preserved;
  std::vector<std::unique_ptr<SaveMark>> marks;
  const std::vector<RetainedCheckpoint> decided = Decide(/*explain=*/false);
  for (size_t i = 0; i < checkpoints.size(); ++i) {
    const RetainedCheckpoint& each = decided[decided.size() - 1 - i];
    if (each.kept_as == KeptAs::kPeriodic) preserved = each.time;
    if (each.kept_as == KeptAs::kNone) {
      removed.push_back(checkpoints[i]);
      if (save.mark == nullptr) continue;
      auto mark = SaveMark::Create(each.prefix, save.options.latest_filename);
      if (mark.ok()) marks.push_back(*std::move(mark));  // otherwise among save.adopted
    } else if (each.kept_as != KeptAs::kPinned && each.kept_as != KeptAs::kPeriodic) {
      listed.push_back(checkpoints[i]);
      state.all_model_checkpoint_paths.push_back(each.prefix);
    }
  }
  state.last_preserved_timestamp = preserved;
  WEIR_RETURN_IF_ERROR(WriteCheckpointState(DirectoryOf(save.prefix), std::move(state),
                                            save_relative_paths, save.options.latest_filename,
                                            durability));
  if (preserved != last_preserved) next_kept = preserved + keep_seconds();
  last_preserved = preserved;
  for (const SavedCheckpoint& each : removed) {
    // Another process may have removed it; the new checkpoint exists in any case.
    const absl::Status done = RemoveCheckpoint(each.path, def.version);
    if (done.ok() || absl::IsNotFound(done)) continue;
    removal->Update(done);
    listed.insert(listed.begin(), each);  // the next save tries again
  }
  for (const std::unique_ptr<SaveMark>& mark : marks) mark->Finish();
  checkpoints = std::move(listed);
  return absl::OkStatus();
}

void Saver::Impl::Recover(const std::vector<std::string>& paths) {
  Join();
  checkpoints.clear();
  for (const std::string& path : paths) {
    if (!CheckpointExists(path) || !CheckStatePath(path).ok()) continue;
    const double time = TimeOfCheckpoint(path);
    checkpoints.push_back({path, time > 0 ? time : Now(), ReadMetric(path)});
  }
}

Saver::Saver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Saver::Saver(Saver&&) noexcept = default;
Saver& Saver::operator=(Saver&&) noexcept = default;
Saver::~Saver() = default;

absl::StatusOr<Saver> Saver::Create(Graph& graph, const SaverOptions& options) {
  NamedVariables variables = options.named;
  if (variables.empty())
    variables = NameVariables(options.variables ? *options.variables : GlobalVariables(graph));
  SaverGraphOptions nodes;
  nodes.sharded = options.sharded;
  nodes.reshape = options.reshape;
  nodes.write_version = options.write_version;
  nodes.synced = options.durability == Durability::kSynced;
  nodes.name = options.name;
  WEIR_ASSIGN_OR_RETURN(SaverDef def, BuildSaverGraph(graph, std::move(variables), nodes));
  def.max_to_keep = options.max_to_keep;
  def.keep_checkpoint_every_n_hours = static_cast<float>(options.keep_checkpoint_every_n_hours);
  auto impl = std::make_unique<Impl>(std::move(def));
  impl->keep_best = options.keep_best;
  impl->better = options.better;
  impl->pad_step_number = options.pad_step_number;
  impl->save_relative_paths = options.save_relative_paths;
  impl->durability = options.durability;
  return Saver(std::move(impl));
}

Saver Saver::FromDef(const SaverDef& def) { return Saver(std::make_unique<Impl>(def)); }

absl::StatusOr<std::string> Saver::Save(Session& session, const std::string& path,
                                        const SaveOptions& options) {
  return impl_->Save(session, path, options);
}

absl::Status Saver::Wait() { return impl_->TakeError(); }

bool Saver::is_saving() const { return impl_->is_writing; }

std::vector<RetainedCheckpoint> Saver::PlanSave(const std::string& path,
                                                const SaveOptions& options) const {
  impl_->Join();
  const std::vector<SavedCheckpoint> before = impl_->checkpoints;
  if (options.write_state) impl_->Record(impl_->PrefixOf(path, options), options.metric);
  std::vector<RetainedCheckpoint> decided = impl_->Decide(/*explain=*/true);
  impl_->checkpoints = before;
  return decided;
}

absl::Status Saver::Restore(Session& session, const std::string& path) const {
  impl_->Join();
  return RestoreVariables(session, impl_->def, path);
}

absl::StatusOr<std::string> Saver::RestoreLatest(Session& session, const std::string& directory,
                                                 bool skip_damaged) {
  impl_->Join();
  WEIR_ASSIGN_OR_RETURN(const RestoredLatest restored,
                        RestoreLatestCheckpoint(session, impl_->def, directory, skip_damaged));
  impl_->Recover(OldestFirst(restored));
  for (SavedCheckpoint& each : impl_->checkpoints) {  // a damaged one is never among the best
    if (absl::c_linear_search(restored.skipped, each.path)) each.metric.reset();
  }
  if (restored.state.last_preserved_timestamp > 0) {
    impl_->last_preserved = restored.state.last_preserved_timestamp;
    impl_->next_kept = impl_->last_preserved + impl_->keep_seconds();
  }
  return restored.path;
}

const SaverDef& Saver::def() const { return impl_->def; }

std::vector<std::string> Saver::last_checkpoints() const {
  impl_->Join();
  std::vector<std::string> paths;
  for (const SavedCheckpoint& each : impl_->checkpoints) paths.push_back(each.path);
  return paths;
}

void Saver::RecoverLastCheckpoints(const std::vector<std::string>& paths) { impl_->Recover(paths); }

}  // namespace weir
