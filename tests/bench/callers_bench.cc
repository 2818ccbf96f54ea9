// W11 of the suite: 1, 4 and 16 threads call one prepared step of one session in a closed loop,
// each with its own input.

#include <algorithm>
#include <mutex>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "weir/session/weir.h"
#include "weir/tests/bench/callers.h"
#include "weir/tests/bench/timing.h"

ABSL_FLAG(std::string, graphs, "", "folder with w4_mobilenet_v2.pb");
ABSL_FLAG(std::string, only, "", "only workloads whose names contain this");
ABSL_FLAG(std::vector<std::string>, callers, (std::vector<std::string>{"1", "4", "16"}),
          "numbers of threads, measured one after the other");
ABSL_FLAG(double, budget, 2, "seconds per measurement");
ABSL_FLAG(std::string, write, "", "write the graph of the MLP to this file, for peers, and exit");

namespace weir::bench {
namespace {

// Builds the forward pass of W2's MLP.
Output Mlp(Graph& g, const Output& x) {
  Output y = x;
  int64_t in = 784;
  for (const int64_t out : {512, 512, 10}) {
    const Variable w = GetVariable(g, absl::StrCat("w", out, "_", in), {in, out}, GlorotUniform(1));
    const Variable b = GetVariable(g, absl::StrCat("b", out, "_", in), {out}, Zeros());
    y = BiasAdd(MatMul(y, w.value()), b.value());
    if (out != 10) y = Relu(y);
    in = out;
  }
  return y;
}

absl::StatusOr<Calls> Call(const Step& step, const Shape& shape, int threads, double budget) {
  std::vector<Tensor> inputs;
  for (int t = 0; t < threads; ++t) {
    inputs.emplace_back(DT_FLOAT, shape);
    std::fill_n(inputs.back().data<float>(), inputs.back().num_elements(),
                static_cast<float>(t + 1) / 16);
  }
  std::vector<Tensors> outputs(threads);
  std::mutex mutex;
  absl::Status failure;
  const Calls calls = CallFrom(threads, budget, [&](int t) {
    const absl::Status status = step.Run({inputs[t]}, &outputs[t]);
    if (status.ok()) return true;
    const std::lock_guard<std::mutex> lock(mutex);
    failure = status;
    return false;
  });
  if (calls.failed)
    return failure.ok() ? InvalidArgument("--budget is too short for a call") : failure;
  return calls;
}

absl::Status Run(const std::string& workload, Graph& g, const Output& x, const Output& y,
                 const Shape& shape) {
  const double budget = absl::GetFlag(FLAGS_budget);
  WEIR_RETURN_IF_ERROR(g.status());
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g, {.num_threads = 2}));
  if (!GlobalVariables(g).empty()) {
    WEIR_RETURN_IF_ERROR(session.Run(Feeds{}, Outputs{}, {GlobalVariablesInitializer(g)}).status());
  }
  WEIR_ASSIGN_OR_RETURN(const Step step, session.Prepare({x}, {y}, {}));
  for (const std::string& threads : absl::GetFlag(FLAGS_callers)) {
    int n = 0;
    if (!absl::SimpleAtoi(threads, &n) || n < 1)
      return InvalidArgument("--callers: '", threads, "' is no number of threads");
    // The first callers of a step allocate its memory and warm up the threads' caches.
    WEIR_RETURN_IF_ERROR(Call(step, shape, n, budget / 4).status());
    WEIR_ASSIGN_OR_RETURN(const Calls calls, Call(step, shape, n, budget));
    const std::string name = absl::StrCat(workload, "_t", n);
    Emit({name, "calls_per_s", calls.per_second, "steps/s"});
    Emit({name, "p50", calls.p50_us, "us/run"});
    Emit({name, "p99", calls.p99_us, "us/run"});
  }
  return absl::OkStatus();
}

absl::Status RunAll() {
  const std::string only = absl::GetFlag(FLAGS_only);
  if (absl::StrContains("W11.mlp_b1", only)) {
    Graph g;
    const Output x = Placeholder(g, DT_FLOAT, {1, 784}, "x");
    const Output y = Identity(Mlp(g, x), "y");
    if (const std::string path = absl::GetFlag(FLAGS_write); !path.empty()) {
      GlobalVariablesInitializer(g);
      WEIR_RETURN_IF_ERROR(g.status());
      return WriteFileAtomically(path, SerializeGraph(g));
    }
    WEIR_RETURN_IF_ERROR(Run("W11.mlp_b1", g, x, y, Shape({1, 784})));
  }
  if (absl::StrContains("W11.mobilenet_v2_b1", only)) {
    Graph g;
    WEIR_RETURN_IF_ERROR(
        ImportGraphFile(g, absl::GetFlag(FLAGS_graphs) + "/w4_mobilenet_v2.pb").status());
    WEIR_ASSIGN_OR_RETURN(const Output x, g.FindOutput("x"));
    WEIR_ASSIGN_OR_RETURN(const Output y, g.FindOutput("y"));
    WEIR_RETURN_IF_ERROR(Run("W11.mobilenet_v2_b1", g, x, y, Shape({1, 224, 224, 3})));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  weir::bench::ParseFlags(argc, argv,
                          "Calls one step from several threads.\nExample: callers_bench "
                          "--graphs=$HOME/.cache/weir-bench/graphs --callers=1,2");
  return weir::bench::ExitCode(weir::bench::RunAll());
}
