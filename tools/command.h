#ifndef WEIR_TOOLS_COMMAND_H_
#define WEIR_TOOLS_COMMAND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/tools/cli.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

// Commands with their options, as they are declared:
//
//   auto options = std::make_shared<ListOptions>();
//   Command list = weir.Add("ls", "List the tensors", "  weir ls runs/digits");
//   list.Argument("CHECKPOINT", &options->prefix, "its prefix").Required();
//   list.Flag("--json", &options->json, "for programs");
//   list.Do([options](Console& console) { return List(*options, console); });
//
// CLI11 does the work. Its header costs a source five seconds, so command.cc alone includes it.
namespace weir::tools {

// An option or argument. The value it fills keeps what it had if the option is not given.
class Option {
 public:
  Option& Required();
  // What stands for the value in help texts: "FILE".
  Option& Word(const char* word);
  // Wrong usage outside [least, most].
  Option& Range(double least, double most);
  Option& AtLeast(int64_t least);

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}
  CLI::Option* option_;
};

// What is left to do when the command line has been read.
using Action = std::function<int(Console&)>;

// A handle to a command of a CommandLine, good while that lives. Values live until it has run.
class Command {
 public:
  // A command below this one, of which one must be given then. Its help ends with the example.
  Command Add(const char* name, const char* description, const char* example);
  // What it does.
  void Do(Action action);

  // By position: one, or one and more.
  Option Argument(const char* word, std::string* value, const char* help);
  Option Arguments(const char* word, std::vector<std::string>* values, const char* help);
  // By name: "--out", "--out,-o".
  Option Value(const char* names, std::string* value, const char* help);
  Option Value(const char* names, int* value, const char* help);
  Option Value(const char* names, int64_t* value, const char* help);
  Option Value(const char* names, double* value, const char* help);
  void Flag(const char* names, bool* value, const char* help);
  // "--tag loss,accuracy".
  Option List(const char* names, std::vector<std::string>* values, const char* help);
  // "--feed x=1 --feed y=2".
  Option Repeated(const char* names, std::vector<std::string>* values, const char* help);
  // The options that are declared on what this returns exclude each other, and one must be given.
  Command OneOf();

 private:
  friend class CommandLine;
  Command(CLI::App* app, Action* action) : app_(app), action_(action) {}
  CLI::App* app_;
  Action* action_;
};

// A program of several commands, with `help` and --version.
class CommandLine {
 public:
  CommandLine(const char* name, const char* description, const std::string& version,
              const char* example);
  ~CommandLine();
  Command root();
  // Does what the arguments (without the program's name) ask for. Returns the exit status.
  int Run(const std::vector<std::string>& args, Console& console);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_COMMAND_H_
