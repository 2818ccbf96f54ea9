#ifndef WEIR_SESSION_MONITORED_SESSION_H_
#define WEIR_SESSION_MONITORED_SESSION_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "weir/session/hook.h"
#include "weir/session/hooks.h"
#include "weir/session/scaffold.h"
#include "weir/session/session.h"

namespace weir {

struct MonitoredSessionOptions {
  Scaffold scaffold = {};
  // Variables start as the newest checkpoint in this directory has them, if there is one, ...
  std::string checkpoint_dir = {};
  // ... or as this checkpoint has them. At most one of the two.
  std::string checkpoint_path = {};
  SessionHooks hooks = {};
  SessionOptions session = {};
  // Of sessions that share state (a server, SessionOptions::resources) one is the chief, which
  // restores or initializes the variables. The others wait until it has: they run nothing but
  // ready_for_local_init_op, local_init_op and ready_op, every `recheck_interval`, and give up with
  // DEADLINE_EXCEEDED after `max_wait` (both as in TensorFlow, but for its interval of 30 s).
  bool is_chief = true;
  std::chrono::milliseconds max_wait = std::chrono::minutes(30);
  std::chrono::milliseconds recheck_interval = std::chrono::seconds(1);
  // After a session was lost (ABORTED, UNAVAILABLE): how often in a row another is made before the
  // error is returned, and the pause before the first of them, which doubles each time.
  int max_recoveries = 10;
  std::chrono::milliseconds recovery_pause{100};
};

// A step of a MonitoredSession, made ready once. Cheap to copy; for one thread at a time. The
// session may go first: a run is then FAILED_PRECONDITION.
class MonitoredStep {
 public:
  // As Step::Run, with hooks. Fetches that hooks have added are not among `fetches`.
  absl::Status Run(absl::Span<const Tensor> feeds, Tensors* fetches,
                   const RunOptions& options = {}) const;

 private:
  friend class MonitoredSession;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// A session that starts a model by itself, calls hooks around its steps, and survives the loss of a
// device or server (tf.train.MonitoredSession):
//
//   WEIR_ASSIGN_OR_RETURN(MonitoredSession session, MonitoredTrainingSession(graph, {
//       .checkpoint_dir = "run", .hooks = {StopAtStep({.last_step = 10000})}}));
//   while (!session.ShouldStop())
//     WEIR_RETURN_IF_ERROR(session.Run(feeds, {}, {train}).status());
//   return session.Close();
//
// Creation calls the hooks' Begin, completes the scaffold, and finalizes the graph. Then variables
// are restored from a checkpoint, or else initialized; local variables are initialized; and if
// something still has no value, that is FAILED_PRECONDITION and names it. A session that is not the
// chief waits instead until another one has done this. A chief that finds values in shared state
// replaces them, as TensorFlow's does, and a warning names their variables.
//
// While there is a session, the queue runners of the graph fill their queues. An error of theirs is
// the error of the next step.
//
// If a step, or a hook in it, fails with ABORTED or UNAVAILABLE, the session is closed, a new one
// starts as the first did (from the newest checkpoint by then), and the step runs again.
//
// For one thread at a time. Movable. The graph outlives it.
class MonitoredSession {
 public:
  static absl::StatusOr<MonitoredSession> Create(Graph& graph,
                                                 MonitoredSessionOptions options = {});
  MonitoredSession(MonitoredSession&&) noexcept;
  MonitoredSession& operator=(MonitoredSession&&) noexcept;
  // Closes the session as after an error: hooks do not hear of it, and nothing is saved.
  ~MonitoredSession();

  // True once a hook has asked for it, a step has come to the end of its input (OUT_OF_RANGE), or
  // the session is closed. Run and MonitoredStep::Run are FAILED_PRECONDITION from then on.
  bool ShouldStop() const;

  // One step, with hooks. INVALID_ARGUMENT if two hooks, or a hook and the caller, feed the same
  // tensor; else as Session::Run.
  absl::StatusOr<Tensors> Run(const Feeds& feeds, const Outputs& fetches,
                              const std::vector<Operation>& targets = {},
                              const RunOptions& options = {});
  absl::StatusOr<MonitoredStep> Prepare(const Outputs& feeds, const Outputs& fetches,
                                        const std::vector<Operation>& targets = {});

  // The session of the moment, to run something without hooks. A recovery replaces it.
  // FAILED_PRECONDITION if it is closed, or lost and not yet replaced.
  absl::StatusOr<Session*> session();
  const Scaffold& scaffold() const;

  // The hooks' End, which saves what is to be saved, and the end of the session, whatever the hooks
  // say. FAILED_PRECONDITION if it is closed already.
  absl::Status Close();

 private:
  friend class MonitoredStep;
  struct Impl;
  explicit MonitoredSession(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

struct TrainingSessionOptions {
  Scaffold scaffold = {};
  // Where checkpoints are restored from and saved to, with the graph; empty: nowhere.
  std::string checkpoint_dir = {};
  // Where event files go; empty: to checkpoint_dir.
  std::string summary_dir = {};
  SessionHooks hooks = {};                     // after those that the other options make
  Period save_checkpoints = {.seconds = 600};  // empty: not at all
  Period save_summaries = {.steps = 100};      // empty: not at all
  int64_t log_step_count_steps = 100;          // 0: not at all
  SessionOptions session = {};
  // As in MonitoredSessionOptions. Who is not the chief saves and counts nothing: its hooks are
  // `hooks`.
  bool is_chief = true;
  std::chrono::milliseconds max_wait = std::chrono::minutes(30);
  std::chrono::milliseconds recheck_interval = std::chrono::seconds(1);
};
// A MonitoredSession with the hooks that most training programs want: StepCounter and SummarySaver
// if there is a summary directory, CheckpointSaver if there is a checkpoint directory.
absl::StatusOr<MonitoredSession> MonitoredTrainingSession(Graph& graph,
                                                          TrainingSessionOptions options = {});

}  // namespace weir

#endif  // WEIR_SESSION_MONITORED_SESSION_H_
