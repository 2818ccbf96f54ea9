#include "weir/tools/lib/command.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weir/tools/lib/completion.h"
#include "weir/tools/lib/help.h"
#include "weir/tools/lib/manual.h"
#include "weir/tools/lib/terminal.h"
#include "weir/tools/lib/unknown_word.h"

namespace weir::tools {

namespace {

// The placeholder of an option's value in help texts: CLI11 names types and limits,
// "INT:POSITIVE", "WHEN:{auto,always,never}".
std::string WordOf(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  if (option.get_type_size() == 0) return "";
  const std::string type = option.get_type_name();
  const std::string word = type.substr(0, type.find(':'));
  return word == "INT" ? "N" : word == "FLOAT" ? "X" : word;
}

std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find(":{"), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return absl::StrSplit(type.substr(begin + 2, end - begin - 2), ',');
}

OptionInfo DescribeOption(const CLI::Option& option, bool one_of) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  info.word = WordOf(option);
  info.help = option.get_description();
  info.choices = ChoicesOf(option);
  info.required = option.get_required();
  info.repeated = option.get_expected_max() > 1;
  info.one_of = one_of;
  return info;
}

// Adds the options of a command, or of a group of them, which CLI11 makes a command without a name.
void DescribeOptions(const CLI::App& app, bool one_of, CommandInfo* info) {
  for (const CLI::Option* option : app.get_options()) {
    const bool positional = option->get_positional();
    (positional ? info->arguments : info->options).push_back(DescribeOption(*option, one_of));
  }
}

std::string FullName(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  return absl::StrCat(FullName(*app.get_parent()), " ", app.get_name());
}

CommandInfo Describe(const CLI::App& app) {
  CommandInfo info;
  info.name = FullName(app);
  info.description = app.get_description();
  info.example = app.get_footer();
  DescribeOptions(app, false, &info);
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (sub->get_name().empty()) {
      DescribeOptions(*sub, true, &info);
    } else {
      info.commands.push_back(Describe(*sub));
    }
  }
  return info;
}

// Implements `weir help` and `weir help graph show`, which equals `weir graph show --help`.
int Help(const CommandInfo& root, const std::vector<std::string>& path, Console& console) {
  const CommandInfo* command = &root;
  for (const std::string& word : path) {
    const CommandInfo* const sub = command->Find(word);
    if (sub == nullptr) return UnknownCommand(*command, word, console);
    command = sub;
  }
  PrintHelp(*command, console);
  return kOk;
}

// Returns the subcommand with this name; null if there is none.
const CLI::App* FindSubcommand(const CLI::App& command, const std::string& word) {
  const auto subs =
      command.get_subcommands([&word](const CLI::App* sub) { return sub->get_name() == word; });
  return subs.empty() ? nullptr : subs[0];
}

// Explains why parsing failed. Returns kOk after --help and --version, except that a word that is
// no command is an error even then.
int Explain(const CLI::App& weir, const CLI::ParseError& error, Console& console) {
  const CommandInfo root = Describe(weir);
  const CommandInfo* command = &root;
  const CLI::App* app = &weir;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    command = command->Find(app->get_name());
  }
  const std::vector<std::string> unknown = weir.remaining(true);
  for (const std::string& word : unknown) {
    if (word[0] == '-' || command->commands.empty()) continue;
    return UnknownCommand(*command, word, console);
  }
  if (error.get_name() == "CallForHelp") {
    PrintHelp(*command, console);
    return kOk;
  }
  if (error.get_exit_code() == 0) {
    console.out << error.what() << "\n";
    return kOk;
  }
  for (const std::string& word : unknown) {
    if (word[0] == '-' && word != "--") return UnknownOption(*command, root, word, console);
  }
  console.err << "weir: ";
  if (unknown.empty()) {
    console.err << error.what();
  } else {
    console.err << "unexpected argument '" << unknown.front() << "'";
  }
  console.err << "\nRun '" << command->name << " --help' for more information.\n";
  return kUsage;
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

Option& Option::Choices(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
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
  std::string version;
  Action action;
  std::vector<std::string> help_path;
  std::string shell, color = "auto";
  bool manual = false, wide = false;
};

CommandLine::CommandLine(const char* name, const char* description, const std::string& version,
                         const char* example)
    : state_(std::make_unique<State>()) {
  CLI::App& app = state_->app;
  app.name(name);
  app.description(description);
  app.set_help_flag("-h,--help", "print this help");
  state_->version = version;
  app.set_version_flag("--version", version, "print the version");
  app.footer(example);
  app.fallthrough();  // subcommands, which inherit this, take the options below too
  root()
      .Value("--color", &state_->color, "color the output")
      .Word("WHEN")
      .Choices({"auto", "always", "never"});
  root().Flag("--wide", &state_->wide,
              "print tables whole, also where they do not fit the terminal");
}

CommandLine::~CommandLine() = default;

Command CommandLine::root() { return Command(&state_->app, &state_->action); }

void CommandLine::AddGeneralCommands() {
  Command help = root().Add("help", "Describe a command", "  weir help graph diff");
  help.Arguments("COMMAND", &state_->help_path, "the command, such as: graph diff");
  help.Flag("--man", &state_->manual, "print the manual page of all commands, in roff");
  help.Do([this](Console& console) {
    const CommandInfo root = Describe(state_->app);
    if (!state_->manual) return Help(root, state_->help_path, console);
    console.out << ManualPage(root, state_->version.substr(0, state_->version.find(',')));
    return kOk;
  });
  Command completion = root().Add("completion", "Print a script that completes commands in a shell",
                                  "  weir completion zsh > ~/.zfunc/_weir\n"
                                  "  weir completion fish > ~/.config/fish/completions/weir.fish\n"
                                  "  source <(weir completion bash)");
  completion.Argument("SHELL", &state_->shell, "the shell")
      .Required()
      .Choices({"bash", "zsh", "fish"});
  completion.Do([this](Console& console) {
    console.out << CompletionScript(state_->shell, state_->app.get_name());
    return kOk;
  });
}

int CommandLine::Run(const std::vector<std::string>& args, Console& console) {
  AddGeneralCommands();
  const CLI::App& app = state_->app;
  if (args.empty()) {
    PrintHelp(Describe(app), console);
    return kUsage;
  }
  if (args[0] == "__complete") {
    console.out << CompletionAnswer(Complete(Describe(app), {args.begin() + 1, args.end()}));
    return kOk;
  }
  const CLI::App* command = &app;  // CLI11 does not say which word it does not know
  for (const std::string& word : args) {
    if (word.empty() || word[0] == '-' || command->get_subcommands({}).empty()) break;
    const CLI::App* const sub = FindSubcommand(*command, word);
    if (sub == nullptr) return UnknownCommand(Describe(*command), word, console);
    command = sub;
  }
  try {  // CLI11 reports errors and requests for help by exceptions
    state_->app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    return Explain(app, error, console);
  }
  SetColor(state_->color, console);
  if (state_->wide) console.fits = false;
  return state_->action(console);
}

}  // namespace weir::tools
