#ifndef WEIR_TOOLS_LIB_COMMAND_INFO_H_
#define WEIR_TOOLS_LIB_COMMAND_INFO_H_

#include <string>
#include <vector>

// What is known of a command from its declaration (command.h). Help texts, completions and the
// manual page are made from this alone, so a new command appears in all of them.
namespace weir::tools {

struct OptionInfo {
  std::vector<std::string> names;  // "-o", "--out"; empty for a positional argument
  std::string word;                // the placeholder of the value, "FILE"; empty for a flag
  std::string help;
  std::vector<std::string> choices;  // the only valid values; empty: any
  bool required = false;             // for an argument
  bool repeated = false;             // may be given several times; an argument: one or more values
  bool one_of = false;               // exactly one of the options with this mark is required
};

struct CommandInfo {
  std::string name;         // with those of its parents: "weir graph show"
  std::string description;  // one line without a period
  std::string example;      // "Example:\n  weir ...", possibly followed by notes
  std::vector<OptionInfo> arguments, options;
  std::vector<CommandInfo> commands;

  // Its name without those of its parents: "show".
  std::string own_name() const { return name.substr(name.rfind(' ') + 1); }
  // Returns the subcommand with this name; null if there is none.
  const CommandInfo* Find(const std::string& word) const {
    for (const CommandInfo& command : commands) {
      if (command.own_name() == word) return &command;
    }
    return nullptr;
  }
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_COMMAND_INFO_H_
