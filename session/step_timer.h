#ifndef WEIR_SESSION_STEP_TIMER_H_
#define WEIR_SESSION_STEP_TIMER_H_

#include <optional>

#include "weir/session/hooks.h"

// What hooks share that do something now and then.
namespace weir {

// Seconds on the steady clock.
double SteadyNow();

// When a period is over.
class StepTimer {
 public:
  explicit StepTimer(const Period& period) : period_(period) {}

  struct Elapsed {
    int64_t steps;
    double seconds;
  };

  // Also the first time.
  bool Due(int64_t step) const;
  // What has passed since the last time; nothing the first time.
  std::optional<Elapsed> Restart(int64_t step);
  const std::optional<int64_t>& last_step() const { return last_step_; }

 private:
  Period period_;
  std::optional<int64_t> last_step_;
  double last_time_ = 0;
};

// INVALID_ARGUMENT, with the hook's name, unless one part of the period is set.
absl::Status CheckPeriod(const Period& period, absl::string_view hook);
// FAILED_PRECONDITION, with the hook's name, if the graph has no global step.
absl::Status NeedGlobalStep(Graph& graph, absl::string_view hook);

}  // namespace weir

#endif  // WEIR_SESSION_STEP_TIMER_H_
