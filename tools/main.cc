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

}  // namespace
}  // namespace weir::tools

int main(int argc, char** argv) {
  const auto is = [&](int i, absl::string_view word) { return argc > i && argv[i] == word; };
  const bool serves = is(1, "serve") || (is(1, "help") && is(2, "serve"));
  return serves ? weir::tools::RunServer(argv) : weir::tools::RunMain(argc, argv);
}
