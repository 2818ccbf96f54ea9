#ifndef WEIR_TOOLS_LIB_COMMAND_H_
#define WEIR_TOOLS_LIB_COMMAND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/tools/lib/cli.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

// Declarations of commands and their options:
//
//   auto options = std::make_shared<ListOptions>();
//   Command list = weir.Add("ls", "List the tensors", "  weir ls runs/digits");
//   list.Argument("CHECKPOINT", &options->prefix, "its prefix").Required();
//   list.Flag("--json", &options->json, "print JSON");
//   list.Do([options](Console& console) { return List(*options, console); });
//
// The implementation uses CLI11. Including its header takes five seconds to compile, so only
// command.cc includes it.
namespace weir::tools {

// An option or argument. If it is not given, its variable keeps its value.
class Option {
 public:
  Option& Required();
  // Sets the placeholder for the value in help texts: "FILE".
  Option& Word(const char* word);
  // Any other value is invalid usage.
  Option& Choices(const std::vector<std::string>& values);
  // A value outside [least, most] is invalid usage.
  Option& Range(double least, double most);
  Option& AtLeast(int64_t least);

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}
  CLI::Option* option_;
};

// What a command does after the command line has been parsed.
using Action = std::function<int(Console&)>;

// A handle to a command, valid while its CommandLine exists. The variables of its options must live
// until the command has run.
class Command {
 public:
  // Adds a subcommand. A command with subcommands requires one of them. Its help ends with the
  // example.
  Command Add(const char* name, const char* description, const char* example);
  // Sets the action of the command.
  void Do(Action action);

  // Add positional arguments: one, or one or more.
  Option Argument(const char* word, std::string* value, const char* help);
  Option Arguments(const char* word, std::vector<std::string>* values, const char* help);
  // Add named options: "--out", "--out,-o".
  Option Value(const char* names, std::string* value, const char* help);
  Option Value(const char* names, int* value, const char* help);
  Option Value(const char* names, int64_t* value, const char* help);
  Option Value(const char* names, double* value, const char* help);
  void Flag(const char* names, bool* value, const char* help);
  // A comma-separated list: "--tag loss,accuracy".
  Option List(const char* names, std::vector<std::string>* values, const char* help);
  // An option that may be repeated: "--feed x=1 --feed y=2".
  Option Repeated(const char* names, std::vector<std::string>* values, const char* help);
  // Returns a group: exactly one of the options declared on it must be given.
  Command OneOf();

 private:
  friend class CommandLine;
  Command(CLI::App* app, Action* action) : app_(app), action_(action) {}
  CLI::App* app_;
  Action* action_;
};

// A program with several commands, and what every program has: `help`, `completion`, --version,
// --color and --wide.
class CommandLine {
 public:
  CommandLine(const char* name, const char* description, const std::string& version,
              const char* example);
  ~CommandLine();
  Command root();
  // Parses the arguments (without the program's name) and runs the command. Returns the exit
  // status.
  int Run(const std::vector<std::string>& args, Console& console);

 private:
  struct State;
  void AddGeneralCommands();
  const std::unique_ptr<State> state_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_COMMAND_H_
