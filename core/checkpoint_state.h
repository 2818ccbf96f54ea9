#ifndef WEIR_CORE_CHECKPOINT_STATE_H_
#define WEIR_CORE_CHECKPOINT_STATE_H_

#include <string>
#include <vector>

#include "weir/core/file.h"

// The text file "checkpoint" beside a model's checkpoints, which says which there are and which is
// the newest.
namespace weir {

struct CheckpointState {
  std::string model_checkpoint_path;                    // the newest
  std::vector<std::string> all_model_checkpoint_paths;  // oldest first; the newest is the last
  std::vector<double> all_model_checkpoint_timestamps;  // seconds since 1970; as many, or none
  double last_preserved_timestamp = 0;
};

// Reads `directory`/`filename`. Relative paths in it are taken as relative to `directory`, and
// returned with it in front. NOT_FOUND if there is no such file, DATA_LOSS if it cannot be parsed.
absl::StatusOr<CheckpointState> ReadCheckpointState(const std::string& directory,
                                                    const std::string& filename = "checkpoint");

// Replaces `directory`/`filename`, so that after a crash there is the old one or the new one. Paths
// that are relative to the working directory, as `directory` is, are written as relative to
// `directory`; with `relative`, so are absolute ones. The newest path is added to the list if it is
// not in it.
absl::Status WriteCheckpointState(const std::string& directory, CheckpointState state,
                                  bool relative = false, const std::string& filename = "checkpoint",
                                  Durability durability = Durability::kSynced);

// The newest checkpoint in a directory by its state file, if its files are there. NOT_FOUND
// otherwise.
absl::StatusOr<std::string> LatestCheckpoint(const std::string& directory,
                                             const std::string& filename = "checkpoint");

// True if there is a checkpoint with this prefix (or of V1, under this name or pattern), by its
// file's presence alone.
bool CheckpointExists(const std::string& prefix);

// "m-7.meta" for the checkpoint "m-7", and for "m-7-?????-of-00002" too, the shards of V1.
std::string MetaGraphPath(const std::string& prefix);

// Removes the files of a checkpoint and its meta graph, of V2 the index first: what is half removed
// is no checkpoint. `version` is that of the format. Missing files are no error.
absl::Status RemoveCheckpoint(const std::string& prefix, int version = 2);

}  // namespace weir

#endif  // WEIR_CORE_CHECKPOINT_STATE_H_
