#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "weir/core/io/file.h"
#include "weir/tests/fuzz/case_graph.h"
#include "weir/tests/fuzz/step_fuzzer.h"
#include "weir/tests/fuzz/targets.h"

// Searches for graphs that break the importer or a step; see CONTRIBUTING.md.
namespace weir::fuzz {

namespace {

int Export(const std::vector<std::string>& graphs, const std::string& folder) {
  for (size_t i = 0; i < graphs.size(); ++i) {
    const absl::Status status = WriteFileAtomically(absl::StrCat(folder, "/", i, ".pb"), graphs[i]);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Import and run mutations of graphs for a given time");
  std::vector<std::string> paths;
  FuzzOptions options;
  std::string replay, export_folder;
  int repeat = 1;
  app.add_option("graphs", paths, "graph files (.pb) and directories with recorded cases");
  app.add_option("--first", options.first_seed, "the first seed");
  app.add_option("--seconds", options.seconds, "duration in seconds");
  app.add_option("--jobs", options.jobs, "number of parallel processes");
  app.add_option("--memory_mb", options.memory_mb, "address space of each process, in MB");
  app.add_option("--keep", options.keep, "directory for graphs that cause a failure");
  app.add_option("--replay", replay, "only run this unmodified graph, in this process");
  app.add_option("--repeat", repeat, "number of runs of that graph, to observe leaks");
  app.add_option("--export", export_folder, "only write the seed graphs to this directory");
  CLI11_PARSE(app, argc, argv);
  if (!replay.empty()) {
    const absl::StatusOr<std::string> graph = ReadFile(replay);
    for (int i = 0; graph.ok() && i < repeat; ++i) {
      Steps(*graph);
      if (repeat > 1) std::fprintf(stderr, "%lld bytes in use\n", (long long)MemoryInUse());
    }
    return graph.ok() ? 0 : 1;
  }
  const absl::StatusOr<std::vector<std::string>> graphs = ReadGraphs(paths);
  if (!graphs.ok()) {
    std::fprintf(stderr, "%s\n", std::string(graphs.status().message()).c_str());
    return 2;
  }
  if (!export_folder.empty()) return Export(*graphs, export_folder);
  const FuzzReport report = Fuzz(*graphs, options);
  std::printf("%llu mutations of %zu graphs, %zu finds\n",
              static_cast<unsigned long long>(report.runs), graphs->size(), report.finds.size());
  return report.finds.empty() ? 0 : 1;
}

}  // namespace
}  // namespace weir::fuzz

int main(int argc, char** argv) { return weir::fuzz::Main(argc, argv); }
