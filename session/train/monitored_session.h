#ifndef WEIR_SESSION_TRAIN_MONITORED_SESSION_H_
#define WEIR_SESSION_TRAIN_MONITORED_SESSION_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/session/session.h"
#include "weir/session/train/hook.h"
#include "weir/session/train/hooks.h"
#include "weir/session/train/scaffold.h"

namespace WEIR_API weir {

// What a MonitoredSession restores, saves and calls.
struct MonitoredSessionOptions {
  Scaffold scaffold = {};  // what initializes the model; by default from the graph's collections
  // If this directory contains a checkpoint, the variables are restored from the newest one ...
  std::string checkpoint_dir = {};
  // ... or from this checkpoint. At most one of the two may be set.
  std::string checkpoint_path = {};
  // If the newest checkpoint of the directory is damaged, restores the newest sound one, with a
  // warning: see Saver::RestoreLatest.
  bool skip_damaged_checkpoints = false;
  // With a checkpoint, also restores what CheckpointSaverOptions::exact_resume has saved beside it
  // (ResumeExactly), after the local variables were initialized. What is lost is named in a warning
  // or, with `require_exact_resume`, in an error.
  bool exact_resume = false, require_exact_resume = false;
  SessionHooks hooks = {};
  SessionOptions session = {};
  // Among sessions that share state (a server, SessionOptions::resources), one is the chief: it
  // restores or initializes the variables. The others wait for it. They run only
  // ready_for_local_init_op, local_init_op and ready_op, every `recheck_interval`, and return
  // DEADLINE_EXCEEDED after `max_wait` (both as in TensorFlow, except for its interval of 30 s).
  bool is_chief = true;
  std::chrono::milliseconds max_wait = std::chrono::minutes(30);
  std::chrono::milliseconds recheck_interval = std::chrono::seconds(1);
  // How many times in a row a lost session (ABORTED, UNAVAILABLE) is replaced before the error is
  // returned, and the pause before the first replacement. The pause doubles each time.
  int max_recoveries = 10;
  std::chrono::milliseconds recovery_pause{100};
};

// A prepared step of a MonitoredSession. Cheap to copy; not thread-safe. It may outlive the
// session: a run then returns FAILED_PRECONDITION.
class MonitoredStep {
 public:
  // Runs the step as Step::Run does, and calls the hooks. Fetches that hooks add are not among
  // `fetches`.
  absl::Status Run(absl::Span<const Tensor> feeds, Tensors* fetches,
                   const RunOptions& options = {}) const;

 private:
  friend class MonitoredSession;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// A session that initializes or restores a model, calls hooks around its steps, and survives the
// loss of a device or server (tf.train.MonitoredSession):
//
//   WEIR_ASSIGN_OR_RETURN(MonitoredSession session, MonitoredTrainingSession(graph, {
//       .checkpoint_dir = "run", .hooks = {StopAtStep({.last_step = 10000})}}));
//   while (!session.ShouldStop())
//     WEIR_RETURN_IF_ERROR(session.Run(feeds, {}, {train}).status());
//   return session.Close();
//
// Create() calls Begin of the hooks, completes the scaffold, and finalizes the graph. Then it
// restores the variables from a checkpoint, or initializes them, and initializes the local
// variables. If a variable still has no value, it returns FAILED_PRECONDITION with the variable's
// name. A session that is not the chief waits until the chief has done this. A chief that finds
// values in shared state replaces them, as TensorFlow's does, and prints a warning with the names
// of the variables.
//
// While a session exists, the queue runners of the graph fill their queues. Their errors are
// returned by the next step.
//
// If a step, or a hook in it, fails with ABORTED or UNAVAILABLE, the session is closed, a new one
// is started in the same way (from the newest checkpoint at that time), and the step is run again.
//
// Not thread-safe. Movable. The graph must outlive the session.
class MonitoredSession {
 public:
  // Starts a session: finalizes the graph, restores or initializes the variables, and calls the
  // hooks. Returns their errors, those of Session::Create, and INVALID_ARGUMENT if both a directory
  // and a path are set.
  static absl::StatusOr<MonitoredSession> Create(Graph& graph,
                                                 MonitoredSessionOptions options = {});
  MonitoredSession(MonitoredSession&&) noexcept;
  MonitoredSession& operator=(MonitoredSession&&) noexcept;
  // Closes the session as after an error: the hooks' End is not called, and nothing is saved.
  ~MonitoredSession();

  // Returns true once a hook has requested a stop, a step has reached the end of its input
  // (OUT_OF_RANGE), or the session is closed. From then on Run and MonitoredStep::Run return
  // FAILED_PRECONDITION.
  bool ShouldStop() const;

  // Runs one step, with hooks. Returns INVALID_ARGUMENT if two hooks, or a hook and the caller,
  // feed the same tensor; other errors are those of Session::Run.
  absl::StatusOr<Tensors> Run(const Feeds& feeds, const Outputs& fetches,
                              const std::vector<Operation>& targets = {},
                              const RunOptions& options = {});
  absl::StatusOr<MonitoredStep> Prepare(const Outputs& feeds, const Outputs& fetches,
                                        const std::vector<Operation>& targets = {});

  // Returns the current session, to run steps without hooks. A recovery replaces it. Returns
  // FAILED_PRECONDITION if it is closed, or lost and not yet replaced.
  absl::StatusOr<Session*> session();
  const Scaffold& scaffold() const;

  // Calls End of the hooks, which save the final state, and closes the session even if a hook
  // fails. Returns FAILED_PRECONDITION if it is closed already.
  absl::Status Close();

 private:
  friend class MonitoredStep;
  struct Impl;
  explicit MonitoredSession(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// What TrainingSession saves, and how often.
struct TrainingSessionOptions {
  Scaffold scaffold = {};  // as in MonitoredSessionOptions
  // The directory from which checkpoints are restored and to which they are saved, with the graph;
  // empty: none.
  std::string checkpoint_dir = {};
  // The directory of event files; empty: checkpoint_dir.
  std::string summary_dir = {};
  SessionHooks hooks = {};  // appended after the hooks that the other options create
  Period save_checkpoints = {.seconds = 600};  // empty: never
  SaveMode save_mode = SaveMode::kSync;        // see CheckpointSaverOptions
  bool skip_damaged_checkpoints = false;       // as in MonitoredSessionOptions
  // Saves and restores so that a run that is killed and resumed computes the bits of one that was
  // not: see resume_state.h. The second one makes an error of what is lost, instead of a warning.
  bool exact_resume = false, require_exact_resume = false;
  Period save_summaries = {.steps = 100};  // empty: never
  int64_t log_step_count_steps = 100;      // 0: never
  SessionOptions session = {};
  // As in MonitoredSessionOptions. A session that is not the chief saves and counts nothing:
  // `hooks` are its only hooks.
  bool is_chief = true;
  std::chrono::milliseconds max_wait = std::chrono::minutes(30);
  std::chrono::milliseconds recheck_interval = std::chrono::seconds(1);
  int max_recoveries = 10;
  std::chrono::milliseconds recovery_pause{100};
};
// Creates a MonitoredSession with the hooks that most training programs need: StepCounter and
// SummarySaver if there is a summary directory, CheckpointSaver if there is a checkpoint directory.
absl::StatusOr<MonitoredSession> MonitoredTrainingSession(Graph& graph,
                                                          TrainingSessionOptions options = {});

}  // namespace weir

#endif  // WEIR_SESSION_TRAIN_MONITORED_SESSION_H_
