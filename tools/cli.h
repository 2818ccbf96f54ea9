#ifndef WEIR_TOOLS_CLI_H_
#define WEIR_TOOLS_CLI_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "weir/core/status.h"

namespace CLI {
class App;
}

// The `weir` program: one subcommand a file, each added to the command line by a function below.
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
  bool color = false;  // `out` is a terminal that shows colours
  int width = 80;      // columns

  // The text between the escape codes of a style, or as it is without colour.
  std::string Paint(Style style, absl::string_view text) const;
};

// Prints "weir: NOT_FOUND: no such file" to `err`; returns kNo.
int Fail(Console& console, const absl::Status& status);

// What is left to do when the command line has been read. Each function below adds one subcommand,
// which sets *action.
using Action = std::function<int(Console&)>;
void AddCaseCommand(CLI::App& app, Action* action);
void AddCkptCommand(CLI::App& app, Action* action);
void AddEventsCommand(CLI::App& app, Action* action);
void AddGraphCommand(CLI::App& app, Action* action);
void AddOpsCommand(CLI::App& app, Action* action);
void AddRunCommand(CLI::App& app, Action* action);
void AddServeCommand(CLI::App& app, Action* action);

// A subcommand with a description and an example that its help ends with.
CLI::App* AddCommand(CLI::App& app, const char* name, const char* description, const char* example);

// The whole program, without its name in `args`. Returns the exit status.
int RunWeir(const std::vector<std::string>& args, Console& console);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CLI_H_
