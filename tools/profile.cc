#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "weir/tools/machine_limits.h"
#include "weir/tools/profile_report.h"
#include "weir/tools/request.h"
#include "weir/tools/step_profile.h"

// weir profile: what the nodes of a step cost beside what they have to cost.
namespace weir::tools {

namespace {

struct ProfileOptions {
  RequestOptions request;
  int steps = 20, top = 20;
  bool json = false;
};

constexpr int kWarmUpSteps = 3;

int64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

double ProcessorNs() { return static_cast<double>(std::clock()) * (1e9 / CLOCKS_PER_SEC); }

absl::Status RunSteps(const Step& step, const Request& request, int steps, StepProfiler* profiler) {
  Tensors fetched;
  for (int i = 0; i < kWarmUpSteps; ++i) WEIR_RETURN_IF_ERROR(step.Run(request.values, &fetched));
  const double processor_ns = ProcessorNs();
  const int64_t first_ns = NowNs();
  for (int i = 0; i < steps; ++i) {
    const int64_t start_ns = NowNs();
    WEIR_RETURN_IF_ERROR(step.Run(request.values, &fetched));
    profiler->AddUntraced(static_cast<double>(NowNs() - start_ns));
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
  }
  return absl::OkStatus();
}

absl::Status Profile(const ProfileOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const PreparedRequest prepared, PrepareRequest(options.request));
  for (size_t i = 0; i < prepared.request.files.size(); ++i) {
    if (prepared.request.files[i].empty()) continue;
    return InvalidArgument("--fetch ", prepared.request.labels[i], "=", prepared.request.files[i],
                           ": weir profile writes no values; weir run does");
  }
  WEIR_ASSIGN_OR_RETURN(const MachineLimits limits,
                        MeasureMachineLimits(prepared.model.session->pool()));
  StepProfiler profiler(*prepared.model.graph, limits);
  WEIR_RETURN_IF_ERROR(RunSteps(prepared.step, prepared.request, options.steps, &profiler));
  const StepProfile profile = profiler.Profile();
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
      "profile", "Tell what a step's nodes cost, beside what the machine allows",
      "  weir profile model.meta --checkpoint runs/model-500 --feed x:0=x.npy --fetch y:0\n"
      "  weir profile graph.pb --init init --target train --steps 50 --top 10\n"
      "The step runs 3 times to warm up, --steps times untraced and --steps times traced: "
      "variables change.\n"
      "A node's limit is the larger of its bytes over the bandwidth of memory and its operations "
      "over the peak, both\n"
      "measured at the start. Functions of an element count as one operation. Of ops that update "
      "variables, the\n"
      "variables are taken to be as large as the largest of the other inputs.");
  AddRequestOptions(profile, &options->request, "TENSOR", "a tensor to compute; may be repeated");
  profile.Value("--steps", &options->steps, "measure so many steps, without traces and with them")
      .Range(1, 10000);
  profile.Value("--top", &options->top, "list so many nodes, ops, copies and waits").AtLeast(0);
  profile.Flag("--json", &options->json, "for programs");
  profile.Do([options](Console& console) { return Finish(console, Profile(*options, console)); });
}

}  // namespace weir::tools
