#ifndef WEIR_SESSION_HOOKS_H_
#define WEIR_SESSION_HOOKS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/session/hook.h"

// Hooks for monitored sessions (monitored_session.h), as tf.train has them. A hook is an object of
// one session. Those that count steps need a global step in the graph: FAILED_PRECONDITION when the
// session is made, and INVALID_ARGUMENT for a period that is empty or has both parts.
namespace weir {

// How often something is done: every so many global steps, or seconds. One of the two is set.
struct Period {
  int64_t steps = 0;
  double seconds = 0;
  bool empty() const { return steps <= 0 && seconds <= 0; }
};

// Saves to `directory`/model.ckpt-<step> when the session is made, after each period, and at the
// end if something has happened since. Also writes the graph: graph.pbtxt, and into the event file.
struct CheckpointSaverOptions {
  std::string directory;
  Period period = {.seconds = 600};
  std::string basename = "model.ckpt";
  std::shared_ptr<Saver> saver = {};  // default: the scaffold's
};
std::shared_ptr<SessionHook> CheckpointSaver(CheckpointSaverOptions options);

// Writes summaries to the event file of `directory`: of the first step, and of one step a period.
struct SummarySaverOptions {
  std::string directory;
  Period period = {.steps = 100};
  Output summary_op = {};  // a string scalar; default: the scaffold's
};
std::shared_ptr<SessionHook> SummarySaver(SummarySaverOptions options);

// Prints "global_step/sec: 310" each period, and puts the number into the event file of
// `directory`, if one is given.
struct StepCounterOptions {
  std::string directory = {};
  Period period = {.steps = 100};
  std::function<void(const std::string& line)> print = {};  // default: to stderr
};
std::shared_ptr<SessionHook> StepCounter(StepCounterOptions options = {});

// Prints a line with the step, values, speed and time left:
//   step 1380/1380  loss 0.0031  accuracy 99.4%  310 steps/s  ETA 0 s
// for the first step, one step a period, and the last. On a terminal the line is rewritten in
// place.
struct LoggedValue {
  std::string name;
  Output value;  // a scalar
  // What is printed for it; default: four digits after the point.
  std::function<std::string(double)> format = {};
};
struct ProgressLoggerOptions {
  std::vector<LoggedValue> values = {};
  std::optional<Period> period = {};  // default: 0.1 s on a terminal, else 1 s
  int64_t last_step = 0;              // 0: not known, and no time left is shown
  std::function<void(const std::string& line)> print = {};  // default: to stdout
};
std::shared_ptr<SessionHook> ProgressLogger(ProgressLoggerOptions options);

// Stops after so many steps of this session, or at a global step. One of the two is set, else
// INVALID_ARGUMENT.
struct StopAtStepOptions {
  std::optional<int64_t> num_steps = {};
  std::optional<int64_t> last_step = {};
};
std::shared_ptr<SessionHook> StopAtStep(StopAtStepOptions options);

// Fetches a floating tensor in every step. When it has a NaN, the step is INVALID_ARGUMENT, or
// (`fail` is false) the last one.
std::shared_ptr<SessionHook> NanGuard(Output loss, bool fail = true);

// Fetches tensors once, at the end.
class FinalOps : public SessionHook {
 public:
  explicit FinalOps(Outputs fetches, Feeds feeds = {})
      : fetches_(std::move(fetches)), feeds_(std::move(feeds)) {}
  absl::Status End(HookContext& context) override;
  // Empty before the end.
  const Tensors& values() const { return values_; }

 private:
  Outputs fetches_;
  Feeds feeds_;
  Tensors values_;
};

}  // namespace weir

#endif  // WEIR_SESSION_HOOKS_H_
