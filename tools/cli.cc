#include "weir/tools/cli.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <new>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weir/core/graph.h"
#include "weir/tools/command.h"

namespace weir::tools {

namespace {

constexpr char kVersion[] = "0.1.0";

struct NamedCommand {
  absl::string_view name;
  AddCommand add;
};
constexpr NamedCommand kCommands[] = {{"run", AddRunCommand},       {"profile", AddProfileCommand},
                                      {"graph", AddGraphCommand},   {"ckpt", AddCkptCommand},
                                      {"events", AddEventsCommand}, {"ops", AddOpsCommand},
                                      {"case", AddCaseCommand},     {"serve", nullptr}};

// The commands that a command line may be about: one, if it begins with its name. To declare the
// options of the others would be a tenth of the start of a small graph.
absl::Span<const NamedCommand> CommandsFor(const std::vector<std::string>& args) {
  for (const NamedCommand& command : kCommands) {
    if (!args.empty() && command.name == args[0]) return {&command, 1};
  }
  return kCommands;
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

int Finish(Console& console, const absl::Status& status) {
  return status.ok() ? kOk : Fail(console, status);
}

absl::Status CheckIsNew(const std::string& out, const std::string& in) {
  const auto place = [](const std::filesystem::path& path) {
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
    return ((error ? path : canonical) / "").lexically_normal();
  };
  if (place(out) != place(in)) return absl::OkStatus();
  return InvalidArgument(out, " would take the place of ", in,
                         ", of which it is made; give it another name");
}

void DescribeServeCommand(Command& weir) {
  weir.Add("serve", "Run graphs for TensorFlow's clients and Weir's, over gRPC",
           "  weir serve --help");
}

int RunWeir(const std::vector<std::string>& args, Console& console, AddCommand serve) {
  CommandLine line("weir",
                   "Looks into TensorFlow graphs, checkpoints and event files, and runs graphs.",
                   absl::StrCat("weir ", kVersion, ", GraphDef version ", GraphVersions().producer),
                   "Example:\n  weir graph show model.meta --name 'hidden/.*'\n"
                   "Exit status: 0 done, 1 the answer is no or something failed, 2 wrong usage.");
  Command weir = line.root();
  for (const NamedCommand& command : CommandsFor(args))
    (command.add != nullptr ? command.add : serve)(weir);
  return line.Run(args, console);
}

namespace {

constexpr char kNoMemory[] = "weir: RESOURCE_EXHAUSTED: out of memory\n";

// Ends the process: Abseil's hash tables do not survive an exception of operator new.
[[noreturn]] void EndWithoutMemory() {
  std::fputs(kNoMemory, stderr);
  _exit(kNo);
}

}  // namespace

int RunMain(int argc, char** argv, AddCommand serve) {
  // A server goes on after a call that got no memory.
  if (serve == DescribeServeCommand) std::set_new_handler(EndWithoutMemory);
  Console console{std::cout, std::cerr};
  if (isatty(STDOUT_FILENO) != 0) {
    console.color = std::getenv("NO_COLOR") == nullptr;
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
      console.width = size.ws_col;
  }
  int status = kNo;
  try {  // where there is no memory for what has no status: nodes of a graph, text
    status = RunWeir({argv + 1, argv + argc}, console, serve);
  } catch (const std::bad_alloc&) {
    std::fputs(kNoMemory, stderr);
  } catch (const std::length_error&) {
    std::fputs(kNoMemory, stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir: INTERNAL: unexpected exception: %s\n", error.what());
  }
  std::cout.flush();
  return std::cout.good() ? status : kNo;
}

}  // namespace weir::tools
