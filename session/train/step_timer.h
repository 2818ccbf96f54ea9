#ifndef WEIR_SESSION_TRAIN_STEP_TIMER_H_
#define WEIR_SESSION_TRAIN_STEP_TIMER_H_

#include <optional>

#include "weir/session/train/hooks.h"

// Utilities for hooks that act periodically.
namespace weir {

// Returns the time of the steady clock in seconds.
double SteadyNow();

// Determines when a period has elapsed.
class StepTimer {
 public:
  explicit StepTimer(const Period& period) : period_(period) {}

  struct Elapsed {
    int64_t steps;
    double seconds;
  };

  // Returns true if the period has elapsed, and before the first Restart().
  bool Due(int64_t step) const;
  // Starts a new period. Returns the steps and seconds since the last call; nothing on the first
  // call.
  std::optional<Elapsed> Restart(int64_t step);
  const std::optional<int64_t>& last_step() const { return last_step_; }

 private:
  Period period_;
  std::optional<int64_t> last_step_;
  double last_time_ = 0;
};

// Returns INVALID_ARGUMENT, with the hook's name, unless exactly one part of the period is set.
absl::Status CheckPeriod(const Period& period, absl::string_view hook);
// Returns FAILED_PRECONDITION, with the hook's name, if the graph has no global step.
absl::Status RequireGlobalStep(Graph& graph, absl::string_view hook);

}  // namespace weir

#endif  // WEIR_SESSION_TRAIN_STEP_TIMER_H_
