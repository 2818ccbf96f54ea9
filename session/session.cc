#include "weir/session/session.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "weir/core/graph/scope.h"
#include "weir/core/runtime/float_mode.h"
#include "weir/core/tensor/exception.h"
#include "weir/core/tensor/mutex.h"
#include "weir/kernels/lib/backend.h"
#include "weir/kernels/lib/variable_access.h"
#include "weir/ops/framework/mirrored_variable.h"
#include "weir/session/partial_run.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/plan_request.h"
#include "weir/session/remote_session.h"
#include "weir/session/runtime/executor.h"
#include "weir/session/runtime/functions.h"
#include "weir/session/runtime/lru_cache.h"
#include "weir/session/runtime/prepared_step.h"
#include "weir/session/runtime/time_limited_step.h"
#include "weir/session/runtime/uninitialized.h"

namespace weir {

namespace {

// Returns the read of a variable that all fetches share, and builds it for the first one.
Output SharedRead(const Variable& v) {
  if (!v.valid()) return v;
  VariableInfo& info = *v.info();
  const bool has_copies = !v.replicas().empty();
  // Copies that are aggregated are read together; otherwise one copy stands for all.
  const bool aggregates = has_copies && !InReplicaScope(v.graph()) &&
                          v.synchronization() == VariableSynchronization::kOnRead;
  if (has_copies && !aggregates) return ReadReplicas(v, SharedRead);
  if (info.snapshot.valid() && !has_copies) return info.snapshot;
  if (!info.fetched.valid()) {
    const ClearControlDependencies no_controls(v.graph());
    info.fetched = has_copies ? ReadReplicas(v, SharedRead) : Output(v);
  }
  return info.fetched;
}

}  // namespace

Fetch::Fetch(const Variable& variable) : Output(SharedRead(variable)) {}

namespace {

// Distinct sets of feeds, fetches and targets; a small step takes 6 KB.
constexpr size_t kMaxCachedSteps = 1000;

absl::Status ClosedDuringRun() {
  return absl::CancelledError("Step was cancelled by an explicit call to `Session::Close()`.");
}

}  // namespace

struct Session::Impl : std::enable_shared_from_this<Session::Impl> {
  Impl(const Graph& g, SessionOptions o)
      : graph(g),
        options(std::move(o)),
        own_resources(options.own_resources != nullptr ? options.own_resources
                                                       : std::make_shared<ResourceMap>()),
        resources(*own_resources) {
    if (options.resources != nullptr) ShareState(resources, options.resources);
  }
  // Fetched handles may keep variables alive; their values are released here. Resources with
  // threads of their own (iterators, batchers) are destroyed before the functions that they call.
  ~Impl() {
    step_threads.WaitUntilIdle();
    if (options.own_resources != nullptr) return;
    for (const auto& variable : resources.All<VariableState>()) variable->Clear();
    resources.Reset({});
  }

  const Graph& graph;
  SessionOptions options;
  std::unique_ptr<ThreadPool> own_pool;
  ThreadPool* pool = nullptr;
  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<Placement> placement;
  std::unique_ptr<SessionFunctions> functions;  // outlives the resources that call functions
  const std::shared_ptr<ResourceMap> own_resources;
  ResourceMap& resources;                 // the session's own, linked to options.resources
  std::unique_ptr<RemoteSession> remote;  // null: steps run in this process
  // Held shared while reading parts of the graph that may grow.
  SharedMutex graph_mutex;
  std::atomic<bool> closed{false};
  std::atomic<int64_t> next_step_id{1};
  StepThreads step_threads;

  // The key of a prepared step: nodes and output numbers of feeds, fetches, targets, nodes already
  // run, and connections.
  using Key = std::vector<std::pair<const Node*, int>>;
  Mutex mutex;
  LruCache<Key, std::shared_ptr<Step::Impl>> steps ABSL_GUARDED_BY(mutex){kMaxCachedSteps};
  // Steps that a caller may still hold.
  std::vector<std::weak_ptr<Step::Impl>> evicted ABSL_GUARDED_BY(mutex);
  // By node: whether it is part of a prepared step.
  std::vector<bool> has_run ABSL_GUARDED_BY(mutex);
  // The number of Graph::changes() checked so far: none of them was to a node that had run.
  std::atomic<size_t> changes_seen{graph.changes().size()};

