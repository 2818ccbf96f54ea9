#include "weir/session/train/step_timer.h"

#include <chrono>

#include "weir/ops/framework/variables.h"

namespace weir {

double SteadyNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool StepTimer::Due(int64_t step) const {
  if (!last_step_) return true;
  if (step == *last_step_) return false;
  return period_.seconds > 0 ? SteadyNow() >= last_time_ + period_.seconds
                             : step >= *last_step_ + period_.steps;
}

std::optional<StepTimer::Elapsed> StepTimer::Restart(int64_t step) {
  const double now = SteadyNow();
  std::optional<Elapsed> elapsed;
  if (last_step_) elapsed = {step - *last_step_, now - last_time_};
  last_step_ = step;
  last_time_ = now;
  return elapsed;
}

absl::Status CheckPeriod(const Period& period, absl::string_view hook) {
  if (period.empty())
    return InvalidArgument(hook, ": Either seconds or steps should be provided for its period.");
  if (period.steps > 0 && period.seconds > 0)
    return InvalidArgument(hook, ": Can not provide both seconds and steps for its period.");
  return absl::OkStatus();
}

absl::Status RequireGlobalStep(Graph& graph, absl::string_view hook) {
  if (GetGlobalStep(graph).valid()) return absl::OkStatus();
  WEIR_RETURN_IF_ERROR(graph.status());
  return FailedPrecondition("Global step should be created to use ", hook, ".");
}

}  // namespace weir
