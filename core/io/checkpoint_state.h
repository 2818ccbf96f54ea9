#ifndef WEIR_CORE_IO_CHECKPOINT_STATE_H_
#define WEIR_CORE_IO_CHECKPOINT_STATE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/io/file.h"
#include "weir/core/tensor/api.h"

// The text file "checkpoint" in a model's checkpoint directory. It lists the checkpoints and names
// the newest one.
namespace WEIR_API weir {

// The contents of the file.
struct CheckpointState {
  std::string model_checkpoint_path;                    // the newest
  std::vector<std::string> all_model_checkpoint_paths;  // oldest first; the last one is the newest
  // Seconds since 1970; one for each path, or none.
  std::vector<double> all_model_checkpoint_timestamps;
  // Seconds since 1970: when the newest checkpoint that is kept forever was written; 0: none.
  double last_preserved_timestamp = 0;
};

// Returns INVALID_ARGUMENT, with the path, unless a state file can name it: the text is UTF-8.
absl::Status CheckStatePath(const std::string& path);

// Reads `directory`/`filename`. Relative paths in the file are resolved against `directory`.
// Returns NOT_FOUND if the file does not exist, DATA_LOSS if it cannot be parsed.
absl::StatusOr<CheckpointState> ReadCheckpointState(const std::string& directory,
                                                    const std::string& filename = "checkpoint");

// Replaces `directory`/`filename` atomically: after a crash, either the old or the new file exists.
// Paths relative to the working directory, like `directory`, are written relative to `directory`;
// with `relative`, so are absolute paths. The newest path is appended to the list if it is missing
// there. Returns the error of CheckStatePath before anything is written. Waits for other writers,
// and returns ABORTED if one takes 10 seconds.
absl::Status WriteCheckpointState(const std::string& directory, CheckpointState state,
                                  bool relative = false, const std::string& filename = "checkpoint",
                                  Durability durability = Durability::kSynced);

// Replaces `directory`/checkpoint, with relative paths, by what `change` makes of it. No writer
// replaces the file in between, so what a saver has written is not lost. `change` returns false to
// leave the file as it is. The errors are those of reading and writing it.
absl::Status ChangeCheckpointState(const std::string& directory,
                                   absl::FunctionRef<bool(CheckpointState*)> change);

// Returns the newest checkpoint named by the state file in a directory, if its files exist; or
// else, if the directory was moved, the checkpoint of the same name in it. Otherwise returns
// NOT_FOUND, with the checkpoints that are there.
absl::StatusOr<std::string> LatestCheckpoint(const std::string& directory,
                                             const std::string& filename = "checkpoint");

// Returns true if a checkpoint with this prefix (V1: name or pattern) exists. Checks only that its
// file exists.
bool CheckpointExists(const std::string& prefix);

// Returns "m-7.meta" for the checkpoint "m-7", and also for "m-7-?????-of-00002", the shards of a
// V1 checkpoint.
std::string MetaGraphPath(const std::string& prefix);

// Returns "m-7.pin", also for V1 shards: the file whose existence pins the checkpoint "m-7". A
// pinned checkpoint is never removed by retention (Saver, `weir ckpt gc`). Other programs ignore
// the file.
std::string PinPath(const std::string& prefix);
bool IsPinned(const std::string& prefix);

// Returns "m-7.metric" in the same way: the file with the checkpoint's metric (retention.h).
std::string MetricPath(const std::string& prefix);

// Returns "m-7.resume" in the same way: the file with what a run needs besides the checkpoint to
// resume exactly (session/model/resume_state.h). Other programs ignore it.
std::string ResumePath(const std::string& prefix);

// Removes the files of a checkpoint, its meta graph, its metric and its resume file. For V2 it
// removes the index first, so that a partly removed checkpoint is not mistaken for a valid one.
// `version` is the format version. Missing files are not an error.
absl::Status RemoveCheckpoint(const std::string& prefix, int version = 2);

}  // namespace weir

#endif  // WEIR_CORE_IO_CHECKPOINT_STATE_H_
