#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weir/core/io/file.h"
#include "weir/session/runtime/chrome_trace.h"
#include "weir/tools/lib/progress.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/run/run.h"

// weir run: runs a step of a graph from a file.
namespace weir::tools {

namespace {

using Clock = std::chrono::steady_clock;

// Rounds up, because zero means no limit.
std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1e3)));
}

struct Timing {
  int64_t steps = 0;
  double total_s = 0, fastest_s = 0;

  void Add(double seconds) {
    total_s += seconds;
    fastest_s = steps++ == 0 ? seconds : std::min(fastest_s, seconds);
  }
};

// Runs the step `repeat` times and traces the last run.
absl::StatusOr<Timing> RunSteps(const Step& step, const Request& request, int64_t repeat,
                                std::chrono::milliseconds timeout, std::vector<NodeTrace>* trace,
                                Tensors* fetched, Console& console) {
  Timing timing;
  ProgressBar progress(console, "Running", "steps", static_cast<double>(repeat));
  for (int64_t i = 0; i < repeat; ++i) {
    RunOptions options{.timeout = timeout};
    if (i + 1 == repeat) options.trace = trace;
    const Clock::time_point start = Clock::now();
    WEIR_RETURN_IF_ERROR(step.Run(request.values, fetched, options));
    timing.Add(std::chrono::duration<double>(Clock::now() - start).count());
    progress.Add(1);
  }
  return timing;
}

// Runs a step for each batch of rows, traces the last one, and joins what they fetch.
absl::StatusOr<Timing> RunBatches(const Step& step, const Request& request, int64_t batch,
                                  std::chrono::milliseconds timeout, std::vector<NodeTrace>* trace,
                                  Tensors* fetched) {
  WEIR_ASSIGN_OR_RETURN(const int64_t rows, CountRows(request.sources));
  Timing timing;
  ResultRows results;
  for (int64_t begin = 0, end = 0; begin < rows; begin = end) {
    end = begin + std::min(batch, rows - begin);
    Tensors values, outputs;
    for (const FeedSource& source : request.sources) {
      WEIR_ASSIGN_OR_RETURN(Tensor value, source.Rows(begin, end));
      values.push_back(std::move(value));
    }
    RunOptions options{.timeout = timeout};
    if (end == rows) options.trace = trace;
    const Clock::time_point start = Clock::now();
    const absl::Status status = step.Run(values, &outputs, options);
    if (!status.ok()) return Annotate(status, absl::StrCat("rows ", begin, " to ", end - 1));
    timing.Add(std::chrono::duration<double>(Clock::now() - start).count());
    results.Add(std::move(outputs));
  }
  if (timing.steps == 0) return InvalidArgument("--batch: the feeds have no rows");
  WEIR_ASSIGN_OR_RETURN(*fetched, results.Join(request.results));
  return timing;
}

absl::Status Save(const RequestOptions& options, Model& model, Console& console) {
  if (options.save.empty()) return absl::OkStatus();
  WEIR_RETURN_IF_ERROR(SaveModel(model, options.save));
  console.out << "Variables saved to " << options.save << "\n";
  return absl::OkStatus();
}

