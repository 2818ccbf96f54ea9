#include "weir/session/train/monitored_session.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <thread>

#include "absl/strings/str_join.h"
#include "weir/core/io/file.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/model/resume_state.h"
#include "weir/session/runtime/time_limited_step.h"
#include "weir/session/train/queue_runner.h"

namespace weir {

namespace {

// TensorFlow calls this preemption: the session is lost, but a new session may succeed.
bool IsLoss(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status);
}

absl::Status Closed() { return FailedPrecondition("Session is already closed."); }

std::string NameOf(const Operation& op) { return op.valid() ? op.name() : "none"; }

// The read node that was created with the variable: a finalized graph accepts no new nodes.
Output GlobalStepRead(Graph& graph) {
  const Variable step = GetGlobalStep(graph);
  if (!step.valid()) return {};
  return step.info()->snapshot.valid() ? step.info()->snapshot : step.value();
}

}  // namespace

struct MonitoredSession::Impl final : public HookContext {
  Impl(Graph& g, MonitoredSessionOptions o) : graph(g), options(std::move(o)) {}

  Session& session() override { return *live; }
  const Scaffold& scaffold() const override { return options.scaffold; }
  absl::StatusOr<int64_t> GlobalStep() override;
  absl::StatusOr<EventWriter*> Events(const std::string& directory) override;
  Coordinator& coordinator() override { return *runners; }
  void RequestStop() override { stop = true; }

  absl::Status Begin();
  absl::Status Start();
  absl::Status StartOnce();
  absl::Status StartAsChief();
  absl::Status WaitForChief();
  absl::StatusOr<std::string> MissingFromChief();
  absl::StatusOr<std::string> Restore();
  absl::Status Initialize();
  absl::Status RunLocalInit();
  absl::Status WarnAboutExistingValues(absl::string_view what);
  absl::StatusOr<std::string> DescribeMissing(const Output& ready_op);
  absl::Status NotReady(absl::string_view what, const std::string& restored,
                        const std::string& missing) const;
  absl::Status Recover(const absl::Status& loss);
  absl::Status RunnersStatus() const;
  void DropSession();
  absl::Status End();
  void Abandon();

  Graph& graph;
  MonitoredSessionOptions options;
  std::optional<Session> live;  // empty between a loss and the recovery, and after Close
  std::unique_ptr<Coordinator>
      runners;             // coordinates the threads that use the session while it exists
  int64_t generation = 0;  // counts the sessions created
  bool stop = false, closed = false;
  int losses = 0;  // since the last successful step
  Output global_step;
  std::optional<Step> read_global_step;
  std::optional<int64_t> cached_global_step;  // reset when a step runs
  std::map<std::string, std::unique_ptr<EventWriter>> events;
};

absl::StatusOr<int64_t> MonitoredSession::Impl::GlobalStep() {
  if (cached_global_step) return *cached_global_step;
  if (!global_step.valid())
    return FailedPrecondition("The graph has no global step; create one with CreateGlobalStep()");
  if (!read_global_step) {
    WEIR_ASSIGN_OR_RETURN(read_global_step, live->Prepare({}, {global_step}));
  }
  Tensors value;
  WEIR_RETURN_IF_ERROR(read_global_step->Run({}, &value));
  cached_global_step = value[0].IntAt(0);
  return *cached_global_step;
}

absl::StatusOr<EventWriter*> MonitoredSession::Impl::Events(const std::string& directory) {
  std::unique_ptr<EventWriter>& writer = events[directory];
  if (writer == nullptr) {
    WEIR_ASSIGN_OR_RETURN(writer, EventWriter::Create(directory));
  }
  return writer.get();
}

absl::Status MonitoredSession::Impl::Begin() {
  if (!options.checkpoint_dir.empty() && !options.checkpoint_path.empty())
    return InvalidArgument("Can not provide both checkpoint_dir and checkpoint_path.");
  for (const auto& hook : options.hooks) WEIR_RETURN_IF_ERROR(hook->Begin(graph));
  global_step = GlobalStepRead(graph);
  WEIR_RETURN_IF_ERROR(options.scaffold.Complete(graph));
  return Start();
}

// Creates a session whose variables have values, with as many attempts as the options allow.
absl::Status MonitoredSession::Impl::Start() {
  for (;;) {
    const absl::Status status = StartOnce();
    if (status.ok()) return status;
    if (!IsLoss(status)) {
      DropSession();
      return status;
    }
    WEIR_RETURN_IF_ERROR(Recover(status));
  }
}

