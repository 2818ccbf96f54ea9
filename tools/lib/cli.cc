#include "weir/tools/lib/cli.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <new>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weir/core/graph/graph.h"
#include "weir/core/io/file.h"
#include "weir/core/tensor/version.h"
#include "weir/tools/lib/command.h"
#include "weir/tools/lib/terminal.h"

namespace weir::tools {

namespace {

struct NamedCommand {
  absl::string_view name;
  AddCommand add;
};
// clang-format off
constexpr NamedCommand kCommands[] = {
    {"run", AddRunCommand},
    {"profile", AddProfileCommand},
    {"graph", AddGraphCommand},
    {"model", AddModelCommand},
    {"ckpt", AddCkptCommand},
    {"events", AddEventsCommand},
    {"data", AddDataCommand},
    {"ops", AddOpsCommand},
    {"passes", AddPassesCommand},
    {"case", AddCaseCommand},
    {"serve", nullptr},
};
// clang-format on

// Returns the commands that the command line may use: one, if it begins with that command's name.
// Declaring the options of all other commands would take a tenth of the startup time of a small
// graph.
absl::Span<const NamedCommand> CommandsFor(const std::vector<std::string>& args) {
  for (const NamedCommand& command : kCommands) {
    if (!args.empty() && command.name == args[0]) return {&command, 1};
  }
  return kCommands;
}

}  // namespace

std::string Console::Paint(Style style, absl::string_view text) const {
  // Of the 256 colors, those that have contrast on dark and light backgrounds.
  static constexpr const char* kCodes[] = {"0", "1", "2", "38;5;28", "38;5;167", "38;5;130"};
  if (!color || style == Style::kPlain) return std::string(text);
  return absl::StrCat("\x1b[", kCodes[static_cast<int>(style)], "m", text, "\x1b[0m");
}

int Fail(Console& console, const absl::Status& status) {
  console.err << "weir: " << absl::StatusCodeToString(status.code()) << ": "
              << std::string(status.message()) << "\n";
  return kFailure;
}

int Finish(Console& console, const absl::Status& status) {
  return status.ok() ? kOk : Fail(console, status);
}

absl::Status CheckNotOverwriting(const std::string& out, const std::string& in) {
  const auto place = [](const std::filesystem::path& path) {
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
    return ((error ? path : canonical) / "").lexically_normal();
  };
  if (place(out) != place(in)) return absl::OkStatus();
  return InvalidArgument("the output ", out, " would overwrite the input ", in,
                         "; choose another output path");
}

absl::Status CheckCanCreate(absl::string_view what, const std::string& path) {
  const std::string folder = DirectoryOf(path);
  if (!Files().Exists(folder))
    return NotFound(what, " ", path, ": there is no folder ", folder, "; create it first");
  if (!Files().IsDirectory(folder))
    return InvalidArgument(what, " ", path, ": ", folder, " is not a folder");
  if (access(folder.c_str(), W_OK) != 0)
    return absl::PermissionDeniedError(
        absl::StrCat(what, " ", path, ": the folder ", folder, " is not writable"));
  return absl::OkStatus();
}

void DescribeServeCommand(Command& weir) {
  weir.Add("serve", "Run graphs for TensorFlow's clients and Weir's, over gRPC",
           "  weir serve --help");
}

int RunWeir(const std::vector<std::string>& args, Console& console, AddCommand serve) {
  CommandLine line(
      "weir", "Inspects and runs TensorFlow graphs, and inspects checkpoints and event files.",
      absl::StrCat("weir ", WEIR_VERSION, ", GraphDef version ", GraphVersions().producer),
      "Example:\n  weir graph show model.meta --name 'hidden/.*'\n"
      "Exit status: 0 success, 1 failure or a negative answer, 2 invalid usage.");
  Command weir = line.root();
  for (const NamedCommand& command : CommandsFor(args))
    (command.add != nullptr ? command.add : serve)(weir);
  return line.Run(args, console);
}

namespace {

constexpr char kOutOfMemory[] = "weir: RESOURCE_EXHAUSTED: out of memory\n";

// Ends the process, because Abseil's hash tables do not survive an exception from operator new.
[[noreturn]] void ExitOutOfMemory() {
  std::fputs(kOutOfMemory, stderr);
  _exit(kFailure);
}

}  // namespace

int RunMain(int argc, char** argv, AddCommand serve) {
  // A server continues after a call that ran out of memory.
  if (serve == DescribeServeCommand) std::set_new_handler(ExitOutOfMemory);
  Console console{std::cout, std::cerr};
  ReadTerminal(console);
  int status = kFailure;
  try {  // out of memory in code without a status: nodes of a graph, text
    status = RunWeir({argv + 1, argv + argc}, console, serve);
  } catch (const std::bad_alloc&) {
    std::fputs(kOutOfMemory, stderr);
  } catch (const std::length_error&) {
    std::fputs(kOutOfMemory, stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir: INTERNAL: unexpected exception: %s\n", error.what());
  }
  std::cout.flush();
  return std::cout.good() ? status : kFailure;
}

}  // namespace weir::tools
