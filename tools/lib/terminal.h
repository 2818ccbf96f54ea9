#ifndef WEIR_TOOLS_LIB_TERMINAL_H_
#define WEIR_TOOLS_LIB_TERMINAL_H_

#include "absl/strings/string_view.h"
#include "weir/tools/lib/cli.h"

// What standard output and standard error can show.
namespace weir::tools {

// Fills the console's properties. Environment variables: COLUMNS overrides the terminal's width;
// LC_ALL, LC_CTYPE and LANG determine the character set, and a terminal gets ASCII if that is not
// UTF-8; NO_COLOR (https://no-color.org: set and not empty) and TERM=dumb turn off color.
void ReadTerminal(Console& console);

// Applies the value of --color: "always", "never", or "auto" for what ReadTerminal found.
void SetColor(absl::string_view when, Console& console);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_TERMINAL_H_
