#include "weir/session/model/restore_latest.h"

#include <algorithm>
#include <cstdio>

#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/core/io/retention.h"
#include "weir/session/model/saver.h"

namespace weir {
namespace {

// Returns "model" for "dir/model-7".
absl::string_view StemOf(absl::string_view prefix) {
  const absl::string_view name = BaseName(prefix);
  return name.substr(0, name.rfind('-'));
}

// Returns whether a checkpoint whose restoring failed is damaged.
bool IsDamaged(const std::string& prefix, const absl::Status& error) {
  if (absl::IsDataLoss(error)) return true;
  const bool is_v1 = CheckpointExists(prefix) && !Files().Exists(prefix + ".index");
  if (is_v1) return false;
  const absl::Status complete = CheckBundleIsComplete(prefix);
  return absl::IsDataLoss(complete) || absl::IsNotFound(complete);
}

// Returns all checkpoints that may be restored, newest first.
std::vector<std::string> Candidates(const std::string& directory,
                                    const absl::StatusOr<CheckpointState>& state) {
  std::vector<std::string> prefixes;
  const auto add = [&](const std::string& prefix) {
    if (std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end())
      prefixes.push_back(prefix);
  };
  if (state.ok()) {
    add(state->model_checkpoint_path);
    const auto& listed = state->all_model_checkpoint_paths;
    std::for_each(listed.rbegin(), listed.rend(), add);
  }
  for (const std::string& prefix : CheckpointsByTime(directory)) {
    if (!state.ok() || StemOf(prefix) == StemOf(state->model_checkpoint_path)) add(prefix);
  }
  return prefixes;
}

}  // namespace

absl::StatusOr<RestoredLatest> RestoreLatestCheckpoint(Session& session, const SaverDef& def,
                                                       const std::string& directory,
                                                       bool skip_damaged) {
  const absl::StatusOr<CheckpointState> state = ReadCheckpointState(directory);
  if (!state.ok() && !(skip_damaged && absl::IsDataLoss(state.status()))) return state.status();
  RestoredLatest result;
  if (state.ok()) result.state = *state;
  absl::Status first_error = state.status();
  for (const std::string& prefix : Candidates(directory, state)) {
    const absl::Status restored = RestoreVariables(session, def, prefix);
    if (restored.ok()) {
      result.path = prefix;
      return result;
    }
    if (!skip_damaged || !IsDamaged(prefix, restored)) return restored;
    std::fprintf(stderr, "weir: warning: the checkpoint %s is damaged and is skipped: %s\n",
                 prefix.c_str(), std::string(restored.message()).c_str());
    first_error.Update(restored);
    result.skipped.push_back(prefix);
  }
  return DataLoss("none of the ", result.skipped.size(), " checkpoints in ", directory,
                  " can be restored; `weir ckpt repair` saves their intact tensors. The newest: ",
                  first_error.message());
}

}  // namespace weir
