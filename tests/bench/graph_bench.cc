// Times steps of a graph: a graph from a file, or a chain of random ops generated from a seed.

#include <algorithm>
#include <cstdio>
#include <random>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "weir/core/io/crc32c.h"
#include "weir/session/weir.h"
#include "weir/tests/bench/timing.h"

ABSL_FLAG(std::string, fetch, "y", "tensors that each step fetches");
ABSL_FLAG(std::string, target, "", "target nodes of each step");
ABSL_FLAG(std::string, init, "", "nodes to run once, before the first step");
ABSL_FLAG(double, per, 0, "divisor of the time: nodes or iterations per step");
ABSL_FLAG(int, steps, 5, "steps before the measurement; \"bits\" is a checksum of what they fetch");
ABSL_FLAG(double, budget, 2, "seconds; 0: no measurement");
ABSL_FLAG(int, threads, 2, "number of threads of the session");
ABSL_FLAG(uint32_t, int_range, 10, "exclusive upper bound of fed integers");
ABSL_FLAG(int64_t, chain, 0, "instead of a file: generate a chain of N random ops");
ABSL_FLAG(uint32_t, seed, 1, "random seed of the chain");
ABSL_FLAG(std::string, write, "", "write the graph to this file");
ABSL_FLAG(std::vector<std::string>, disable, {}, "optimizations to disable");

