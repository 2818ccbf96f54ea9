#ifndef WEIR_TOOLS_CLI_H_
#define WEIR_TOOLS_CLI_H_

#include <ostream>
#include <string>
#include <vector>

#include "weir/core/status.h"

// The `weir` program: one command a file, each added to the command line by a function below. What
// needs gRPC is a program of its own, `weir-serve`, which has all commands; `weir serve` is it.
// Results go to the console's `out`, complaints to `err`; output is meant for people, unless --json
// is given.
namespace weir::tools {

// Exit statuses: done; the answer is no (graphs differ, a case failed, a file is damaged or
// missing); wrong usage.
inline constexpr int kOk = 0;
inline constexpr int kNo = 1;
inline constexpr int kUsage = 2;

enum class Style { kPlain, kBold, kDim, kGood, kBad, kNote };

// Where a command writes.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool color = false;  // `out` is a terminal that shows colors
  int width = 80;      // columns

  // The text between the escape codes of a style, or as it is without color.
  std::string Paint(Style style, absl::string_view text) const;
};

// Prints "weir: NOT_FOUND: no such file" to `err`; returns kNo.
int Fail(Console& console, const absl::Status& status);
// The exit status of a command that ended so: kOk, or after an error that of Fail.
int Finish(Console& console, const absl::Status& status);

// INVALID_ARGUMENT if a command is to write over what it reads.
absl::Status CheckIsNew(const std::string& out, const std::string& in);

// Each declares one command (tools/command.h).
class Command;
void AddCaseCommand(Command& weir);
void AddCkptCommand(Command& weir);
void AddEventsCommand(Command& weir);
void AddGraphCommand(Command& weir);
void AddOpsCommand(Command& weir);
void AddProfileCommand(Command& weir);
void AddRunCommand(Command& weir);
// In weir-serve alone; and what weir has in its place, for help texts.
void AddServeCommand(Command& weir);
void DescribeServeCommand(Command& weir);

using AddCommand = void (*)(Command& weir);
// The whole program, without its name in `args`. Returns the exit status.
int RunWeir(const std::vector<std::string>& args, Console& console,
            AddCommand serve = DescribeServeCommand);
// The same as a main function, on standard output and error.
int RunMain(int argc, char** argv, AddCommand serve = DescribeServeCommand);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CLI_H_
