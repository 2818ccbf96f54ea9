#include "weir/tools/lib/unknown_word.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "weir/core/graph/closest_names.h"

namespace weir::tools {

namespace {

// "; did you mean 'graph'?", or `otherwise` if no name is close.
std::string DidYouMean(const std::string& word, const std::vector<std::string>& names,
                       const std::string& otherwise) {
  const std::vector<std::string> close = ClosestNames(word, names);
  return close.empty() ? otherwise : absl::StrCat("; did you mean '", close.front(), "'?");
}

}  // namespace

int UnknownCommand(const CommandInfo& command, const std::string& word, Console& console) {
  std::vector<std::string> names;
  for (const CommandInfo& sub : command.commands) names.push_back(sub.own_name());
  const bool is_root = command.name.find(' ') == std::string::npos;
  console.err << "weir: unknown command '" << word << "'"
              << DidYouMean(word, names,
                            absl::StrCat("; run 'weir help", is_root ? "" : " ",
                                         is_root ? "" : command.own_name(), "' for the list"))
              << "\n";
  return kUsage;
}

int UnknownOption(const CommandInfo& command, const CommandInfo& root, const std::string& word,
                  Console& console) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CommandInfo* const from : {&command, &root}) {
    for (const OptionInfo& option : from->options)
      names.insert(names.end(), option.names.begin(), option.names.end());
  }
  console.err << "weir: unknown option '" << name << "'"
              << DidYouMean(name, names,
                            absl::StrCat("; run '", command.name, " --help' for the list"))
              << "\n";
  return kUsage;
}

}  // namespace weir::tools
