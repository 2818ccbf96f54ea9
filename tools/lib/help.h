#ifndef WEIR_TOOLS_LIB_HELP_H_
#define WEIR_TOOLS_LIB_HELP_H_

#include <string>

#include "weir/tools/lib/cli.h"
#include "weir/tools/lib/command_info.h"

namespace weir::tools {

// Prints the help of a command, in lines that fit the console's width.
void PrintHelp(const CommandInfo& command, Console& console);

// "weir run [OPTIONS] GRAPH".
std::string UsageOf(const CommandInfo& command);
// "-o,--out FILE", or the word of an argument.
std::string SyntaxOf(const OptionInfo& option);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_HELP_H_
