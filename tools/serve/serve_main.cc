#include <cstdio>
#include <string>

#include "weir/rpc/worker.h"
#include "weir/tools/lib/cli.h"

namespace weir::tools {
namespace {

// Runs a session for a server (--isolate-sessions), which starts this program for it.
int RunWorker(int argc, char** argv) {
  absl::StatusOr<rpc::WorkerOptions> options =
      rpc::WorkerOptions::FromArguments({argv + 2, argv + argc});
  const absl::Status status = options.ok() ? rpc::RunWorker(*std::move(options)) : options.status();
  std::fprintf(stderr, "weir: %s: %s\n", rpc::kWorkerCommand, status.ToString().c_str());
  return kFailure;
}

}  // namespace
}  // namespace weir::tools

// The weir-serve program: weir with the serve command.
int main(int argc, char** argv) {
  if (argc > 1 && absl::string_view(argv[1]) == weir::rpc::kWorkerCommand)
    return weir::tools::RunWorker(argc, argv);
  return weir::tools::RunMain(argc, argv, weir::tools::AddServeCommand);
}
