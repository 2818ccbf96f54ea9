#ifndef WEIR_TOOLS_CKPT_CHECKPOINT_PATH_H_
#define WEIR_TOOLS_CKPT_CHECKPOINT_PATH_H_

#include <ostream>
#include <string>

#include "weir/core/tensor/status.h"

namespace weir::tools {

// Returns the checkpoint prefix that `path` denotes. A folder denotes its newest checkpoint, or the
// checkpoint of the SavedModel in it, or of the newest one if it has several versions. One of a
// checkpoint's files (m-7.index, .meta, .data-...), the state file "checkpoint", or saved_model.pb
// denotes that checkpoint. An empty path is INVALID_ARGUMENT; any other path is returned unchanged.
// If the state file names a checkpoint where it no longer is, a line in `notes` says so.
absl::StatusOr<std::string> CheckpointPrefix(const std::string& path,
                                             std::ostream* notes = nullptr);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_CHECKPOINT_PATH_H_
