#include "weir/tools/lib/command.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "weir/core/graph/closest_names.h"

namespace weir::tools {

namespace {

// Formats help without CLI11's types and limits: "--repeat N", not "--repeat INT:POSITIVE".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0 || option->get_positional()) return "";
    const std::string type = option->get_type_name();
    const std::string word = type.substr(0, type.find(':'));
    return word == "INT" ? " N" : word == "FLOAT" ? " X" : " " + word;
  }
};

// Reports a word that is no subcommand of `command`, with the one that it is most like.
int UnknownCommand(const CLI::App& command, const std::string& word, Console& console) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands({})) names.push_back(sub->get_name());
  const std::vector<std::string> close = ClosestNames(word, names);
  console.err << "weir: unknown command '" << word << "'; "
              << (close.empty() ? "run 'weir help' for the list"
                                : absl::StrCat("did you mean '", close.front(), "'?"))
              << "\n";
  return kUsage;
}

// Returns the first subcommand with this name; null if there is none.
const CLI::App* FindSubcommand(const CLI::App& command, const std::string& word) {
  const auto subs =
      command.get_subcommands([&word](const CLI::App* sub) { return sub->get_name() == word; });
  return subs.empty() ? nullptr : subs[0];
}

// Implements `weir help` and `weir help graph show`, which equals `weir graph show --help`.
int Help(const CLI::App& app, const std::vector<std::string>& path, Console& console) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (const std::string& word : path) {
    const CLI::App* const sub = FindSubcommand(*command, word);
    if (sub == nullptr) return UnknownCommand(*command, word, console);
    command = sub;
    absl::StrAppend(&name, " ", word);
  }
  // App::help would describe the current command, which is `help`.
  console.out << command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal);
  return kOk;
}

}  // namespace

Option& Option::Required() {
  option_->required();
  return *this;
}

Option& Option::Word(const char* word) {
  option_->type_name(word);
  return *this;
}

// A check returns an error text or an empty string. CLI11 itself rejects text that is not a number.
Option& Option::Range(double least, double most) {
  option_->check([least, most](const std::string& text) {
    double value;
    if (!absl::SimpleAtod(text, &value) || (value >= least && value <= most)) return std::string();
    return absl::StrCat(text, " is not in [", least, ", ", most, "]");
  });
  return *this;
}

Option& Option::AtLeast(int64_t least) {
  option_->check([least](const std::string& text) {
    char* end = nullptr;
    const int64_t value = std::strtoll(text.c_str(), &end, 0);  // like CLI11, including hexadecimal
    if (*end != '\0' || value >= least) return std::string();
    return absl::StrCat(text, " is less than ", least);
  });
  return *this;
}

namespace {

// Rejects empty values, which usually come from unset shell variables.
CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](std::string& text) { return text.empty() ? std::string("the value is empty") : ""; }, "");
}

// CLI11 parses an empty value as zero and truncates values that do not fit.
CLI::Validator IsWhole() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        if (text.empty()) return "the value is empty";
        errno = 0;
        std::strtoll(text.c_str(), nullptr, 0);
        return errno == ERANGE ? text + " is too large" : "";
      },
      "");
}

}  // namespace

Command Command::Add(const char* name, const char* description, const char* example) {
  app_->require_subcommand(1);
  CLI::App* command = app_->add_subcommand(name, description);
  command->footer(absl::StrCat("Example:\n", example));
  return Command(command, action_);
}

void Command::Do(Action action) {
  app_->callback([to = action_, action = std::move(action)] { *to = action; });
}

Option Command::Argument(const char* word, std::string* value, const char* help) {
  return Option(app_->add_option(word, *value, help));
}

Option Command::Arguments(const char* word, std::vector<std::string>* values, const char* help) {
  return Option(app_->add_option(word, *values, help));
}

Option Command::Value(const char* names, std::string* value, const char* help) {
  return Option(app_->add_option(names, *value, help)->check(NotEmpty()));
}

Option Command::Value(const char* names, int* value, const char* help) {
  return Option(app_->add_option(names, *value, help)->check(IsWhole()));
}

Option Command::Value(const char* names, int64_t* value, const char* help) {
  return Option(app_->add_option(names, *value, help)->check(IsWhole()));
}

Option Command::Value(const char* names, double* value, const char* help) {
  return Option(app_->add_option(names, *value, help)->check(NotEmpty()));
}

void Command::Flag(const char* names, bool* value, const char* help) {
  app_->add_flag(names, *value, help);
}

Option Command::List(const char* names, std::vector<std::string>* values, const char* help) {
  return Option(app_->add_option(names, *values, help)->delimiter(','));
}

Option Command::Repeated(const char* names, std::vector<std::string>* values, const char* help) {
  return Option(app_->add_option(names, *values, help)->allow_extra_args(false));
}

Command Command::OneOf() {
  CLI::App* group = app_->add_option_group("what");
  group->require_option(1);
  return Command(group, action_);
}

struct CommandLine::State {
  CLI::App app;
  Action action;
  std::vector<std::string> help_path;
};

CommandLine::CommandLine(const char* name, const char* description, const std::string& version,
                         const char* example)
    : state_(std::make_unique<State>()) {
  CLI::App& app = state_->app;
  app.name(name);
  app.description(description);
  app.set_version_flag("--version", version);
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(example);
}

CommandLine::~CommandLine() = default;

Command CommandLine::root() { return Command(&state_->app, &state_->action); }

int CommandLine::Run(const std::vector<std::string>& args, Console& console) {
  CLI::App& app = state_->app;
  Command help = root().Add("help", "Describe a command", "  weir help graph diff");
  help.Arguments("COMMAND", &state_->help_path, "the command, such as: graph diff");
  help.Do([&](Console& to) { return Help(app, state_->help_path, to); });
  if (args.empty()) {
    console.out << app.help();
    return kUsage;
  }
  const CLI::App* command = &app;  // CLI11 does not say which word it does not know
  for (const std::string& word : args) {
    if (word[0] == '-' || command->get_subcommands({}).empty()) break;
    const CLI::App* const sub = FindSubcommand(*command, word);
    if (sub == nullptr) return UnknownCommand(*command, word, console);
    command = sub;
  }
  try {  // CLI11 reports errors and requests for help by exceptions
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, console.out, console.err) == 0 ? kOk : kUsage;
  }
  return state_->action(console);
}

}  // namespace weir::tools
