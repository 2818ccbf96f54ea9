#include <unistd.h>

#include <climits>
#include <iostream>
#include <string>

#include "absl/strings/string_view.h"
#include "weir/tools/lib/cli.h"

// The weir program. Its server is a separate program: gRPC and its dependencies would be two fifths
// of this binary, and a fifth of the time and memory that a small graph takes.
namespace weir::tools {
namespace {

constexpr char kServer[] = "weir-serve";

std::string BesideThisProgram(absl::string_view name) {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  const absl::string_view self(path, size > 0 ? static_cast<size_t>(size) : 0);
  return std::string(self.substr(0, self.rfind('/') + 1)) + std::string(name);
}

// Replaces this process with weir-serve, with the same arguments. Returns only if that fails.
int RunServer(char** argv) {
  const std::string path = BesideThisProgram(kServer);
  execv(path.c_str(), argv);
  Console console{std::cout, std::cerr};
  return Fail(console, NotFound("cannot start ", path,
                                ", the program that implements 'weir serve'; "
                                "place it in the same folder as weir (build it as //tools:",
                                kServer, ")"));
}

// True if weir-serve implements what the arguments ask for: `serve`, its help and completion, and
// the manual page, which describes its options.
bool NeedsServer(int argc, char** argv) {
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; ++i) i += argv[i] == absl::string_view("--color") ? 1 : 0;
  const auto is = [&](int at, absl::string_view word) { return at < argc && argv[at] == word; };
  if (is(i, "help")) return is(i + 1, "serve") || is(i + 1, "--man");
  return is(i, "serve") || (is(i, "__complete") && is(i + 1, "serve"));
}

}  // namespace
}  // namespace weir::tools

int main(int argc, char** argv) {
  return weir::tools::NeedsServer(argc, argv) ? weir::tools::RunServer(argv)
                                              : weir::tools::RunMain(argc, argv);
}
