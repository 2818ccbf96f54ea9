#include "weir/tools/cli.h"

#include "absl/strings/str_cat.h"
#include "weir/core/graph.h"
#include "weir/tools/command.h"

namespace weir::tools {

namespace {

constexpr char kVersion[] = "0.1.0";

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

int RunWeir(const std::vector<std::string>& args, Console& console) {
  CommandLine line("weir",
                   "Looks into TensorFlow graphs, checkpoints and event files, and runs graphs.",
                   absl::StrCat("weir ", kVersion, ", GraphDef version ", GraphVersions().producer),
                   "Example:\n  weir graph show model.meta --name 'hidden/.*'\n"
                   "Exit status: 0 done, 1 the answer is no or something failed, 2 wrong usage.");
  Command weir = line.root();
  AddRunCommand(weir);
  AddProfileCommand(weir);
  AddGraphCommand(weir);
  AddCkptCommand(weir);
  AddEventsCommand(weir);
  AddOpsCommand(weir);
  AddCaseCommand(weir);
  AddServeCommand(weir);
  return line.Run(args, console);
}

}  // namespace weir::tools