  const KernelRegistry& kernels() const {
    return options.kernels != nullptr ? *options.kernels : backends().kernels();
  }
  const BackendRegistry& backends() const {
    return options.backends != nullptr ? *options.backends : BuiltinBackends();
  }
  absl::Status CreateDevices();
  PlanEnvironment environment() {
    return PlanEnvironment{graph, graph_mutex, kernels(),  devices,        resources,
                           *pool, options,     *placement, functions.get()};
  }
  // Applies the session's default time limit to options without one.
  RunOptions WithTimeLimit(RunOptions run) const {
    if (run.timeout.count() <= 0) run.timeout = options.operation_timeout;
    if (run.timeout > kForever) run.timeout = {};
    return run;
  }
  // Returns a snapshot of all prepared steps. Callers that use them must not hold the mutex: a step
  // that is being compiled may wait for the graph mutex, whose holders may wait for this mutex.
  std::vector<std::shared_ptr<Step::Impl>> prepared_steps();
  absl::StatusOr<std::shared_ptr<Step::Impl>> Prepare(PlanRequest request);
  absl::Status CheckElements(const PlanRequest& request) const;
  absl::Status PrepareStep(PlanRequest request, Step::Impl* step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_SHARED_LOCKS_REQUIRED(graph_mutex);
  // Returns FAILED_PRECONDITION, from then on, if a node was changed after it had run.
  absl::Status CheckUnchanged() {
    if (graph.changes().size() == changes_seen.load(std::memory_order_relaxed))
      return absl::OkStatus();
    const MutexLock lock(mutex);
    return CheckChanges();
  }
  absl::Status CheckChanges() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
};

absl::Status Session::Impl::CheckChanges() {
  const std::vector<Graph::Change>& changes = graph.changes();
  for (; changes_seen < changes.size(); ++changes_seen) {
    const Graph::Change& change = changes[changes_seen];
    const auto id = static_cast<size_t>(change.node->id());
    if (id >= has_run.size() || !has_run[id]) continue;
    return FailedPrecondition("Operation '", change.node->name(), "' was changed by ", change.what,
                              " after it was run by a session. Either don't modify nodes after ",
                              "running them or create a new session.");
  }
  return absl::OkStatus();
}

namespace {

template <class T>
absl::Status CheckAlive(const std::vector<T>& handles, absl::string_view what) {
  for (const T& handle : handles) {
    if (handle.expired()) return FailedPrecondition(what, " belongs to a destroyed graph");
  }
  return absl::OkStatus();
}

}  // namespace

struct Step::Impl : std::enable_shared_from_this<Step::Impl> {
  Session::Impl* session = nullptr;        // outlives the step
  std::unique_ptr<PreparedStep> prepared;  // null: a server runs the request
  PlanRequest request;

  absl::Status Run(absl::Span<const Tensor> feeds, Tensors* fetches, const RunOptions& options) {
    if (session->closed.load(std::memory_order_acquire))
      return absl::CancelledError("Attempted to use a closed Session.");
    if (prepared == nullptr) return RunRemotely(feeds, fetches, options);
    WEIR_RETURN_IF_ERROR(session->CheckUnchanged());
    WEIR_RETURN_IF_ERROR(prepared->CheckFeeds(feeds));
    if (options.timeout.count() > 0) return RunWithLimit(feeds, fetches, options);
    return RunHere(feeds, fetches, options, nullptr);
  }