namespace weir::bench {
namespace {

// Parses "x:32,784" or "ids:8,128:1000", with the exclusive upper bound of integers, and returns
// the same numbers that the drivers of the other runtimes feed.
absl::StatusOr<Feed> MakeFeed(const Graph& graph, const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  uint32_t range = absl::GetFlag(FLAGS_int_range);
  const bool is_valid =
      parts.size() == 2 || (parts.size() == 3 && absl::SimpleAtoi(parts[2], &range));
  if (!is_valid || range == 0) return InvalidArgument("Feed ", text, ": not NAME:DIMS[:RANGE]");
  std::vector<int64_t> dims;
  for (const auto part : absl::StrSplit(parts[1], ',', absl::SkipEmpty())) {
    int64_t d = 0;
    if (!absl::SimpleAtoi(part, &d))
      return InvalidArgument("Feed ", text, ": ", part, " is not an extent");
    dims.push_back(d);
  }
  WEIR_ASSIGN_OR_RETURN(const Output to, graph.FindOutput(parts[0]));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  Tensor t(to.dtype(), shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const uint64_t hash = static_cast<uint64_t>(i) * 2654435761u;
    if (t.dtype() == DT_FLOAT) {
      t.data<float>()[i] = static_cast<float>(hash >> 8 & 0xffff) / 65536.f;
    } else if (t.dtype() == DT_INT32) {
      t.data<int32_t>()[i] = static_cast<int32_t>((hash >> 7) % range);
    }
  }
  return Feed{to, t};
}

// Builds a chain of n cheap ops on small tensors. The seed determines each op and the shape of its
// other operand.
void BuildChain(Graph& g, int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  const std::vector<int64_t> dims = {static_cast<int64_t>(1 + random() % 4),
                                     static_cast<int64_t>(1 + random() % 8)};
  const Variable v = GetVariable(g, "v", Shape(dims), Constant(0.5));
  const Variable w = GetVariable(g, "w", {}, Constant(0.01)),
                 r = GetVariable(g, "r", {dims[1]}, Constant(0.02));
  Output y = v.value();
  const Output operands[] = {w.value(), r.value(), v.value()};
  for (int64_t i = 0; i < n; ++i) {
    const Output other = operands[random() % 3];
    switch (random() % 8) {
      case 0:
        y = y + other;
        break;
      case 1:
        y = y - other;
        break;
      case 2:
        y = Maximum(y, other);
        break;
      case 3:
        y = Minimum(y, other);
        break;
      case 4:
        y = -y;
        break;
      case 5:
        y = Abs(y);
        break;
      case 6:
        y = y * other;
        break;
      default:
        y = Square(y);
        break;
    }
  }
  Identity(y, "y");
  Group(g, {GlobalVariablesInitializer(g)}, "init_all");
}

absl::Status Run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return InvalidArgument("The name of the workload is missing; see --help");
  const std::string& workload = arguments[0];
  const std::string init = absl::GetFlag(FLAGS_init), target = absl::GetFlag(FLAGS_target);
  Graph graph;
  const double t_import = Now();
  size_t first_feed = 1;
  if (const int64_t length = absl::GetFlag(FLAGS_chain); length > 0) {
    BuildChain(graph, length, absl::GetFlag(FLAGS_seed));
  } else {
    if (arguments.size() < 2) return InvalidArgument("The graph's file is missing; see --help");
    first_feed = 2;
    WEIR_RETURN_IF_ERROR(ImportGraphFile(graph, arguments[1]).status());
  }
  Emit({workload, "import", Now() - t_import, "s"});
  if (const std::string path = absl::GetFlag(FLAGS_write); !path.empty())
    WEIR_RETURN_IF_ERROR(WriteFileAtomically(path, SerializeGraph(graph)));
  SessionOptions options{.num_threads = absl::GetFlag(FLAGS_threads)};
  for (const std::string& name : absl::GetFlag(FLAGS_disable)) options.disable.insert(name);
  const double t_first = Now();
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(graph, options));
  if (!init.empty()) WEIR_RETURN_IF_ERROR(session.Run({}, {}, {init}).status());
  Outputs fed;
  Tensors values, out;
  for (size_t i = first_feed; i < arguments.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const Feed feed, MakeFeed(graph, arguments[i]));
    fed.push_back(feed.first);
    values.push_back(feed.second);
  }
  WEIR_ASSIGN_OR_RETURN(const Output fetch, graph.FindOutput(absl::GetFlag(FLAGS_fetch)));
  std::vector<Operation> targets;
  if (!target.empty()) targets.emplace_back(graph.FindNode(target));
  WEIR_ASSIGN_OR_RETURN(const Step step, session.Prepare(fed, {fetch}, targets));
  double check = 0;
  uint32_t bits = 0;  // of all values that these steps fetch
  for (int i = 0; i < absl::GetFlag(FLAGS_steps); ++i) {
    WEIR_RETURN_IF_ERROR(step.Run(values, &out));
    if (i == 0) Emit({workload, "first_run", Now() - t_first, "s"});
    check = out[0].dtype() == DT_FLOAT && out[0].num_elements() > 0 ? out[0].data<float>()[0] : 0;
    bits = ExtendCrc32c(bits, out[0].raw(), out[0].num_bytes());
  }
  Emit({workload, "loss5", check, ""});
  Emit({workload, "bits", static_cast<double>(bits), ""});
  if (absl::GetFlag(FLAGS_budget) == 0) return absl::OkStatus();

  WEIR_ASSIGN_OR_RETURN(
      const std::vector<double> seconds,
      TimeCalls([&] { return step.Run(values, &out); }, absl::GetFlag(FLAGS_budget)));
  const double per = absl::GetFlag(FLAGS_per), scale = per > 0 ? 1e9 / per : 1e6;
  Emit(workload, "steady_run", seconds, per > 0 ? "ns/node" : "us/run",
       [&](double s) { return s * scale; });
  return absl::OkStatus();
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  const std::vector<std::string> arguments = weir::bench::ParseFlags(
      argc, argv,
      "Times steps of a graph: graph_bench WORKLOAD [GRAPH] [NAME:DIMS[:RANGE] to feed ...]\n"
      "Example: graph_bench W2.mlp_b32 w2_mlp_b32.pb --init=init_all --fetch=loss --target=train "
      "x:32,784 labels:32");
  return weir::bench::ExitCode(weir::bench::Run(arguments));
}