absl::Status MonitoredSession::Impl::StartOnce() {
  ++generation;
  read_global_step.reset();
  cached_global_step.reset();
  WEIR_ASSIGN_OR_RETURN(Session made, Session::Create(graph, options.session));
  live.emplace(std::move(made));
  WEIR_RETURN_IF_ERROR(options.is_chief ? StartAsChief() : WaitForChief());
  runners = std::make_unique<Coordinator>();
  WEIR_RETURN_IF_ERROR(StartQueueRunners(*live, *runners));
  for (const auto& hook : options.hooks) WEIR_RETURN_IF_ERROR(hook->AfterCreateSession(*this));
  return absl::OkStatus();
}

absl::Status MonitoredSession::Impl::StartAsChief() {
  const Scaffold& s = options.scaffold;
  WEIR_ASSIGN_OR_RETURN(const std::string restored, Restore());
  if (restored.empty()) WEIR_RETURN_IF_ERROR(Initialize());
  WEIR_ASSIGN_OR_RETURN(std::string missing, DescribeMissing(s.ready_for_local_init_op));
  if (!missing.empty()) return NotReady("model ready for local_init", restored, missing);
  WEIR_RETURN_IF_ERROR(RunLocalInit());
  WEIR_ASSIGN_OR_RETURN(missing, DescribeMissing(s.ready_op));
  if (!missing.empty()) return NotReady("model ready", restored, missing);
  const bool is_exact = options.exact_resume || options.require_exact_resume;
  if (restored.empty() || !is_exact) return absl::OkStatus();
  return ResumeExactly(*live, restored, options.require_exact_resume);
}

absl::Status MonitoredSession::Impl::WaitForChief() {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::min<std::chrono::milliseconds>(options.max_wait, kForever);
  for (;;) {
    WEIR_ASSIGN_OR_RETURN(const std::string missing, MissingFromChief());
    if (missing.empty()) return absl::OkStatus();
    const auto next = std::chrono::steady_clock::now() + options.recheck_interval;
    if (next > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "Session was not ready after waiting ",
          std::chrono::duration<double>(options.max_wait).count(),
          " secs for the chief: start the session with is_chief, which initializes the variables, "
          "on the same state. ",
          missing));
    }
    std::this_thread::sleep_until(next);
  }
}

// Returns what the chief still has to initialize before this session may continue; empty if nothing
// is missing.
absl::StatusOr<std::string> MonitoredSession::Impl::MissingFromChief() {
  const Scaffold& s = options.scaffold;
  WEIR_ASSIGN_OR_RETURN(std::string missing, DescribeMissing(s.ready_for_local_init_op));
  if (!missing.empty()) return missing;
  WEIR_RETURN_IF_ERROR(RunLocalInit());
  return DescribeMissing(s.ready_op);
}

// Existing values usually mean that two chiefs share one state: each trains the variables that the
// other one resets.
absl::Status MonitoredSession::Impl::WarnAboutExistingValues(absl::string_view what) {
  const bool is_shared = options.session.resources != nullptr || !options.session.target.empty();
  if (!is_shared || generation > 1) return absl::OkStatus();
  const absl::StatusOr<Tensors> reported = live->Run({options.scaffold.ready_for_local_init_op});
  if (!reported.ok() || (*reported)[0].dtype() != DT_STRING) return absl::OkStatus();
  const auto missing = (*reported)[0].flat<std::string>();
  std::vector<std::string> names;
  for (const Variable& v : GlobalVariables(graph)) {
    if (std::find(missing.begin(), missing.end(), v.op_name()) == missing.end())
      names.push_back(v.op_name());
  }
  if (names.empty()) return absl::OkStatus();
  std::fprintf(stderr,
               "weir: warning: the chief %s variables that had values already: %s. Only one "
               "session on the same state is the chief; start the others with is_chief = false\n",
               std::string(what).c_str(), absl::StrJoin(names, ", ").c_str());
  return absl::OkStatus();
}

// Returns the path of the restored checkpoint; empty if there is none.
absl::StatusOr<std::string> MonitoredSession::Impl::Restore() {
  Saver* const saver = options.scaffold.saver.get();
  if (saver == nullptr) return "";
  if (!options.checkpoint_path.empty()) {
    WEIR_RETURN_IF_ERROR(WarnAboutExistingValues("restores"));
    WEIR_RETURN_IF_ERROR(saver->Restore(*live, options.checkpoint_path));
    return options.checkpoint_path;
  }
  if (options.checkpoint_dir.empty()) return "";
  if (absl::IsNotFound(ReadCheckpointState(options.checkpoint_dir).status())) return "";
  WEIR_RETURN_IF_ERROR(WarnAboutExistingValues("restores"));
  return saver->RestoreLatest(*live, options.checkpoint_dir, options.skip_damaged_checkpoints);
}

