#ifndef WEIR_TOOLS_LIB_COMPLETION_H_
#define WEIR_TOOLS_LIB_COMPLETION_H_

#include <string>
#include <utility>
#include <vector>

#include "weir/tools/lib/command_info.h"

// Completion of command lines in shells. The scripts for the shells ask the program itself (`weir
// __complete WORDS`), so they know every command of the installed version.
namespace weir::tools {

// What may stand in place of the last word of a command line.
struct Completion {
  enum class Paths { kNone, kFiles, kFolders };
  // Words that begin with it, and their descriptions.
  std::vector<std::pair<std::string, std::string>> words;
  Paths paths = Paths::kNone;  // names of files, or of folders, too
};

// `words` are those of the command line without the program's name; the last one is incomplete.
Completion Complete(const CommandInfo& root, const std::vector<std::string>& words);

// Returns the answer to `weir __complete`: "none", "files" or "folders" in the first line; then one
// word a line, with a tab and its description.
std::string CompletionAnswer(const Completion& completion);

// Returns the script that completes `program` in a shell: "bash", "zsh" or "fish".
std::string CompletionScript(const std::string& shell, const std::string& program);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_COMPLETION_H_
