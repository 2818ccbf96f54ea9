#ifndef WEIR_SESSION_MODEL_RESTORE_LATEST_H_
#define WEIR_SESSION_MODEL_RESTORE_LATEST_H_

#include <string>
#include <vector>

#include "weir/core/io/checkpoint_state.h"
#include "weir/ops/train/saver.h"
#include "weir/session/session.h"

namespace weir {

// What RestoreLatestCheckpoint has restored.
struct RestoredLatest {
  std::string path;                  // of the checkpoint
  CheckpointState state;             // what the state file says; empty if it is damaged
  std::vector<std::string> skipped;  // damaged ones that are newer, newest first
};

// Implements Saver::RestoreLatest, with its errors, for a graph with a SaverDef.
absl::StatusOr<RestoredLatest> RestoreLatestCheckpoint(Session& session, const SaverDef& def,
                                                       const std::string& directory,
                                                       bool skip_damaged);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_RESTORE_LATEST_H_
