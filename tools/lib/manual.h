#ifndef WEIR_TOOLS_LIB_MANUAL_H_
#define WEIR_TOOLS_LIB_MANUAL_H_

#include <string>

#include "weir/tools/lib/command_info.h"

namespace weir::tools {

// Returns the manual page of a program with all its commands, in the man macros of roff (man(7)).
// `release`: "weir 0.2.0", for its footer.
std::string ManualPage(const CommandInfo& root, const std::string& release);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_MANUAL_H_
