#include <map>

#include "absl/strings/match.h"
#include "weir/core/io/graph_io.h"
#include "weir/kernels/lib/backend.h"
#include "weir/ops/lib/registry.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/model/freeze.h"
#include "weir/session/passes/passes.h"
#include "weir/session/session.h"
#include "weir/tests/fuzz/marked_steps.h"
#include "weir/tests/fuzz/targets.h"
#include "weir/tests/io/test_files.h"

// Any graph is imported, frozen and run, or rejected, with the feeds and fetches of its marks.
namespace weir::fuzz {

namespace {

std::map<int, MarkedStep> StepsOf(const Graph& graph) {
  std::map<int, MarkedStep> steps = MarkedSteps(graph);
  if (!steps.empty()) return steps;
  for (const auto& node : graph.nodes()) {
    if (!absl::StartsWith(node->op_name(), "Placeholder"))
      steps[0].targets.emplace_back(node.get());
  }
  return steps;
}

// Equal bytes run in the same way; half of all graphs run with some optimizations disabled, any of
// those that there are.
SessionOptions OptionsFor(absl::string_view bytes) {
  SessionOptions options;
  options.num_threads = 2;
  options.backends = std::make_shared<BackendRegistry>();  // the CPU only
  if (bytes.size() % 2 == 0) {
    uint32_t bits = 2166136261u;  // FNV-1a
    for (const char c : bytes) bits = (bits ^ static_cast<uint8_t>(c)) * 16777619u;
    for (const std::string& name : OptimizationNames()) {
      if (bits & 0x10000) options.disable.insert(name);
      bits = bits * 1664525u + 1013904223u;
    }
  }
  return options;
}

}  // namespace

void Steps(absl::string_view bytes) {
  proto::GraphDef def;
  if (!def.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  testing::MemoryFileSystem files;
  const ScopedFileSystem scope(&files);
  Graph graph;
  if (!ImportGraphDef(graph, def).ok()) {
    Require(graph.num_nodes() == 0, "an error leaves the graph unchanged");
    return;
  }
  absl::StatusOr<Session> session = Session::Create(graph, OptionsFor(bytes));
  if (!session.ok()) return;
  RunOptions options;
  options.timeout = std::chrono::milliseconds(500);
  for (const auto& [number, step] : StepsOf(graph)) {
    if (!step.fetches.empty()) {
      const auto frozen = FreezeGraph(*session, step.fetches);
      Require(frozen.ok() || !frozen.status().message().empty(), "an error has a message");
    }
    const auto out = session->Run(step.feeds, step.fetches, step.targets, options);
    if (!out.ok()) {
      Require(!out.status().message().empty(), "an error has a message");
      continue;
    }
    for (const Tensor& value : *out) value.ToString();
  }
}

}  // namespace weir::fuzz
