#ifndef WEIR_TOOLS_LIB_UNKNOWN_WORD_H_
#define WEIR_TOOLS_LIB_UNKNOWN_WORD_H_

#include <string>

#include "weir/tools/lib/cli.h"
#include "weir/tools/lib/command_info.h"

namespace weir::tools {

// Each reports a word that was not understood, with the name that it is most like, and returns
// kUsage: a word that is no subcommand of `command`, and an option that neither `command` nor the
// program has.
int UnknownCommand(const CommandInfo& command, const std::string& word, Console& console);
int UnknownOption(const CommandInfo& command, const CommandInfo& root, const std::string& word,
                  Console& console);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_UNKNOWN_WORD_H_
