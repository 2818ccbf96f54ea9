#ifndef WEIR_TOOLS_GRAPH_GRAPH_EXPORT_H_
#define WEIR_TOOLS_GRAPH_GRAPH_EXPORT_H_

#include "weir/tools/lib/command.h"

namespace weir::tools {

// Each adds one subcommand of `weir graph`.
void AddFreezeCommand(Command& graph);
void AddExportCommand(Command& graph);
void AddUnfreezeCommand(Command& graph);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRAPH_GRAPH_EXPORT_H_
