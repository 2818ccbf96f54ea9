// Calls of a multilayer perceptron with batching beside calls without: 64 callers, for the rate,
// and one caller that pauses, for the latency at low load. The measurements alternate, because a
// machine that others use changes from minute to minute.

#include <algorithm>
#include <mutex>

#include "absl/flags/flag.h"
#include "weir/serving/batching.h"
#include "weir/session/weir.h"
#include "weir/tests/bench/callers.h"
#include "weir/tests/bench/timing.h"

ABSL_FLAG(int, callers, 64, "threads that call in a closed loop");
ABSL_FLAG(int, width, 512, "units of the two hidden layers");
ABSL_FLAG(int, rounds, 5, "rounds; the medians are printed");
ABSL_FLAG(double, budget, 1, "seconds per measurement");
ABSL_FLAG(int, max_batch_size, 64, "rows of a batch");
ABSL_FLAG(int, timeout_us, 1000, "batch_timeout_micros");
ABSL_FLAG(int, batch_threads, 0, "num_batch_threads; 0: processors");
ABSL_FLAG(std::string, directory, "/tmp/weir_batching_bench", "where the model is written");

namespace weir::bench {
namespace {

using serving::Batcher;
using serving::NamedTensors;
using serving::Servable;
using Call = std::function<absl::Status(const NamedTensors&)>;

absl::StatusOr<std::shared_ptr<const Servable>> MakeModel() {
  const int64_t width = absl::GetFlag(FLAGS_width);
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, 784}, "x");
  Output y = x;
  int64_t in = 784;
  for (const int64_t out : {width, width, int64_t{10}}) {
    const Variable w = GetVariable(g, absl::StrCat("w", out, "_", in), {in, out}, GlorotUniform(1));
    y = MatMul(y, w.value());
    if (out != 10) y = Relu(y);
    in = out;
  }
  const Operation init = GlobalVariablesInitializer(g);
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(init));
  const std::string directory = absl::StrCat(absl::GetFlag(FLAGS_directory), "/mlp_", width);
  if (!Files().Exists(directory)) {
    WEIR_RETURN_IF_ERROR(WriteSavedModel(
        session, g, directory, {{"serving_default", PredictSignature({{"x", x}}, {{"y", y}})}}));
  }
  return Servable::Load("mlp", 1, directory);
}

absl::StatusOr<Calls> Measure(const Call& call, int threads, std::chrono::microseconds pause) {
  std::mutex mutex;
  absl::Status failure;
  std::vector<NamedTensors> inputs;
  for (int t = 0; t < threads; ++t) {
    Tensor x(DT_FLOAT, {1, 784});
    for (float& v : x.flat<float>()) v = static_cast<float>(t + 1) / 64;
    inputs.push_back({{"x", x}});
  }
  std::vector<double> latencies;
  const Calls calls = CallFrom(threads, absl::GetFlag(FLAGS_budget), [&](int t) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = call(inputs[t]);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (pause.count() > 0) latencies.push_back(took.count());
    if (status.ok()) return true;
    const std::lock_guard<std::mutex> lock(mutex);
    failure = status;
    return false;
  });
  if (calls.failed) return failure.ok() ? InvalidArgument("--budget is too short") : failure;
  if (latencies.empty()) return calls;
  std::sort(latencies.begin(), latencies.end());
  const size_t last = latencies.size() - 1;
  return Calls{calls.per_second, latencies[last / 2], latencies[last * 99 / 100]};
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Measures both ways in turn, and prints the medians of the rounds.
absl::Status Compare(const std::string& name, const Call& alone, const Call& batched, int threads,
                     std::chrono::microseconds pause) {
  std::vector<double> rates[2], p50s[2], p99s[2];
  for (int round = -1; round < absl::GetFlag(FLAGS_rounds); ++round) {  // the first warms up
    for (int i = 0; i < 2; ++i) {
      WEIR_ASSIGN_OR_RETURN(const Calls calls, Measure(i == 0 ? alone : batched, threads, pause));
      if (round < 0) continue;
      rates[i].push_back(calls.per_second);
      p50s[i].push_back(calls.p50_us);
      p99s[i].push_back(calls.p99_us);
    }
  }
  for (int i = 0; i < 2; ++i) {
    const std::string workload = absl::StrCat(name, i == 0 ? "_alone" : "_batched");
    if (pause.count() == 0) Emit({workload, "calls_per_s", Median(rates[i]), "calls/s"});
    Emit({workload, "p50", Median(p50s[i]), "us/call"});
    Emit({workload, "p99", Median(p99s[i]), "us/call"});
  }
  return absl::OkStatus();
}

absl::Status Run() {
  WEIR_ASSIGN_OR_RETURN(const auto servable, MakeModel());
  const std::chrono::microseconds timeout(absl::GetFlag(FLAGS_timeout_us));
  Batcher batcher(*servable, "",
                  {.max_batch_size = absl::GetFlag(FLAGS_max_batch_size),
                   .batch_timeout = timeout,
                   .num_batch_threads = absl::GetFlag(FLAGS_batch_threads)});
  const Call alone = [&](const NamedTensors& inputs) { return servable->Run("", inputs).status(); };
  const Call batched = [&](const NamedTensors& inputs) { return batcher.Run(inputs).status(); };
  const int callers = absl::GetFlag(FLAGS_callers);
  WEIR_RETURN_IF_ERROR(Compare(absl::StrCat("mlp_t", callers), alone, batched, callers,
                               std::chrono::microseconds(0)));
  return Compare("mlp_low_load", alone, batched, 1, std::chrono::milliseconds(2));
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  weir::bench::ParseFlags(argc, argv,
                          "Calls a model with and without batching.\nExample: batching_bench "
                          "--width=2048 --timeout_us=500");
  return weir::bench::ExitCode(weir::bench::Run());
}
