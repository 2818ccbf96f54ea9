#include "weir/session/model/saver.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "weir/core/io/file.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/plan/variable_use.h"

namespace weir {
namespace {

double Now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

// Returns a handle to a node that stores a variable, with a read of its own.
Variable HandleOf(Node* storage) {
  auto info = std::make_shared<VariableInfo>();
  info->op = storage->name();
  info->handle = storage->output();
  info->is_resource = !IsRef(storage->output_type(0));
  info->dtype = storage->attr_or<DataType>("dtype", DT_INVALID);
  info->shape = storage->attr_or<Shape>("shape", Shape::UnknownRank());
  if (!info->is_resource)
    info->snapshot = AddOp("Identity", {info->handle}, {}, info->op + "/read");
  return Variable(std::move(info));
}

}  // namespace

Saver::Saver(SaverDef def)
    : def_(std::move(def)), keep_seconds_(def_.keep_checkpoint_every_n_hours * 3600.0) {
  next_kept_ = Now() + keep_seconds_;
}

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
  Saver saver(std::move(def));
  saver.pad_step_number_ = options.pad_step_number;
  saver.save_relative_paths_ = options.save_relative_paths;
  saver.durability_ = options.durability;
  return saver;
}

Saver Saver::FromDef(const SaverDef& def) { return Saver(def); }

namespace {

// Returns whether a checkpoint of this name has a file of that name.
bool IsFileOf(absl::string_view checkpoint, absl::string_view file) {
  return absl::ConsumePrefix(&file, checkpoint) &&
         (file.empty() || file == ".index" || file == ".meta" || absl::StartsWith(file, ".data-"));
}

}  // namespace

absl::StatusOr<std::string> Saver::Save(Session& session, const std::string& path,
                                        const SaveOptions& options) {
  if (path.empty()) return InvalidArgument("no path specified to save to");
  const absl::string_view name = BaseName(path);
  if (name.empty() || name == "." || name == "..")
    return InvalidArgument("'", path, "' is a directory; append the name of a checkpoint");
  if (!Files().IsDirectory(DirectoryOf(path))) {
    return NotFound("Parent directory of ", path, " doesn't exist, can't save.");
  }
  std::string prefix = path;
  if (options.global_step) {
    prefix += pad_step_number_ ? absl::StrFormat("-%08d", *options.global_step)
                               : absl::StrCat("-", *options.global_step);
  }
  if (options.latest_filename == name || IsFileOf(BaseName(prefix), options.latest_filename)) {
    return InvalidArgument("latest_filename collides with save_path: '", options.latest_filename,
                           "' and '", path, "'");
  }
  if (options.write_state) WEIR_RETURN_IF_ERROR(CheckStatePath(prefix));
  WEIR_ASSIGN_OR_RETURN(const Tensors saved,
                        session.Run({{def_.filename_tensor_name, Tensor::Scalar(prefix)}},
                                    {def_.save_tensor_name}, {}));
  if (saved[0].dtype() != DT_STRING || saved[0].num_elements() != 1) {
    return InvalidArgument(def_.save_tensor_name, " returned ", saved[0].Description(),
                           " instead of a path");
  }
  prefix = saved[0].scalar<std::string>();
  if (options.write_meta_graph) {
    WEIR_RETURN_IF_ERROR(
        WriteMetaGraph(session.graph(), MetaGraphPath(prefix), {.saver = def_}, durability_));
  }
  if (options.write_state) {
    Record(prefix);
    WEIR_RETURN_IF_ERROR(WriteState(prefix, options));
    WEIR_RETURN_IF_ERROR(RemoveOldest());
  }
  return prefix;
}

void Saver::Record(const std::string& path) {
  std::erase_if(checkpoints_, [&](const SavedCheckpoint& k) { return k.path == path; });
  checkpoints_.push_back({path, Now()});
  if (def_.max_to_keep <= 0) return;
  while (checkpoints_.size() > static_cast<size_t>(def_.max_to_keep)) {
    to_remove_.push_back(checkpoints_.front());
    checkpoints_.erase(checkpoints_.begin());
  }
}

absl::Status Saver::WriteState(const std::string& path, const SaveOptions& options) const {
  return WriteCheckpointState(
      DirectoryOf(path),
      {.model_checkpoint_path = path, .all_model_checkpoint_paths = last_checkpoints()},
      save_relative_paths_, options.latest_filename, durability_);
}

// Removes old checkpoints after the state file has been written without them. In each period, the
// first checkpoint that is due for removal is kept.
absl::Status Saver::RemoveOldest() {
  while (!to_remove_.empty()) {
    const SavedCheckpoint oldest = to_remove_.front();
    to_remove_.erase(to_remove_.begin());
    if (oldest.time > next_kept_) {
      next_kept_ += keep_seconds_;
      continue;
    }
    if (IsPinned(oldest.path)) continue;
    // Another process may have removed it; the new checkpoint exists in any case.
    const absl::Status removed = RemoveCheckpoint(oldest.path, def_.version);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  return absl::OkStatus();
}

absl::Status Saver::Restore(Session& session, const std::string& path) const {
  return RestoreVariables(session, def_, path);
}

std::vector<std::string> Saver::last_checkpoints() const {
  std::vector<std::string> paths;
  for (const SavedCheckpoint& k : checkpoints_) paths.push_back(k.path);
  return paths;
}

void Saver::RecoverLastCheckpoints(const std::vector<std::string>& paths) {
  checkpoints_.clear();
  for (const std::string& path : paths) {
    if (CheckpointExists(path) && CheckStatePath(path).ok()) checkpoints_.push_back({path, Now()});
  }
}

absl::StatusOr<SaverDef> AddSaverOfNodes(Graph& graph) {
  Variables variables;
  for (int i = 0, n = graph.num_nodes(); i < n; ++i) {
    Node* node = graph.nodes()[i].get();
    if (IsVariable(*node)) variables.push_back(HandleOf(node));
  }
  return BuildSaverGraph(graph, NameVariables(variables));
}

}  // namespace weir