absl::Status MonitoredSession::Impl::Initialize() {
  const Scaffold& s = options.scaffold;
  WEIR_RETURN_IF_ERROR(WarnAboutExistingValues("initializes"));
  WEIR_RETURN_IF_ERROR(live->Run(s.init_feeds, {}, {s.init_op}).status());
  return s.init_fn ? s.init_fn(*live) : absl::OkStatus();
}

absl::Status MonitoredSession::Impl::RunLocalInit() {
  const Scaffold& s = options.scaffold;
  return live->Run(s.local_init_feeds, {}, {s.local_init_op}).status();
}

// Returns a description of the missing variables; empty if the op reports none.
absl::StatusOr<std::string> MonitoredSession::Impl::DescribeMissing(const Output& ready_op) {
  const absl::StatusOr<Tensors> reported = live->Run({ready_op});
  if (absl::IsFailedPrecondition(reported.status()))
    return std::string(reported.status().message());
  WEIR_RETURN_IF_ERROR(reported.status());
  const Tensor& names = (*reported)[0];
  if (names.dtype() != DT_STRING || names.num_elements() == 0) return "";
  return absl::StrCat("Variables not initialized: ",
                      absl::StrJoin(names.flat<std::string>(), ", "));
}

absl::Status MonitoredSession::Impl::NotReady(absl::string_view what, const std::string& restored,
                                              const std::string& missing) const {
  const Scaffold& s = options.scaffold;
  if (!restored.empty()) {
    return FailedPrecondition("Restoring ", restored, " did not make ", what, ". Its saver does ",
                              "not restore all variables: initialize the others in local_init_op, ",
                              "or save and restore them too. ", missing);
  }
  return FailedPrecondition("Init operations did not make ", what,
                            ".  Init op: ", NameOf(s.init_op),
                            ", init fn: ", s.init_fn ? "given" : "none",
                            ", local_init_op: ", NameOf(s.local_init_op), ", error: ", missing);
}

absl::Status MonitoredSession::Impl::RunnersStatus() const {
  return runners == nullptr ? absl::OkStatus() : runners->status();
}

// Destroys the session, after the threads that use it. Closing the session cancels their blocking
// calls.
void MonitoredSession::Impl::DropSession() {
  if (runners != nullptr) runners->RequestStop();
  if (runners != nullptr && live) live->Close();
  runners.reset();
  live.reset();
}

// Drops the session before a recovery. Returns the error itself if there have been too many losses
// in a row.
absl::Status MonitoredSession::Impl::Recover(const absl::Status& loss) {
  DropSession();
  if (losses >= options.max_recoveries) return loss;
  std::fprintf(stderr, "weir: session lost, starting a new one: %s\n", loss.ToString().c_str());
  std::this_thread::sleep_for(options.recovery_pause * (1 << std::min(losses, 10)));
  ++losses;
  return absl::OkStatus();
}

// Calls End on every hook. Returns the first error.
absl::Status MonitoredSession::Impl::End() {
  absl::Status status;
  for (const auto& hook : options.hooks) {
    cached_global_step.reset();
    if (live) status.Update(hook->End(*this));
  }
  for (const auto& [directory, writer] : events) status.Update(writer->Close());
  Abandon();
  return status;
}

void MonitoredSession::Impl::Abandon() {
  closed = true;
  events.clear();
  read_global_step.reset();
  DropSession();
}

// ---- Steps.

struct MonitoredStep::Impl {
  // A step of the session with the caller's feeds and fetches plus those that hooks have added.
  struct Variant {
    Outputs feeds, fetches;
    Step step;
  };

  absl::Status Run(absl::Span<const Tensor> fed, Tensors* fetched, const RunOptions& options);
  absl::Status RunOnce(absl::Span<const Tensor> fed, Tensors* fetched, const RunOptions& options);
  absl::Status CallBeforeRun();
  absl::StatusOr<const Step*> FindOrPrepare();
  absl::Status CallAfterRun(absl::Span<const Tensor> values);

  std::shared_ptr<MonitoredSession::Impl> session;
  Outputs feeds, fetches;
  std::vector<Operation> targets;
  std::vector<Variant> variants;  // of the session of this generation
  int64_t generation = 0;
  // State of the current run: the feeds and fetches that hooks have added, and the number of
  // fetches of each hook.
  Outputs added_feeds, added_fetches;
  Tensors added_values, all_fed, all_fetched;
  std::vector<size_t> fetches_of;
};

