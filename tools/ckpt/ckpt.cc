#include "weir/tools/ckpt/ckpt.h"

// weir ckpt: ls, show, verify and diff inspect checkpoints without a graph; the others write new
// ones, or keep a folder of checkpoints in order.
namespace weir::tools {

void AddCkptCommand(Command& weir) {
  Command ckpt = weir.Add("ckpt", "List, compare, verify, convert and repair checkpoints",
                          "  weir ckpt verify runs/digits/model-500");
  AddLsCommand(ckpt);
  AddShowCommand(ckpt);
  AddVerifyCommand(ckpt);
  AddDiffCommand(ckpt);
  AddConvertCommand(ckpt);
  AddEditCommands(ckpt);
  AddMergeCommand(ckpt);
  AddSplitCommand(ckpt);
  AddAverageCommand(ckpt);
  AddRepairCommand(ckpt);
  AddPinCommand(ckpt);
  AddGcCommand(ckpt);
}

}  // namespace weir::tools
