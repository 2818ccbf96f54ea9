#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/session/passes/passes.h"
#include "weir/session/session.h"
#include "weir/tests/gpu/test_gpu.h"
#include "weir/tests/session/lib/random_models.h"

// Searches for steps whose results depend on optimizations; CONTRIBUTING.md says how.
namespace weir {
namespace {

struct Variant {
  const char* name;
  int num_threads;
  std::set<std::string> disable;
  bool is_read_back = false;  // the graph is serialized and imported again
  int callers = 1;            // concurrent callers, for models without state
  bool is_on_gpu = false;     // or on the simulated one
};

TestModel AddModel(Graph& g, uint32_t seed, int length, uint32_t noise) {
  switch (seed % 4) {
    case 0:
      return AddRandomTraining(g, seed, length, noise);
    case 1:
      return AddRandomControlFlow(g, seed, 1 + length / 4, noise);
    case 2:
      return AddRandomTensors(g, seed, length, noise);
    default:
      return AddRandomConvNet(g, seed, 1 + length / 4, noise);
  }
}

// True if the last batch of the model is large.
bool IsLarge(uint32_t seed) { return seed % 15 == 0; }

// Returns the results of steps with several batch sizes; each caller runs its steps one after
// another.
absl::StatusOr<std::vector<Tensors>> Results(uint32_t seed, int length, uint32_t noise,
                                             bool use_resource, const Variant& variant) {
  Graph g(GraphOptions{.use_resource = use_resource}), copy;
  const TestModel model = AddModel(g, seed, length, noise);
  WEIR_RETURN_IF_ERROR(g.status());
  if (variant.is_read_back) WEIR_RETURN_IF_ERROR(ImportGraph(copy, SerializeGraph(g)).status());
  const Graph& graph = variant.is_read_back ? copy : g;
  SessionOptions options{.num_threads = variant.num_threads, .disable = variant.disable};
  if (variant.is_on_gpu) options = WithTestGpu(std::move(options));
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(graph, std::move(options)));
  const std::vector<int64_t> batches = {7, 33, 33, IsLarge(seed) ? 2000 : 1};
  const int callers = model.init.empty() ? variant.callers : 1;
  std::vector<absl::StatusOr<std::vector<Tensors>>> results(callers);
  std::vector<std::thread> threads;
  for (int i = 1; i < callers; ++i)
    threads.emplace_back([&, i] { results[i] = RunModel(session, model, batches); });
  results[0] = RunModel(session, model, batches);
  for (std::thread& thread : threads) thread.join();
  for (int i = 1; i < callers; ++i) {
    WEIR_RETURN_IF_ERROR(results[0].status());
    WEIR_RETURN_IF_ERROR(results[i].status());
    if (const std::string what = Difference(*results[i], *results[0], 0); !what.empty())
      return Internal("two callers' results differ: ", what);
  }
  return std::move(results[0]);
}

// Describes the differences; empty if there are none.
std::string DescribeDifferences(uint32_t seed, int length, uint32_t noise, bool use_resource,
                                double tolerance) {
  const auto want =
      Results(seed, length, noise, use_resource, {"without any", 1, OptimizationNames()});
  if (!want.ok()) return absl::StrCat("without any: ", want.status().message());
  std::set<std::string> some;
  for (uint32_t bits = seed * 2654435761u; const std::string& name : OptimizationNames()) {
    if (bits & 0x10000) some.insert(name);
    bits = bits * 1664525u + 1013904223u;
  }
  const Variant variants[] = {{"with all", 2, {}},
                              {"with all, one thread", 1, {}},
                              {"with some", 2, some},
                              {"written and read", 2, {}, true},
                              {"three callers", 2, {}, false, 3},
                              {"on a GPU", 2, {}, false, 1, true}};
  for (const Variant& variant : variants) {
    if (variant.is_on_gpu && IsLarge(seed)) continue;  // the simulated GPU has little memory
    // On a GPU 16-bit values are rounded once per region, not once per node.
    const double allowed = variant.is_on_gpu ? std::max(tolerance, 0x1p-7) : tolerance;
    const auto got = Results(seed, length, noise, use_resource, variant);
    const std::string what =
        got.ok() ? Difference(*got, *want, allowed) : std::string(got.status().message());
    if (what.empty()) continue;
    const std::string without =
        &variant == &variants[2] ? absl::StrCat(" (not ", absl::StrJoin(some, ", "), ")") : "";
    return absl::StrCat(variant.name, without, ": ", what);
  }
  return "";
}

// Writes the graph of a difference, and prints what to run of it, for `weir profile` and further
// analysis.
void WriteGraphOf(const std::string& folder, uint32_t seed, int length, bool use_resource) {
  Graph g(GraphOptions{.use_resource = use_resource});
  const TestModel model = AddModel(g, seed, length, 0);
  const std::string path = absl::StrCat(folder, "/", seed, use_resource ? "r" : "v", ".pb");
  const absl::Status written = WriteFileAtomically(path, SerializeGraph(g));
  std::printf("  %s --init=%s --fetch=%s --target=%s%s\n", path.c_str(), model.init.c_str(),
              absl::StrJoin(model.fetches, ",").c_str(), absl::StrJoin(model.targets, ",").c_str(),
              written.ok() ? "" : " (not written)");
}

int Main(int argc, char** argv) {
  CLI::App app("Runs random models with and without optimizations until the time is over");
  uint32_t first = 1, step = 1;
  int seconds = 60;
  std::string keep;
  int longest = 40;
  double tolerance = 1e-3;
  app.add_option("--first", first, "The first seed");
  app.add_option("--step", step, "From one seed to the next; 4: of the same kind of model");
  app.add_option("--seconds", seconds, "How long");
  app.add_option("--longest", longest, "Values of the longest step");
  app.add_option("--tolerance", tolerance, "Of a difference, times one plus the magnitude");
  app.add_option("--keep", keep, "A folder for the graphs of finds");
  CLI11_PARSE(app, argc, argv);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int finds = 0;
  uint32_t seed = first;
  for (; std::chrono::steady_clock::now() < end; seed += step) {
    const int length = longest <= 1 ? longest : 1 + static_cast<int>(seed % longest);
    for (const bool use_resource : {false, true}) {
      std::string what = DescribeDifferences(seed, length, 0, use_resource, tolerance);
      if (!what.empty()) what = DescribeDifferences(seed, length, 1, use_resource, tolerance);
      if (what.empty()) continue;
      ++finds;
      std::printf("seed %u, %s variables: %s\n", seed, use_resource ? "resource" : "reference",
                  what.c_str());
      if (!keep.empty()) WriteGraphOf(keep, seed, length, use_resource);
      std::fflush(stdout);
    }
  }
  std::printf("%u seeds from %u, %d finds\n", (seed - first) / step, first, finds);
  return finds ? 1 : 0;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) { return weir::Main(argc, argv); }
