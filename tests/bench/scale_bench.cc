// W8 of the suite: a graph of 100,000 nodes that is built, written, read, run for the first time
// and in steady state; gradients of 10,000 of its nodes.

#include <malloc.h>

#include <cstdio>

#include "absl/flags/flag.h"
#include "weir/session/weir.h"
#include "weir/tests/bench/timing.h"

ABSL_FLAG(int64_t, nodes, 100000, "number of nodes, at least 1000");
ABSL_FLAG(double, budget, 2, "seconds for the steady-state run");
ABSL_FLAG(int, threads, 2, "number of threads of the session");

namespace weir::bench {
namespace {

// The inputs of node k follow a pattern with period four.
Outputs BuildNodes(Graph& g, int64_t count) {
  const Output x = Placeholder(g, DT_FLOAT, {4}, "x");
  Outputs n = {x, x * 0.5f, x * 0.25f, x * 0.125f};
  n.reserve(count);
  for (int64_t k = 4; k < count; ++k) {
    switch (k % 4) {
      case 0:
        n.push_back(Add(n[k - 1], n[k - 4]));
        break;
      case 1:
        n.push_back(Multiply(n[k - 1], n[k - 3]));
        break;
      case 2:
        n.push_back(Maximum(n[k - 1], n[k - 2]));
        break;
      default:
        n.push_back(Tanh(n[k - 1]));
    }
  }
  return n;
}

absl::Status Run() {
  const int64_t count = absl::GetFlag(FLAGS_nodes);
  if (count < 1000 || count > 100'000'000)
    return InvalidArgument("--nodes=", count, ": between a thousand and a hundred million");
  const std::string workload = absl::StrCat("W8.graph", count);
  const double nodes = static_cast<double>(count);
  const auto rate = [&](const char* metric, double seconds) {
    Emit({workload, metric, nodes / seconds, "nodes/s"});
  };
  const auto per_node = [&](const char* metric, double before_mb) {
    Emit({workload, metric, (ResidentMegabytes() - before_mb) * (1 << 20) / nodes, "B/node"});
  };
  std::string bytes;
  {
    const double before = ResidentMegabytes();
    double start = Now();
    Graph g;
    const Outputs n = BuildNodes(g, count);
    Identity(n[count - 4], "y");
    Identity(n[count / 100], "mid");
    WEIR_RETURN_IF_ERROR(g.status());
    rate("build", Now() - start);
    per_node("memory_per_node", before);
    start = Now();
    bytes = SerializeGraph(g);
    rate("serialize", Now() - start);
  }
  Graph g;
  double start = Now();
  WEIR_RETURN_IF_ERROR(ImportGraph(g, bytes).status());
  rate("import", Now() - start);
  malloc_trim(
      0);  // otherwise the session would reuse memory of the first graph and seem to take none
  const double before = ResidentMegabytes();
  start = Now();
  WEIR_ASSIGN_OR_RETURN(Session session,
                        Session::Create(g, {.num_threads = absl::GetFlag(FLAGS_threads)}));
  const Tensor x = Tensor::Vector<float>({0.f, 0.1f, 0.2f, 0.3f});
  const std::vector<std::string> feeds = {"x:0"};
  Tensors out;
  WEIR_ASSIGN_OR_RETURN(const Step hundredth, session.Prepare(feeds, {"mid:0"}, {}));
  WEIR_RETURN_IF_ERROR(hundredth.Run({x}, &out));
  Emit({workload, "first_run_pruned_1pct", Now() - start, "s"});
  start = Now();
  WEIR_ASSIGN_OR_RETURN(const Step step, session.Prepare(feeds, {"y:0"}, {}));
  WEIR_RETURN_IF_ERROR(step.Run({x}, &out));
  Emit({workload, "first_run", Now() - start, "s"});
  double check = 0;
  for (const float value : out[0].flat<float>()) check += value;
  Emit({workload, "check", check, "sum"});
  per_node("session_memory_per_node", before);
  WEIR_ASSIGN_OR_RETURN(
      const std::vector<double> seconds,
      TimeCalls([&] { return step.Run({x}, &out); }, absl::GetFlag(FLAGS_budget)));
  Emit(workload, "steady_run", seconds, "ns/node", [&](double s) { return s * 1e9 / nodes; });

  constexpr int64_t kPrefix = 10000;
  Graph prefix;
  const Outputs n = BuildNodes(prefix, kPrefix);
  start = Now();
  DenseGradients({n.back()}, {n.front()});
  const double gradients = Now() - start;
  WEIR_RETURN_IF_ERROR(prefix.status());
  Emit({workload, "gradients_10k", static_cast<double>(kPrefix) / gradients, "nodes/s"});
  return absl::OkStatus();
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  weir::bench::ParseFlags(
      argc, argv, "Builds, reads and runs a large graph.\nExample: scale_bench --nodes=1000000");
  return weir::bench::ExitCode(weir::bench::Run());
}
