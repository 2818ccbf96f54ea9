#ifndef WEIR_TOOLS_CKPT_RETENTION_H_
#define WEIR_TOOLS_CKPT_RETENTION_H_

#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

// Which checkpoints of a folder are kept. A plan is made without changing anything, so that it can
// be shown before it is applied.
namespace weir::tools {

// What to keep, besides pinned checkpoints and the one that the state file names as the newest.
struct RetentionRules {
  int keep = 5;            // the newest complete checkpoints
  double every_hours = 0;  // also the first one of each period of this length; 0: none
  bool verify = false;     // complete checkpoints also have correct checksums
};

// A checkpoint (V2) in the folder.
struct FolderCheckpoint {
  std::string prefix;
  double time = 0;           // seconds since 1970: when its index was written
  int64_t bytes = 0;         // of all its files
  bool is_complete = false;  // has all its bytes, and with RetentionRules::verify the right ones
  bool is_kept = true;
  std::string reason;  // why it is kept or removed, for people
};

// What is to be done with a folder.
struct RetentionPlan {
  std::vector<FolderCheckpoint> checkpoints;  // newest first
  // Files and folders that killed writers have left: temporary files, locks, old data files, data
  // files without an index, and the parts of sharded saves that have not changed for an hour.
  std::vector<std::string> leftovers;
};

// Plans for a folder. A checkpoint that is not complete is removed if a newer one is complete;
// otherwise it is kept, because `weir ckpt repair` may save its tensors. FAILED_PRECONDITION if
// checkpoints exist but none is complete.
absl::StatusOr<RetentionPlan> PlanRetention(const std::string& folder, const RetentionRules& rules);

// Applies a plan: takes the removed checkpoints out of the state file, then removes them and the
// leftovers. Skips what another process is writing meanwhile; returns these names.
absl::StatusOr<std::vector<std::string>> ApplyRetention(const std::string& folder,
                                                        const RetentionPlan& plan);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_RETENTION_H_
