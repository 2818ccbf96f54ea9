#include "weir/tools/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "weir/core/graph.h"

namespace weir::tools {

namespace {

constexpr char kVersion[] = "0.1.0";

// Help without what CLI11 says of types and limits: "--repeat N", not "--repeat INT:POSITIVE".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0 || option->get_positional()) return "";
    const std::string type = option->get_type_name();
    const std::string word = type.substr(0, type.find(':'));
    return word == "INT" ? " N" : word == "FLOAT" ? " X" : " " + word;
  }
};

// `weir help`, `weir help graph show`: the same as `weir graph show --help`.
void AddHelpCommand(CLI::App& app, Action* action) {
  auto path = std::make_shared<std::vector<std::string>>();
  CLI::App* help = AddCommand(app, "help", "Tell about a command", "  weir help graph diff");
  help->add_option("COMMAND", *path, "the command, word by word");
  help->callback([&app, path, action] {
    *action = [&app, path](Console& console) {
      const CLI::App* command = &app;
      std::string name = app.get_name();
      for (const std::string& word : *path) {
        const auto subs = command->get_subcommands(
            [&word](const CLI::App* sub) { return sub->get_name() == word; });
        if (subs.empty()) {
          console.err << "weir: no command is called '" << word << "'; see weir help\n";
          return kUsage;
        }
        command = subs[0];
        absl::StrAppend(&name, " ", word);
      }
      // App::help would tell about the command that was given: this one.
      console.out << command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal);
      return kOk;
    };
  });
}

}  // namespace

std::string Console::Paint(Style style, absl::string_view text) const {
  static constexpr const char* kCodes[] = {"0", "1", "2", "32", "31", "33"};
  if (!color || style == Style::kPlain) return std::string(text);
  return absl::StrCat("\x1b[", kCodes[static_cast<int>(style)], "m", text, "\x1b[0m");
}

int Fail(Console& console, const absl::Status& status) {
  console.err << "weir: " << absl::StatusCodeToString(status.code()) << ": "
              << std::string(status.message()) << "\n";
  return kNo;
}

CLI::App* AddCommand(CLI::App& app, const char* name, const char* description,
                     const char* example) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer(absl::StrCat("Example:\n", example));
  return command;
}

int RunWeir(const std::vector<std::string>& args, Console& console) {
  CLI::App app("Looks into TensorFlow graphs, checkpoints and event files, and runs graphs.",
               "weir");
  app.set_version_flag("--version", absl::StrCat("weir ", kVersion, ", GraphDef version ",
                                                 GraphVersions().producer));
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.footer(
      "Example:\n  weir graph show model.meta --name 'hidden/.*'\n"
      "Exit status: 0 done, 1 the answer is no or something failed, 2 wrong usage.");
  Action action;
  AddRunCommand(app, &action);
  AddGraphCommand(app, &action);
  AddCkptCommand(app, &action);
  AddEventsCommand(app, &action);
  AddOpsCommand(app, &action);
  AddCaseCommand(app, &action);
  AddServeCommand(app, &action);
  AddHelpCommand(app, &action);

  if (args.empty()) {
    console.out << app.help();
    return kUsage;
  }
  try {  // CLI11 tells by exceptions what is wrong, and that help was asked for
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, console.out, console.err) == 0 ? kOk : kUsage;
  }
  return action(console);
}

}  // namespace weir::tools