  // Sets the executor of `timed_step` while it runs, unless `timed_step` is null.
  absl::Status RunHere(absl::Span<const Tensor> feeds, Tensors* fetches, const RunOptions& options,
                       TimeLimitedStep* timed_step) {
    const auto run = [&](Executor& executor) {
      std::optional<ScopedFloatMode> flushing;
      if (executor.plan().flushes_subnormals) flushing.emplace(FloatMode::Current().Flushing());
      // A Close() after this check cancels the executor found above.
      if (session->closed.load(std::memory_order_acquire)) return ClosedDuringRun();
      const int64_t id = session->next_step_id.fetch_add(1, std::memory_order_relaxed);
      if (timed_step != nullptr) timed_step->Begin(&executor, id);
      std::optional<std::chrono::steady_clock::time_point> deadline;
      if (timed_step != nullptr) deadline = timed_step->deadline();
      absl::Status status = executor.Run(feeds, fetches, options, id, deadline);
      if (timed_step != nullptr) timed_step->Begin(nullptr, id);
      if (status.ok()) return status;
      // The graph is searched with Abseil's tables, also for a step that was cancelled.
      const ScopedCancellation none(nullptr);
      const ReaderLock lock(session->graph_mutex);
      const auto prepare = [this] {
        return PreparePlan(prepared->request(), session->environment());
      };
      return NameUninitialized(status, session->graph, prepare, session->resources);
    };
    return prepared->Run(feeds, [&](Executor& executor) {
      return CatchExceptions("The step", [&] { return run(executor); });
    });
  }

  absl::Status RunWithLimit(absl::Span<const Tensor> feeds, Tensors* fetches,
                            const RunOptions& options) {
    const auto step = std::make_shared<TimeLimitedStep>(feeds, options);
    session->step_threads.Run(step, [self = shared_from_this(), step] {
      const ScopedCancellation partial(step->options().cancellation);  // also during preparation
      step->End(self->RunHere(step->feeds(), step->fetches(), step->options(), step.get()));
    });
    return step->Wait(fetches, options);
  }

