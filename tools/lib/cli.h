#ifndef WEIR_TOOLS_LIB_CLI_H_
#define WEIR_TOOLS_LIB_CLI_H_

#include <ostream>
#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

// The `weir` program: one command per file; each function below adds one to the command line. The
// code that needs gRPC is in a separate program, `weir-serve`, which has all commands and
// implements `weir serve`. Results go to the console's `out`, errors to `err`. Output is for people
// unless --json is given.
namespace weir::tools {

// Exit statuses: success; failure or a negative answer (graphs differ, a case failed, a file is
// damaged or missing); invalid usage.
inline constexpr int kOk = 0;
inline constexpr int kFailure = 1;
inline constexpr int kUsage = 2;

enum class Style { kPlain, kBold, kDim, kGood, kBad, kNote };

// The output streams of a command, and what they show (ReadTerminal).
struct Console {
  static constexpr int kDefaultWidth = 80;

  std::ostream& out;
  std::ostream& err;
  bool color = false;         // `out` shows colors
  int width = kDefaultWidth;  // columns
  bool fits = false;          // tables must fit the width
  bool unicode = true;        // false: both show ASCII only
  bool live = false;          // `err` is a terminal, on which lines may be replaced

  // Returns the text between the escape codes of a style, or unchanged without color.
  std::string Paint(Style style, absl::string_view text) const;
};

// Prints "weir: NOT_FOUND: no such file" to `err`; returns kFailure.
int Fail(Console& console, const absl::Status& status);
// Returns the exit status for the result of a command: kOk, or for an error that of Fail.
int Finish(Console& console, const absl::Status& status);

// INVALID_ARGUMENT if the output path `out` would overwrite the input `in`.
absl::Status CheckNotOverwriting(const std::string& out, const std::string& in);

// An error if no file can be created at `path`: its folder is missing, or is not a folder, or is
// not writable. A command calls this before work whose result would be lost. `what` names the
// option or argument: "--save".
absl::Status CheckCanCreate(absl::string_view what, const std::string& path);

// Each adds one command (tools/lib/command.h).
class Command;
void AddCaseCommand(Command& weir);
void AddCkptCommand(Command& weir);
void AddDataCommand(Command& weir);
void AddEventsCommand(Command& weir);
void AddGraphCommand(Command& weir);
void AddModelCommand(Command& weir);
void AddOpsCommand(Command& weir);
void AddPassesCommand(Command& weir);
void AddProfileCommand(Command& weir);
void AddRunCommand(Command& weir);
// AddServeCommand is in weir-serve only; weir has DescribeServeCommand instead, for help texts.
void AddServeCommand(Command& weir);
void DescribeServeCommand(Command& weir);

using AddCommand = void (*)(Command& weir);
// Runs the whole program. `args` does not include its name. Returns the exit status.
int RunWeir(const std::vector<std::string>& args, Console& console,
            AddCommand serve = DescribeServeCommand);
// Like RunWeir, as a main function, on standard output and error.
int RunMain(int argc, char** argv, AddCommand serve = DescribeServeCommand);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_CLI_H_
