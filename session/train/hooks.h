#ifndef WEIR_SESSION_TRAIN_HOOKS_H_
#define WEIR_SESSION_TRAIN_HOOKS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/session/train/hook.h"

// Hooks for monitored sessions (monitored_session.h), like those of tf.train. A hook belongs to one
// session. Hooks that count steps need a global step in the graph: FAILED_PRECONDITION when the
// session is created; INVALID_ARGUMENT for a period that is empty or has both parts.
namespace WEIR_API weir {

// A period: a number of global steps, or of seconds. Exactly one of the two is set.
struct Period {
  int64_t steps = 0;   // of the global step; 0: unset
  double seconds = 0;  // of wall time; 0: unset
  bool empty() const { return steps <= 0 && seconds <= 0; }
};

// Saves to `directory`/model.ckpt-<step> when the session is created, after each period, and at the
// end if there were steps since the last save. Also writes the graph, to graph.pbtxt and to the
// event file.
struct CheckpointSaverOptions {
  std::string directory;
  Period period = {.seconds = 600};     // between two saves
  std::string basename = "model.ckpt";  // of the checkpoints' names
  std::shared_ptr<Saver> saver = {};    // default: the scaffold's
  // Unless kSync, training goes on while a checkpoint is written; the end waits for the last one.
  // A save that kAsyncOrSkip skips is not made up for before the next period, except at the end.
  SaveMode mode = SaveMode::kSync;
  // Called before each save, it returns SaveOptions::metric, from a validation set for example. Its
  // error is that of the save.
  std::function<absl::StatusOr<double>(Session&)> metric = {};
  // SaveOptions::exact_resume of each save.
  bool exact_resume = false;
};
// Makes this hook. It creates `directory` and its parents.
std::shared_ptr<SessionHook> CheckpointSaver(CheckpointSaverOptions options);

// Writes summaries to the event file of `directory`: those of the first step, and of one step per
// period.
struct SummarySaverOptions {
  std::string directory;
  Period period = {.steps = 100};  // between two summaries
  Output summary_op = {};          // a string scalar; default: the scaffold's
};
// Makes this hook.
std::shared_ptr<SessionHook> SummarySaver(SummarySaverOptions options);

// Prints "global_step/sec: 310" once per period, and writes the number to the event file of
// `directory`, if one is given.
struct StepCounterOptions {
  std::string directory = {};
  Period period = {.steps = 100};                           // between two lines
  std::function<void(const std::string& line)> print = {};  // default: to stderr
};
// Makes this hook.
std::shared_ptr<SessionHook> StepCounter(StepCounterOptions options = {});

// A value that ProgressLogger prints.
struct LoggedValue {
  std::string name;  // as printed
  Output value;      // a scalar
  // Formats the value; default: four digits after the decimal point.
  std::function<std::string(double)> format = {};
};
// Options of ProgressLogger.
struct ProgressLoggerOptions {
  std::vector<LoggedValue> values = {};  // fetched in the steps whose line is printed
  std::optional<Period> period = {};     // default: 0.1 s on a terminal, else 1 s
  int64_t last_step = 0;                 // 0: not known, and the remaining time is not shown
  std::function<void(const std::string& line)> print = {};  // default: to stdout
};
// Prints a line with the step, values, speed and remaining time:
//   step 1380/1380  loss 0.0031  accuracy 99.4%  310 steps/s  ETA 0 s
// for the first step, one step per period, and the last. On a terminal each line overwrites the one
// before.
std::shared_ptr<SessionHook> ProgressLogger(ProgressLoggerOptions options);

// Stops after `num_steps` steps of this session, or at the global step `last_step`. Exactly one of
// the two is set, else INVALID_ARGUMENT.
struct StopAtStepOptions {
  std::optional<int64_t> num_steps = {};
  std::optional<int64_t> last_step = {};
};
// Makes this hook.
std::shared_ptr<SessionHook> StopAtStep(StopAtStepOptions options);

// Fetches a floating-point tensor in every step. If it contains a NaN, the step fails with
// INVALID_ARGUMENT, or (if `fail` is false) is the last one.
std::shared_ptr<SessionHook> NanGuard(Output loss, bool fail = true);

// Fetches tensors once, at the end.
class FinalOps : public SessionHook {
 public:
  // The tensors to fetch, and what to feed for them.
  explicit FinalOps(Outputs fetches, Feeds feeds = {})
      : fetches_(std::move(fetches)), feeds_(std::move(feeds)) {}
  absl::Status End(HookContext& context) override;
  // Empty before End.
  const Tensors& values() const { return values_; }

 private:
  Outputs fetches_;
  Feeds feeds_;
  Tensors values_;
};

}  // namespace weir

#endif  // WEIR_SESSION_TRAIN_HOOKS_H_
