#ifndef WEIR_TOOLS_OPS_MISSING_OPS_H_
#define WEIR_TOOLS_OPS_MISSING_OPS_H_

#include "weir/tools/lib/command.h"

namespace weir::tools {

enum class MissingOpsForm { kTable, kJson, kMarkdown };

// Prints the ops that TensorFlow runs on a CPU and Weir does not, with the reasons. The Markdown is
// docs/ops.md, which also lists the others. Returns kOk.
int PrintMissingOps(MissingOpsForm form, Console& console);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_OPS_MISSING_OPS_H_
