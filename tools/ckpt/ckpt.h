#ifndef WEIR_TOOLS_CKPT_CKPT_H_
#define WEIR_TOOLS_CKPT_CKPT_H_

#include "weir/tools/lib/command.h"

// The subcommands of `weir ckpt`: each function adds those of one source.
namespace weir::tools {

void AddLsCommand(Command& ckpt);
void AddShowCommand(Command& ckpt);
void AddVerifyCommand(Command& ckpt);
void AddDiffCommand(Command& ckpt);
void AddConvertCommand(Command& ckpt);
void AddEditCommands(Command& ckpt);  // rename, drop, cast
void AddMergeCommand(Command& ckpt);
void AddSplitCommand(Command& ckpt);
void AddAverageCommand(Command& ckpt);
void AddRepairCommand(Command& ckpt);
void AddPinCommand(Command& ckpt);
void AddGcCommand(Command& ckpt);

// The argument of a subcommand that reads a checkpoint.
inline constexpr char kCheckpointHelp[] =
    "a checkpoint's prefix or one of its files; a folder: its newest checkpoint, a SavedModel's, "
    "or "
    "its array files";

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_CKPT_H_
