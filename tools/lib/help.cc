#include "weir/tools/lib/help.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weir/tools/lib/text_width.h"

namespace weir::tools {

namespace {

constexpr size_t kSyntaxWidth = 28;                // the column in which explanations begin
constexpr int kLeastWidth = 60, kMostWidth = 100;  // of lines

size_t LineWidth(const Console& console) {
  return static_cast<size_t>(std::clamp(console.width, kLeastWidth, kMostWidth));
}

// An option or a subcommand, and its explanation.
using Entry = std::pair<std::string, std::string>;

void PrintEntries(const char* title, const std::vector<Entry>& entries, Console& console) {
  if (entries.empty()) return;
  console.out << "\n" << console.Paint(Style::kBold, title) << "\n";
  for (const auto& [syntax, text] : entries) {
    console.out << "  " << syntax;
    size_t column = 2 + TextWidth(syntax);
    for (const std::string& line : WrapText(text, LineWidth(console) - kSyntaxWidth)) {
      if (column >= kSyntaxWidth) {
        console.out << "\n";
        column = 0;
      }
      console.out << std::string(kSyntaxWidth - column, ' ') << line;
      column = kSyntaxWidth;
    }
    console.out << "\n";
  }
}

std::vector<Entry> EntriesOf(const std::vector<OptionInfo>& options, bool one_of) {
  std::vector<Entry> entries;
  for (const OptionInfo& option : options) {
    if (option.one_of != one_of) continue;
    std::string text = option.help;
    if (!option.choices.empty()) absl::StrAppend(&text, ": ", absl::StrJoin(option.choices, ", "));
    entries.emplace_back(SyntaxOf(option), std::move(text));
  }
  return entries;
}

}  // namespace

std::string SyntaxOf(const OptionInfo& option) {
  if (option.names.empty()) return option.word;
  return absl::StrCat(absl::StrJoin(option.names, ","), option.word.empty() ? "" : " ",
                      option.word);
}

std::string UsageOf(const CommandInfo& command) {
  std::string usage = absl::StrCat(command.name, " [OPTIONS]");
  for (const OptionInfo& argument : command.arguments) {
    const std::string word = absl::StrCat(argument.word, argument.repeated ? "..." : "");
    absl::StrAppend(&usage, argument.required ? " " : " [", word, argument.required ? "" : "]");
  }
  if (!command.commands.empty()) absl::StrAppend(&usage, " COMMAND");
  return usage;
}

void PrintHelp(const CommandInfo& command, Console& console) {
  for (const std::string& line : WrapText(command.description, LineWidth(console)))
    console.out << line << "\n";
  console.out << "\nUsage: " << UsageOf(command) << "\n";
  PrintEntries("Arguments:", EntriesOf(command.arguments, false), console);
  PrintEntries("Exactly one of:", EntriesOf(command.options, true), console);
  PrintEntries("Options:", EntriesOf(command.options, false), console);
  std::vector<Entry> commands;
  for (const CommandInfo& sub : command.commands)
    commands.emplace_back(sub.own_name(), sub.description);
  PrintEntries("Commands:", commands, console);
  if (!command.example.empty()) console.out << "\n" << command.example << "\n";
}

}  // namespace weir::tools