// Refuses what could not be written after the run.
absl::Status CheckOutputs(const RunCommandOptions& options) {
  if (!options.request.save.empty())
    WEIR_RETURN_IF_ERROR(CheckCanCreate("--save", options.request.save));
  if (!options.trace.empty()) WEIR_RETURN_IF_ERROR(CheckCanCreate("--trace", options.trace));
  if (!options.request.out.empty())
    WEIR_RETURN_IF_ERROR(CheckCanCreate("--out", options.request.out));
  for (const std::string& fetch : options.request.fetches) {
    const size_t equals = fetch.find('=');
    if (equals != std::string::npos)
      WEIR_RETURN_IF_ERROR(CheckCanCreate("--fetch", fetch.substr(equals + 1)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunGraph(const RunCommandOptions& options, Console& console) {
  const int64_t batch = options.request.batch;
  if (batch > 0 && options.repeat > 1) return InvalidArgument("pass --batch or --repeat, not both");
  WEIR_RETURN_IF_ERROR(CheckOutputs(options));
  WEIR_ASSIGN_OR_RETURN(PreparedRequest prepared, PrepareRequest(options.request, console.err));
  const Request& request = prepared.request;
  if (request.empty()) return Save(options.request, prepared.model, console);
  std::vector<NodeTrace> trace;
  std::vector<NodeTrace>* const traced = options.trace.empty() ? nullptr : &trace;
  const std::chrono::milliseconds timeout = Milliseconds(options.timeout_s);
  Tensors fetched;
  WEIR_ASSIGN_OR_RETURN(
      const Timing timing,
      batch > 0
          ? RunBatches(prepared.step, request, batch, timeout, traced, &fetched)
          : RunSteps(prepared.step, request, options.repeat, timeout, traced, &fetched, console));
  WEIR_RETURN_IF_ERROR(WriteResults(request.results, fetched, console));
  if (prepared.passes != nullptr) {
    WEIR_RETURN_IF_ERROR(prepared.passes->status());
    console.out << "Plans after " << prepared.passes->records().size() << " passes written to "
                << options.request.dump_plan << "\n";
  }
  if (fetched.empty() && timing.steps == 1) {
    console.out << "Ran " << absl::StrJoin(options.request.targets, ", ") << " in "
                << HumanDuration(timing.total_s) << "\n";
  }
  if (timing.steps > 1) {
    const auto steps = static_cast<double>(timing.steps);
    console.out << absl::StrFormat("%d steps in %.3g s: %.4g steps/s, %s a step, the fastest %s\n",
                                   timing.steps, timing.total_s, steps / timing.total_s,
                                   HumanDuration(timing.total_s / steps),
                                   HumanDuration(timing.fastest_s));
  }
  if (!options.trace.empty()) {
    WEIR_RETURN_IF_ERROR(
        WriteFileAtomically(options.trace, ChromeTrace(trace, *prepared.model.graph)));
    console.out << "Trace of " << trace.size() << " nodes written to " << options.trace
                << ": open it in ui.perfetto.dev or chrome://tracing\n";
  }
  return Save(options.request, prepared.model, console);
}

void AddRunCommand(Command& weir) {
  auto options = std::make_shared<RunCommandOptions>();
  Command run = weir.Add(
      "run", "Run a graph: feed tensors, fetch tensors, time and trace steps",
      "  weir run model.meta --checkpoint runs/model-500 --feed x:0=x.npy --fetch y:0 --fetch "
      "p:0=p.npy\n"
      "  weir run saved_model_dir --signature serving_default --feed 'images=[[0, 1, 2]]'\n"
      "  weir run saved_model_dir --signature serving_default --feed inputs.npz --out results.npz\n"
      "  weir run graph.pb --feed x=photos/ --batch 32 --fetch scores=scores.csv\n"
      "  weir run graph.pb --init init --target train --repeat 1000 --save runs/model-1000");
  AddRequestOptions(run, &options->request, "TENSOR[=FILE]",
                    "a tensor to print, or to write to FILE (.npy, .npz, .csv, .json, .jsonl); "
                    "repeatable");
  AddBatchOptions(run, &options->request);
  run.Value("--save", &options->request.save,
            "save the variables to this checkpoint after the last step")
      .Word("PREFIX");
  run.Value("--repeat", &options->repeat, "repeat the step N times and report timing").AtLeast(1);
  run.Value(
         "--timeout", &options->timeout_s,
         "cancel a step after this time, and report the running node or the resource it waits for")
      .Word("SECONDS")
      .Range(0.001, 1e6);
  run.Value("--trace", &options->trace, "write a trace of the last step to this file").Word("FILE");
  run.Flag("--log-placement", &options->request.model.session.log_device_placement,
           "print the device of each node");
  run.Do([options](Console& console) { return Finish(console, RunGraph(*options, console)); });
}

}  // namespace weir::tools
