#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "weir/core/io/file.h"
#include "weir/tools/lib/progress.h"
#include "weir/tools/run/machine_limits.h"
#include "weir/tools/run/profile_report.h"
#include "weir/tools/run/request.h"
#include "weir/tools/run/step_profile.h"

// weir profile: compares the time of a step's nodes with the machine's limits.
namespace weir::tools {

namespace {

struct ProfileOptions {
  RequestOptions request;
  std::string html;  // the file to write; empty: none
  int steps = 20, top = 20;
  bool json = false;
};

constexpr int kWarmUpSteps = 3;

int64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

double ProcessorNs() { return static_cast<double>(std::clock()) * (1e9 / CLOCKS_PER_SEC); }

absl::Status RunSteps(const Step& step, const Request& request, int steps, StepProfiler* profiler,
                      Console& console) {
  ProgressBar progress(console, "Profiling", "steps", 2. * steps + kWarmUpSteps);
  Tensors fetched;
  for (int i = 0; i < kWarmUpSteps; ++i) {
    WEIR_RETURN_IF_ERROR(step.Run(request.values, &fetched));
    progress.Add(1);
  }
  const double processor_ns = ProcessorNs();
  const int64_t first_ns = NowNs();
  for (int i = 0; i < steps; ++i) {
    const int64_t start_ns = NowNs();
    WEIR_RETURN_IF_ERROR(step.Run(request.values, &fetched));
    profiler->AddUntraced(static_cast<double>(NowNs() - start_ns));
    progress.Add(1);
  }
  const auto all_ns = static_cast<double>(std::max<int64_t>(1, NowNs() - first_ns));
  profiler->SetBusyThreads((ProcessorNs() - processor_ns) / all_ns);
  std::vector<NodeTrace> trace;
  for (int i = 0; i < steps; ++i) {
    trace.clear();
    const RunOptions options{.trace = &trace};
    const int64_t start_ns = NowNs();
    WEIR_RETURN_IF_ERROR(step.Run(request.values, &fetched, options));
    profiler->AddTraced(trace, start_ns, NowNs());
    progress.Add(1);
  }
  return absl::OkStatus();
}

absl::Status Profile(const ProfileOptions& options, Console& console) {
  if (!options.html.empty()) WEIR_RETURN_IF_ERROR(CheckCanCreate("--html", options.html));
  WEIR_ASSIGN_OR_RETURN(const PreparedRequest prepared,
                        PrepareRequest(options.request, console.err));
  for (const auto& [label, file] : prepared.request.results) {
    if (file.empty()) continue;
    return InvalidArgument("--fetch ", label, "=", file,
                           ": weir profile writes no values to files; use weir run");
  }
  WEIR_ASSIGN_OR_RETURN(const MachineLimits limits,
                        MeasureMachineLimits(prepared.model.session->pool()));
  StepProfiler profiler(*prepared.model.graph, limits);
  WEIR_RETURN_IF_ERROR(
      RunSteps(prepared.step, prepared.request, options.steps, &profiler, console));
  if (prepared.passes != nullptr) WEIR_RETURN_IF_ERROR(prepared.passes->status());
  const StepProfile profile = profiler.Profile();
  if (!options.html.empty()) {
    const std::string title = "Profile of " + options.request.file;
    WEIR_RETURN_IF_ERROR(
        WriteFileAtomically(options.html, ProfilePage(profile, options.top, title)));
  }
  if (options.json) {
    console.out << ProfileJson(profile) << "\n";
  } else {
    PrintProfile(profile, options.top, console);
  }
  return absl::OkStatus();
}

}  // namespace

void AddProfileCommand(Command& weir) {
  auto options = std::make_shared<ProfileOptions>();
  Command profile = weir.Add(
      "profile", "Compare the time of each node of a step with the machine's limits",
      "  weir profile model.meta --checkpoint runs/model-500 --feed x:0=x.npy --fetch y:0\n"
      "  weir profile graph.pb --init init --target train --steps 50 --top 10\n"
      "The step runs 3 times to warm up, --steps times without a trace and --steps times with one. "
      "These runs change variables.\n"
      "A node's limit is max(bytes / memory bandwidth, operations / peak). Bandwidth and peak are "
      "measured at the start.\n"
      "An elementwise function counts as one operation per element. For ops that update variables, "
      "each variable\n"
      "is assumed to be as large as the largest other input.");
  AddRequestOptions(profile, &options->request, "TENSOR", "a tensor to compute; repeatable");
  profile.Value("--steps", &options->steps, "measure N steps without a trace and N steps with one")
      .Range(1, 10000);
  profile.Value("--top", &options->top, "list the top N nodes, ops, copies and waits").AtLeast(0);
  profile.Value("--html", &options->html, "also write a page with pictures for a browser")
      .Word("FILE");
  profile.Flag("--json", &options->json, "print JSON");
  profile.Do([options](Console& console) { return Finish(console, Profile(*options, console)); });
}

}  // namespace weir::tools