absl::Status MonitoredStep::Impl::Run(absl::Span<const Tensor> fed, Tensors* fetched,
                                      const RunOptions& options) {
  MonitoredSession::Impl& s = *session;
  if (s.closed) return Closed();
  if (s.stop) return FailedPrecondition("Run called even after should_stop requested.");
  for (;;) {
    absl::Status status = s.live ? s.RunnersStatus() : s.Start();
    if (status.ok()) status = RunOnce(fed, fetched, options);
    if (!status.ok() && !s.RunnersStatus().ok()) status = s.RunnersStatus();
    s.cached_global_step.reset();
    if (status.ok()) s.losses = 0;
    if (absl::IsOutOfRange(status)) s.stop = true;
    if (!IsLoss(status) || !s.live) return status;
    WEIR_RETURN_IF_ERROR(s.Recover(status));
  }
}

absl::Status MonitoredStep::Impl::RunOnce(absl::Span<const Tensor> fed, Tensors* fetched,
                                          const RunOptions& options) {
  WEIR_RETURN_IF_ERROR(CallBeforeRun());
  WEIR_ASSIGN_OR_RETURN(const Step* const step, FindOrPrepare());
  session->cached_global_step.reset();
  if (added_feeds.empty() && added_fetches.empty()) {
    WEIR_RETURN_IF_ERROR(step->Run(fed, fetched, options));
    return CallAfterRun({});
  }
  if (fed.size() != feeds.size()) {
    return InvalidArgument("The step takes ", feeds.size(), " feeds but got ", fed.size());
  }
  all_fed.assign(fed.begin(), fed.end());
  all_fed.insert(all_fed.end(), added_values.begin(), added_values.end());
  WEIR_RETURN_IF_ERROR(step->Run(all_fed, &all_fetched, options));
  const auto own_end = all_fetched.begin() + static_cast<int64_t>(fetches.size());
  if (fetched != nullptr) fetched->assign(all_fetched.begin(), own_end);
  return CallAfterRun(absl::MakeConstSpan(all_fetched).subspan(fetches.size()));
}

