#include "weir/tools/ckpt/checkpoint_path.h"

#include <re2/re2.h>

#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/file.h"
#include "weir/session/model/saved_model.h"

namespace weir::tools {

namespace {

// Returns the newest checkpoint that a state file names.
absl::StatusOr<std::string> NewestCheckpoint(const std::string& folder, const std::string& state,
                                             std::ostream* notes) {
  WEIR_ASSIGN_OR_RETURN(const std::string found, LatestCheckpoint(folder, state));
  WEIR_ASSIGN_OR_RETURN(const CheckpointState read, ReadCheckpointState(folder, state));
  if (notes != nullptr && found != read.model_checkpoint_path) {
    *notes << "weir: " << JoinPath(folder, state) << " names " << read.model_checkpoint_path
           << ", which is not there; using " << found << "\n";
  }
  return found;
}

// Returns the newest checkpoint in a folder, or the checkpoint of a SavedModel.
absl::StatusOr<std::string> CheckpointInFolder(const std::string& folder, std::ostream* notes) {
  for (const std::string& parent : {folder, FindSavedModel(folder)}) {
    for (const char* const prefix : {"variables/variables", "variables"}) {
      const std::string variables = JoinPath(parent, prefix);
      if (Files().Exists(variables + ".index")) return variables;
    }
  }
  return NewestCheckpoint(folder, "checkpoint", notes);
}

// Returns "m-7" for "m-7.index", "m-7.meta" and "m-7.data-00000-of-00001" if checkpoint m-7 exists.
std::string PrefixOfFile(const std::string& path) {
  static const RE2* const ending = new RE2("(.+)\\.(index|meta|data-\\d{5,}-of-\\d{5,})");
  std::string prefix;
  if (!RE2::FullMatch(path, *ending, &prefix)) return path;
  return !Files().Exists(path + ".index") && CheckpointExists(prefix) ? prefix : path;
}

}  // namespace

absl::StatusOr<std::string> CheckpointPrefix(const std::string& path, std::ostream* notes) {
  if (path.empty()) return InvalidArgument("the checkpoint path is empty");
  if (Files().Exists(path + ".index")) return path;
  const std::string model = FindSavedModel(path);
  if (Files().IsDirectory(path)) return CheckpointInFolder(path, notes);
  if (model != path) return CheckpointInFolder(model, notes);
  const std::string name(BaseName(path));
  if (name == "checkpoint" && ReadCheckpointState(DirectoryOf(path), name).ok())
    return NewestCheckpoint(DirectoryOf(path), name, notes);
  return PrefixOfFile(path);
}

}  // namespace weir::tools
