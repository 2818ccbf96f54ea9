#include <unistd.h>

#include <climits>
#include <iostream>
#include <string>

#include "absl/strings/string_view.h"
#include "weir/tools/cli.h"

// weir. Its server is another program beside it: gRPC, with what it needs, would be two fifths of
// this one, and a fifth of the time and memory that a small graph takes.
namespace weir::tools {
namespace {

constexpr char kServer[] = "weir-serve";

std::string BesideThisProgram(absl::string_view name) {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  const absl::string_view self(path, size > 0 ? static_cast<size_t>(size) : 0);
  return std::string(self.substr(0, self.rfind('/') + 1)) + std::string(name);
}

// The program beside this one in its place, with the same arguments; returns if it is not there.
int RunServer(char** argv) {
  const std::string path = BesideThisProgram(kServer);
  execv(path.c_str(), argv);
  Console console{std::cout, std::cerr};
  return Fail(console,
              NotFound("'weir serve' is a program of its own, and cannot be started: ", path,
                       "; put it beside weir (it is built as //tools:", kServer, ")"));
}

}  // namespace
}  // namespace weir::tools

int main(int argc, char** argv) {
  const auto is = [&](int i, absl::string_view word) { return argc > i && argv[i] == word; };
  const bool serves = is(1, "serve") || (is(1, "help") && is(2, "serve"));
  return serves ? weir::tools::RunServer(argv) : weir::tools::RunMain(argc, argv);
}