absl::Status MonitoredStep::Impl::CallBeforeRun() {
  added_feeds.clear();
  added_fetches.clear();
  added_values.clear();
  fetches_of.clear();
  HookRequest request;
  for (const auto& hook : session->options.hooks) {
    request.feeds.clear();
    request.fetches.clear();
    WEIR_RETURN_IF_ERROR(hook->BeforeRun(*session, &request));
    for (const auto& [to, value] : request.feeds) {
      const bool by_user = std::find(feeds.begin(), feeds.end(), to) != feeds.end();
      if (by_user || std::find(added_feeds.begin(), added_feeds.end(), to) != added_feeds.end()) {
        return InvalidArgument(by_user ? "Same tensor is fed by a SessionHook and user: "
                                       : "Same tensor is fed by two hooks: ",
                               to.name());
      }
      added_feeds.push_back(to);
      added_values.push_back(value);
    }
    added_fetches.insert(added_fetches.end(), request.fetches.begin(), request.fetches.end());
    fetches_of.push_back(request.fetches.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<const Step*> MonitoredStep::Impl::FindOrPrepare() {
  if (generation != session->generation) variants.clear();
  generation = session->generation;
  for (const Variant& v : variants) {
    if (v.feeds == added_feeds && v.fetches == added_fetches) return &v.step;
  }
  Outputs all_feeds = feeds, all_fetches = fetches;
  all_feeds.insert(all_feeds.end(), added_feeds.begin(), added_feeds.end());
  all_fetches.insert(all_fetches.end(), added_fetches.begin(), added_fetches.end());
  WEIR_ASSIGN_OR_RETURN(Step step, session->live->Prepare(all_feeds, all_fetches, targets));
  variants.push_back({added_feeds, added_fetches, std::move(step)});
  return &variants.back().step;
}

absl::Status MonitoredStep::Impl::CallAfterRun(absl::Span<const Tensor> values) {
  size_t at = 0;
  for (size_t i = 0; i < fetches_of.size(); ++i) {
    const auto own = values.subspan(at, fetches_of[i]);
    WEIR_RETURN_IF_ERROR(session->options.hooks[i]->AfterRun(*session, own));
    at += fetches_of[i];
  }
  return absl::OkStatus();
}

absl::Status MonitoredStep::Run(absl::Span<const Tensor> feeds, Tensors* fetches,
                                const RunOptions& options) const {
  if (impl_ == nullptr)
    return FailedPrecondition(
        "uninitialized MonitoredStep; create it with MonitoredSession::Prepare()");
  return impl_->Run(feeds, fetches, options);
}

// ---- The session.

MonitoredSession::MonitoredSession(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
MonitoredSession::MonitoredSession(MonitoredSession&&) noexcept = default;
MonitoredSession& MonitoredSession::operator=(MonitoredSession&& other) noexcept {
  if (impl_ != nullptr && impl_ != other.impl_) impl_->Abandon();
  impl_ = std::move(other.impl_);
  return *this;
}
MonitoredSession::~MonitoredSession() {
  if (impl_ != nullptr) impl_->Abandon();
}

absl::StatusOr<MonitoredSession> MonitoredSession::Create(Graph& graph,
                                                          MonitoredSessionOptions options) {
  auto impl = std::make_shared<Impl>(graph, std::move(options));
  WEIR_RETURN_IF_ERROR(impl->Begin());
  return MonitoredSession(std::move(impl));
}

bool MonitoredSession::ShouldStop() const {
  // A runner that has lost the session does not end the training: the next step recovers.
  return impl_->stop || impl_->closed ||
         (impl_->runners != nullptr && impl_->runners->ShouldStop() &&
          !IsLoss(impl_->RunnersStatus()));
}

absl::StatusOr<Tensors> MonitoredSession::Run(const Feeds& feeds, const Outputs& fetches,
                                              const std::vector<Operation>& targets,
                                              const RunOptions& options) {
  MonitoredStep::Impl step;
  step.session = impl_;
  step.fetches = fetches;
  step.targets = targets;
  Tensors values;
  for (const auto& [to, value] : feeds) {
    step.feeds.push_back(to);
    values.push_back(value);
  }
  Tensors results;
  WEIR_RETURN_IF_ERROR(step.Run(values, &results, options));
  return results;
}

absl::StatusOr<MonitoredStep> MonitoredSession::Prepare(const Outputs& feeds,
                                                        const Outputs& fetches,
                                                        const std::vector<Operation>& targets) {
  if (impl_->closed) return Closed();
  MonitoredStep step;
  step.impl_ = std::make_shared<MonitoredStep::Impl>();
  step.impl_->session = impl_;
  step.impl_->feeds = feeds;
  step.impl_->fetches = fetches;
  step.impl_->targets = targets;
  if (impl_->live) WEIR_RETURN_IF_ERROR(step.impl_->FindOrPrepare().status());
  return step;
}

absl::StatusOr<Session*> MonitoredSession::session() {
  if (impl_->closed) return Closed();
  if (!impl_->live)
    return FailedPrecondition("the session was lost; the next run creates a new one");
  return &*impl_->live;
}

const Scaffold& MonitoredSession::scaffold() const { return impl_->options.scaffold; }

absl::Status MonitoredSession::Close() { return impl_->closed ? Closed() : impl_->End(); }

absl::StatusOr<MonitoredSession> MonitoredTrainingSession(Graph& graph,
                                                          TrainingSessionOptions options) {
  MonitoredSessionOptions made{.scaffold = std::move(options.scaffold),
                               .checkpoint_dir = options.checkpoint_dir,
                               .skip_damaged_checkpoints = options.skip_damaged_checkpoints,
                               .exact_resume = options.exact_resume,
                               .require_exact_resume = options.require_exact_resume,
                               .session = std::move(options.session),
                               .is_chief = options.is_chief,
                               .max_wait = options.max_wait,
                               .recheck_interval = options.recheck_interval,
                               .max_recoveries = options.max_recoveries,
                               .recovery_pause = options.recovery_pause};
  if (!options.is_chief) {
    made.hooks = std::move(options.hooks);
    return MonitoredSession::Create(graph, std::move(made));
  }
  const std::string& summaries =
      options.summary_dir.empty() ? options.checkpoint_dir : options.summary_dir;
  if (!summaries.empty() && options.log_step_count_steps > 0) {
    made.hooks.push_back(
        StepCounter({.directory = summaries, .period = {.steps = options.log_step_count_steps}}));
  }
  if (!summaries.empty() && !options.save_summaries.empty()) {
    made.hooks.push_back(SummarySaver({.directory = summaries, .period = options.save_summaries}));
  }
  if (!options.checkpoint_dir.empty() && !options.save_checkpoints.empty()) {
    made.hooks.push_back(
        CheckpointSaver({.directory = options.checkpoint_dir,
                         .period = options.save_checkpoints,
                         .mode = options.save_mode,
                         .exact_resume = options.exact_resume || options.require_exact_resume}));
  }
  made.hooks.insert(made.hooks.end(), options.hooks.begin(), options.hooks.end());
  return MonitoredSession::Create(graph, std::move(made));
}

}  // namespace weir
