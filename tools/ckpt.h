#ifndef WEIR_TOOLS_CKPT_H_
#define WEIR_TOOLS_CKPT_H_

#include <memory>
#include <string>

#include "weir/core/bundle.h"
#include "weir/tools/command.h"

// What the parts of `weir ckpt` share.
namespace weir::tools {

// A folder stands for the newest checkpoint in it.
absl::StatusOr<std::string> CheckpointPrefix(const std::string& path);
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(const std::string& path);

// INVALID_ARGUMENT if a command that reads one of the checkpoints is to write over it.
absl::Status CheckIsNew(const std::string& out, const std::string& in);

// Each declares one command below `weir ckpt`.
void AddConvertCommand(Command& ckpt);
void AddRepairCommand(Command& ckpt);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_H_