  absl::Status RunRemotely(absl::Span<const Tensor> feeds, Tensors* fetches,
                           const RunOptions& options) {
    if (feeds.size() != request.feeds.size()) {
      return InvalidArgument("The step takes ", request.feeds.size(), " feeds but got ",
                             feeds.size());
    }
    Tensors unwanted;
    return session->remote->Run({request.feeds, request.fetches, request.targets}, feeds,
                                fetches != nullptr ? fetches : &unwanted, options);
  }
};

absl::Status Step::Run(absl::Span<const Tensor> feeds, Tensors* fetches) const {
  return Run(feeds, fetches, RunOptions());
}

absl::Status Step::Run(absl::Span<const Tensor> feeds, Tensors* fetches,
                       const RunOptions& options) const {
  if (impl_ == nullptr)
    return FailedPrecondition("uninitialized Step; create it with Session::Prepare()");
  return impl_->Run(feeds, fetches, impl_->session->WithTimeLimit(options));
}

std::vector<std::shared_ptr<Step::Impl>> Session::Impl::prepared_steps() {
  const MutexLock lock(mutex);
  std::vector<std::shared_ptr<Step::Impl>> out;
  steps.ForEach([&](const std::shared_ptr<Step::Impl>& step) { out.push_back(step); });
  for (const std::weak_ptr<Step::Impl>& step : evicted) {
    if (std::shared_ptr<Step::Impl> alive = step.lock()) out.push_back(std::move(alive));
  }
  return out;
}

// A builder call that fails returns an invalid element and sets the graph's error. The error is
// returned only by steps that need such an element.
absl::Status Session::Impl::CheckElements(const PlanRequest& request) const {
  const auto is_none = [](const auto& element) { return element.node == nullptr; };
  const bool is_whole =
      absl::c_none_of(request.feeds, is_none) && absl::c_none_of(request.fetches, is_none) &&
      absl::c_none_of(request.targets, is_none) &&
      absl::c_none_of(request.connections, [&](const std::pair<Output, Output>& c) {
        return is_none(c.first) || is_none(c.second);
      });
  if (!is_whole) WEIR_RETURN_IF_ERROR(graph.status());
  WEIR_RETURN_IF_ERROR(CheckAlive(request.feeds, "A feed"));
  WEIR_RETURN_IF_ERROR(CheckAlive(request.fetches, "A fetch"));
  WEIR_RETURN_IF_ERROR(CheckAlive(request.targets, "A target"));
  for (const auto& [from, to] : request.connections)
    WEIR_RETURN_IF_ERROR(CheckAlive(Outputs{from, to}, "An end of a connection"));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Step::Impl>> Session::Impl::Prepare(PlanRequest request) {
  if (closed.load(std::memory_order_acquire))
    return absl::CancelledError("Attempted to use a closed Session.");
  const ReaderLock graph_lock(graph_mutex);
  WEIR_RETURN_IF_ERROR(CheckElements(request));
  Key key;
  for (const Output& o : request.feeds) key.emplace_back(o.node, o.index);
  key.emplace_back(nullptr, 0);
  for (const Output& o : request.fetches) key.emplace_back(o.node, o.index);
  key.emplace_back(nullptr, 0);
  for (const Operation& o : request.targets) key.emplace_back(o.node, 0);
  if (!request.done.empty()) key.emplace_back(nullptr, 0);
  for (const Node* node : request.done) key.emplace_back(node, 0);
  for (const auto& [from, to] : request.connections) {
    key.emplace_back(nullptr, 1);
    key.emplace_back(from.node, from.index);
    key.emplace_back(to.node, to.index);
  }
  const MutexLock lock(mutex);
  std::shared_ptr<Step::Impl> step;
  if (const std::shared_ptr<Step::Impl>* const kept = steps.Find(key)) {
    step = *kept;
  } else {
    step = std::make_shared<Step::Impl>();
    step->session = this;
    WEIR_RETURN_IF_ERROR(PrepareStep(std::move(request), step.get()));
    if (const auto old = steps.Insert(std::move(key), step)) {
      std::erase_if(evicted, [](const auto& other) { return other.expired(); });
      evicted.push_back(*old);
    }
  }
  // The returned pointer keeps both the session and the step alive.
  struct StepOwners {
    std::shared_ptr<Session::Impl> session;
    std::shared_ptr<Step::Impl> step;
  };
  const auto owners = std::make_shared<StepOwners>(StepOwners{shared_from_this(), std::move(step)});
  return std::shared_ptr<Step::Impl>(owners, owners->step.get());
}

struct PartialRun::Impl {
  Impl(std::shared_ptr<Session::Impl> of, PartialRunSplitter partial)
      : session(std::move(of)), splitter(std::move(partial)) {}

  const std::shared_ptr<Session::Impl> session;
  std::string remote_name;  // the server's handle of the run, if a server runs the pieces
  Mutex mutex;              // held while a piece runs
  PartialRunSplitter splitter ABSL_GUARDED_BY(mutex);
  std::atomic<bool> over{false};

  absl::StatusOr<Tensors> Run(const Feeds& feeds, const Outputs& fetches,
                              const std::vector<Operation>& targets, const RunOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    WEIR_ASSIGN_OR_RETURN(PartialStep piece, splitter.Next(feeds, fetches, targets));
    absl::StatusOr<Tensors> results = RunPiece(piece, feeds, fetches, targets, options);
    over = !results.ok() || splitter.is_over();
    return results;
  }

  absl::StatusOr<Tensors> RunPiece(const PartialStep& piece, const Feeds& feeds,
                                   const Outputs& fetches, const std::vector<Operation>& targets,
                                   const RunOptions& options) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Tensors values, results;
    if (session->remote != nullptr) {
      WEIR_RETURN_IF_ERROR(RunRemotely(feeds, fetches, targets, options, &results));
      // The server keeps the values that cross the cut.
      splitter.Finish(piece, Tensors(piece.request.fetches.size()));
      return results;
    }
    if (!piece.request.fetches.empty() || !piece.request.targets.empty()) {
      Step step;
      WEIR_ASSIGN_OR_RETURN(step.impl_, session->Prepare(piece.request));
      WEIR_RETURN_IF_ERROR(step.Run(piece.feeds, &values, options));
    }
    return splitter.Finish(piece, std::move(values));
  }

  absl::Status RunRemotely(const Feeds& feeds, const Outputs& fetches,
                           const std::vector<Operation>& targets, const RunOptions& options,
                           Tensors* results) {
    if (session->closed.load(std::memory_order_acquire))
      return absl::CancelledError("Attempted to use a closed Session.");
    Outputs fed;
    Tensors values;
    for (const auto& [to, value] : feeds) {
      fed.push_back(to);
      values.push_back(value);
    }
    return session->remote->Run({fed, fetches, targets, remote_name}, values, results,
                                session->WithTimeLimit(options));
  }
};

absl::StatusOr<Tensors> PartialRun::Run(const Feeds& feeds, const Outputs& fetches,
                                        const std::vector<Operation>& targets,
                                        const RunOptions& options) {
  if (impl_ == nullptr)
    return FailedPrecondition(
        "uninitialized PartialRun; create it with Session::StartPartialRun()");
  const MutexLock lock(impl_->mutex);
  if (impl_->over) return InvalidArgument("The partial run is over.");
  return impl_->Run(feeds, fetches, targets, options);
}

bool PartialRun::is_over() const { return impl_ == nullptr || impl_->over; }

absl::Status Session::Impl::PrepareStep(PlanRequest request, Step::Impl* step) {
  if (remote != nullptr) {
    if (!request.connections.empty())
      return Unimplemented("Sessions on a server do not support connections");
    WEIR_RETURN_IF_ERROR(
        PruneGraph(request, graph).status());  // rejects elements that are not in the graph
    step->request = std::move(request);
    return absl::OkStatus();
  }
  WEIR_RETURN_IF_ERROR(CheckChanges());  // earlier changes do not affect the new step
  WEIR_ASSIGN_OR_RETURN(step->prepared, PreparedStep::Make(std::move(request), environment()));
  graph.KeepChanges();
  has_run.resize(static_cast<size_t>(graph.num_nodes()));
  for (const PlanNode& node : step->prepared->graph().nodes) {
    if (node.kind == PlanNode::Kind::kOp && &node.node->graph() == &graph)
      has_run[static_cast<size_t>(node.node->id())] = true;
  }
  return absl::OkStatus();
}

Session::Session(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() {
  if (impl_ == nullptr) return;
  Close();
  impl_->step_threads.WaitUntilIdle();  // steps beyond their time limit still read the graph
}

absl::Status Session::Impl::CreateDevices() {
  WEIR_ASSIGN_OR_RETURN(const DeviceName task, DeviceName::Parse(options.task));
  if (task.type || task.id) {
    return InvalidArgument("'", options.task, "' names a device; a task is named as '/job:",
                           task.job.value_or("worker"), "/replica:0/task:0'");
  }
  devices.push_back(NewCpuDevice(task));
  std::vector<std::unique_ptr<Device>> others;
  if (options.make_devices) {
    others = options.make_devices();
  } else {
    WEIR_ASSIGN_OR_RETURN(others, backends().CreateDevices(task));
  }
  std::move(others.begin(), others.end(), std::back_inserter(devices));
  return absl::OkStatus();
}

absl::StatusOr<Session> Session::Create(const Graph& graph, SessionOptions options) {
  WEIR_RETURN_IF_ERROR(graph.status());
  WEIR_ASSIGN_OR_RETURN(options.disable, ResolveOptimizations(options.disable));
  constexpr int kMaxThreads = 1024;
  if (options.num_threads < 0 || options.num_threads > kMaxThreads) {
    return InvalidArgument("SessionOptions::num_threads must be between 0 (one per processor) and ",
                           kMaxThreads, ", got ", options.num_threads);
  }
  auto impl = std::make_shared<Impl>(graph, std::move(options));
  if (!impl->options.target.empty()) {
    WEIR_ASSIGN_OR_RETURN(impl->remote, ConnectSession(impl->graph, impl->options));
    impl->pool = &DefaultThreadPool();
    return Session(std::move(impl));
  }
  if (impl->options.num_threads > 0) {
    impl->own_pool = std::make_unique<ThreadPool>(impl->options.num_threads);
    impl->pool = impl->own_pool.get();
  } else {
    impl->pool = &DefaultThreadPool();
  }
  WEIR_RETURN_IF_ERROR(impl->CreateDevices());
  impl->placement =
      std::make_unique<Placement>(impl->graph, impl->kernels(), impl->devices, impl->options);
  impl->functions = std::make_unique<SessionFunctions>(impl->environment());
  return Session(std::move(impl));
}

absl::StatusOr<Tensors> Session::Run(const Feeds& feeds, const Fetches& fetches,
                                     const std::vector<Operation>& targets,
                                     const RunOptions& options) {
  PlanRequest request{.fetches = fetches.outputs(), .targets = targets};
  Tensors values;
  for (const auto& [to, value] : feeds) {
    request.feeds.push_back(to);
    values.push_back(value);
  }
  Step step;
  WEIR_ASSIGN_OR_RETURN(step.impl_, impl_->Prepare(std::move(request)));
  Tensors results;
  WEIR_RETURN_IF_ERROR(step.Run(values, &results, options));
  return results;
}

absl::StatusOr<Tensors> Session::Run(const std::vector<std::pair<std::string, Tensor>>& feeds,
                                     const std::vector<std::string>& fetches,
                                     const std::vector<std::string>& targets,
                                     const RunOptions& options) {
  std::vector<std::string> names;
  Tensors values;
  for (const auto& [name, value] : feeds) {
    names.push_back(name);
    values.push_back(value);
  }
  WEIR_ASSIGN_OR_RETURN(const Step step, Prepare(names, fetches, targets));
  Tensors results;
  WEIR_RETURN_IF_ERROR(step.Run(values, &results, options));
  return results;
}

absl::StatusOr<Step> Session::Prepare(const Outputs& feeds, const Fetches& fetches,
                                      const std::vector<Operation>& targets,
                                      const Connections& connections) {
  Step step;
  WEIR_ASSIGN_OR_RETURN(step.impl_, impl_->Prepare({.feeds = feeds,
                                                    .fetches = fetches.outputs(),
                                                    .targets = targets,
                                                    .connections = connections}));
  return step;
}

absl::StatusOr<Step> Session::Prepare(const std::vector<std::string>& feeds,
                                      const std::vector<std::string>& fetches,
                                      const std::vector<std::string>& targets,
                                      const NamedConnections& connections) {
  PlanRequest request;
  {
    const ReaderLock lock(impl_->graph_mutex);
    WEIR_ASSIGN_OR_RETURN(request, FindByName(impl_->graph, feeds, fetches, targets, connections));
  }
  Step step;
  WEIR_ASSIGN_OR_RETURN(step.impl_, impl_->Prepare(std::move(request)));
  return step;
}

absl::StatusOr<PartialRun> Session::StartPartialRun(const Outputs& feeds, const Outputs& fetches,
                                                    const std::vector<Operation>& targets) {
  if (fetches.empty() && targets.empty())
    return InvalidArgument("PartialRunSetup: specify at least one target to fetch or execute.");
  PlanRequest request{.feeds = feeds, .fetches = fetches, .targets = targets};
  PartialRun run;
  {
    const ReaderLock lock(impl_->graph_mutex);
    WEIR_ASSIGN_OR_RETURN(PartialRunSplitter splitter,
                          PartialRunSplitter::Make(std::move(request), impl_->graph));
    run.impl_ = std::make_shared<PartialRun::Impl>(impl_, std::move(splitter));
  }
  if (impl_->remote != nullptr) {
    WEIR_ASSIGN_OR_RETURN(run.impl_->remote_name,
                          impl_->remote->SetUpPartialRun({feeds, fetches, targets}));
  }
  return run;
}

absl::Status Session::Extend(const std::function<absl::Status()>& add) {
  const WriterLock lock(impl_->graph_mutex);
  return add();
}

const Graph& Session::graph() const { return impl_->graph; }
ResourceMap& Session::resources() { return impl_->resources; }
ThreadPool& Session::pool() { return *impl_->pool; }

std::vector<Device*> Session::devices() const {
  std::vector<Device*> out;
  for (const auto& device : impl_->devices) out.push_back(device.get());
  return out;
}

void Session::Reset(const std::vector<std::string>& containers) {
  if (impl_->remote != nullptr) return impl_->remote->Reset(containers).IgnoreError();
  impl_->resources.Reset(containers);
  SharedState(impl_->resources).Reset(containers);
  impl_->functions->Forget();
  for (const auto& step : impl_->prepared_steps()) step->prepared->Forget();
}

void Session::Close() {
  if (impl_->closed.exchange(true)) return;
  if (impl_->remote != nullptr) return impl_->remote->Close();
  for (const auto& step : impl_->prepared_steps()) step->prepared->Cancel(ClosedDuringRun());
}

}  // namespace weir
