// Times steps of a graph: one that a file holds, or a chain of random ops made from a seed. Prints
// JSON lines of the form
// {"workload", "peer", "metric", "value", "unit", "median", "repeats"}: the best repeat and the
// middle one.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "weir/session/weir.h"

namespace weir {
namespace {

struct Flags {
  std::string workload, graph, write, fetch = "y", target, init;
  std::vector<std::string> feeds;
  double per = 0, budget_s = 2;
  int threads = 2;
  uint32_t int_range = 10;
  int64_t chain = 0;
  uint32_t seed = 1;
  std::vector<std::string> disable;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Emit(const Flags& f, const char* metric, double value, const char* unit, double median,
          size_t repeats) {
  std::printf(
      "{\"workload\": \"%s\", \"peer\": \"weir\", \"metric\": \"%s\", \"value\": %.6g, \"unit\": "
      "\"%s\", "
      "\"median\": %.6g, \"repeats\": %zu}\n",
      f.workload.c_str(), metric, value, unit, median, repeats);
  std::fflush(stdout);
}

// "x:32,784": the same numbers that the TensorFlow driver of the suite feeds.
absl::StatusOr<Feed> MakeFeed(const Graph& graph, const Flags& flags, const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  std::vector<int64_t> dims;
  for (const auto part : absl::StrSplit(parts.back(), ',', absl::SkipEmpty())) {
    int64_t d = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(part, &d))
      return InvalidArgument("--feed ", text, ": not NAME:DIMS");
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
      t.data<int32_t>()[i] = static_cast<int32_t>((hash >> 7) % flags.int_range);
    }
  }
  return Feed{to, t};
}

// A chain of n cheap ops on small tensors: which op, and which shape the other operand has, is
// drawn from the seed.
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

absl::Status Run(const Flags& flags) {
  Graph graph;
  const double t_import = Now();
  if (flags.chain > 0) {
    BuildChain(graph, flags.chain, flags.seed);
  } else {
    WEIR_RETURN_IF_ERROR(ImportGraphFile(graph, flags.graph).status());
  }
  Emit(flags, "import", Now() - t_import, "s", 0, 1);
  if (!flags.write.empty()) {
    WEIR_RETURN_IF_ERROR(WriteFileAtomically(flags.write, SerializeGraph(graph)));
  }
  SessionOptions options{.num_threads = flags.threads};
  options.disable.insert(flags.disable.begin(), flags.disable.end());
  const double t_first = Now();
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(graph, options));
  if (!flags.init.empty()) WEIR_RETURN_IF_ERROR(session.Run({}, {}, {flags.init}).status());
  Outputs fed;
  Tensors values, out;
  for (const std::string& text : flags.feeds) {
    WEIR_ASSIGN_OR_RETURN(const Feed feed, MakeFeed(graph, flags, text));
    fed.push_back(feed.first);
    values.push_back(feed.second);
  }
  WEIR_ASSIGN_OR_RETURN(const Output fetch, graph.FindOutput(flags.fetch));
  std::vector<Operation> targets;
  if (!flags.target.empty()) targets.emplace_back(graph.FindNode(flags.target));
  WEIR_ASSIGN_OR_RETURN(const Step step, session.Prepare(fed, {fetch}, targets));
  double check = 0;
  for (int i = 0; i < 5; ++i) {
    WEIR_RETURN_IF_ERROR(step.Run(values, &out));
    if (i == 0) Emit(flags, "first_run", Now() - t_first, "s", 0, 1);
    check = out[0].dtype() == DT_FLOAT && out[0].num_elements() > 0 ? out[0].data<float>()[0] : 0;
  }
  Emit(flags, "loss5", check, "", 0, 1);

  double last = 1;
  const double warm = Now();
  for (int i = 0; i < 3 || Now() - warm < 0.3; ++i) {
    const double t = Now();
    WEIR_RETURN_IF_ERROR(step.Run(values, &out));
    last = Now() - t;
  }
  const int calls = std::max(1, static_cast<int>(0.02 / last + 0.999));
  std::vector<double> seconds;
  for (const double start = Now(); Now() - start < flags.budget_s || seconds.size() < 5;) {
    const double t = Now();
    for (int i = 0; i < calls; ++i) WEIR_RETURN_IF_ERROR(step.Run(values, &out));
    seconds.push_back((Now() - t) / calls);
  }
  std::sort(seconds.begin(), seconds.end());
  const double scale = flags.per > 0 ? 1e9 / flags.per : 1e6;
  Emit(flags, "steady_run", seconds.front() * scale, flags.per > 0 ? "ns/node" : "us/run",
       seconds[seconds.size() / 2] * scale, seconds.size());
  return absl::OkStatus();
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  weir::Flags f;
  CLI::App app("Times steps of a graph.\nExample: graph_bench W1.read w1_read.pb --init=init_all");
  app.add_option("workload", f.workload, "name to print")->required();
  app.add_option("graph", f.graph, "GraphDef file");
  app.add_option("--feed", f.feeds, "NAME:DIMS");
  app.add_option("--fetch", f.fetch);
  app.add_option("--target", f.target);
  app.add_option("--init", f.init);
  app.add_option("--per", f.per, "divides the time: nodes or iterations in a step");
  app.add_option("--budget", f.budget_s, "seconds");
  app.add_option("--threads", f.threads);
  app.add_option("--int-range", f.int_range);
  app.add_option("--chain", f.chain, "instead of a file: a chain of so many random ops");
  app.add_option("--seed", f.seed);
  app.add_option("--write", f.write, "write the graph to this file");
  app.add_option("--disable", f.disable, "optimisations to leave out");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = weir::Run(f);
  if (!status.ok()) std::fprintf(stderr, "graph_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
