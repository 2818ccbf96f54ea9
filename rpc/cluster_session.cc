#include "weir/rpc/cluster_session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "weir/core/graph/scope.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/master.pb.h"
#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/task_calls.h"
#include "weir/rpc/cluster_partial_run.h"
#include "weir/rpc/cluster_steps.h"
#include "weir/rpc/lib/run_metadata.h"
#include "weir/rpc/lib/session_requests.h"
#include "weir/rpc/session_table.h"

namespace weir::rpc {

namespace {

constexpr std::chrono::seconds kResetLimit(10);
// How often tasks that are not up are asked again, and named in the log.
constexpr std::chrono::milliseconds kAskAgain(200);
constexpr std::chrono::seconds kLogPeriod(10);

absl::Status FirstError(const std::vector<absl::Status>& statuses) {
  for (const absl::Status& status : statuses) WEIR_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

// The tasks that the filters leave, the own one first.
absl::StatusOr<std::vector<TaskName>> FilterTasks(const SessionCluster& cluster,
                                                  const proto::ConfigProto& config) {
  std::vector<DeviceName> filters;
  for (const std::string& filter : config.device_filters()) {
    WEIR_ASSIGN_OR_RETURN(filters.emplace_back(), DeviceName::Parse(filter));
  }
  std::vector<TaskName> tasks = {cluster.own};
  for (const auto& [job, addresses] : cluster.spec.jobs()) {
    for (const auto& [index, address] : addresses) {
      const DeviceName name = {.job = job, .type = {}, .replica = 0, .task = index, .id = {}};
      const bool is_left =
          filters.empty() || std::any_of(filters.begin(), filters.end(),
                                         [&](const auto& filter) { return filter.Matches(name); });
      if (is_left && TaskName{job, index} != cluster.own) tasks.push_back({job, index});
    }
  }
  return tasks;
}

// Asks the tasks for their status, and waits for those that are not up. A task whose connection
// fails for another reason, such as TLS, is an error.
absl::Status AskForStatus(const SessionCluster& cluster, const std::vector<TaskName>& names,
                          const Peers::AskOptions& options,
                          std::vector<proto::GetStatusResponse>* responses) {
  using Clock = std::chrono::steady_clock;
  const auto log = [&](size_t i, absl::string_view why) {
    std::fprintf(stderr, "weir: CreateSession still waiting for response from worker: %s %s\n",
                 names[i].ToString().c_str(), std::string(why).c_str());
  };
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point logged = begin;; std::this_thread::sleep_for(kAskAgain)) {
    if (options.cancellation->cancelled()) return options.cancellation->status();
    if (options.limit.count() > 0 && Clock::now() - begin >= options.limit)
      return absl::DeadlineExceededError("Deadline Exceeded");
    std::vector<proto::GetStatusRequest> requests(names.size());
    responses->clear();
    const std::vector<absl::Status> statuses =
        CallTasks(cluster, names, "GetStatus", &ClusterTask::GetStatus, requests, responses,
                  options, [&](size_t i) { log(i, "(no answer)"); });
    bool are_up = true;
    for (const absl::Status& status : statuses) {
      if (!status.ok() && !absl::IsUnavailable(status)) return status;
      are_up = are_up && status.ok();
    }
    if (are_up) return absl::OkStatus();
    if (Clock::now() - logged < kLogPeriod) continue;
    logged = Clock::now();
    for (size_t i = 0; i < names.size(); ++i) {
      if (!statuses[i].ok()) log(i, absl::StrCat("(", statuses[i].message(), ")"));
    }
  }
}

// The name of a task's device in a cluster where the task has this name.
absl::StatusOr<std::string> NameIn(const TaskName& task, const std::string& device) {
  WEIR_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(device));
  name.job = task.job;
  name.replica = 0;
  name.task = task.index;
  return name.ToString();
}

absl::StatusOr<std::vector<SessionTask>> FindDevices(const SessionCluster& cluster,
                                                     const std::vector<TaskName>& names,
                                                     const Peers::AskOptions& options) {
  std::vector<proto::GetStatusResponse> responses;
  WEIR_RETURN_IF_ERROR(AskForStatus(cluster, names, options, &responses));
  std::vector<SessionTask> tasks;
  for (size_t i = 0; i < names.size(); ++i) {
    SessionTask& task = tasks.emplace_back(SessionTask{names[i], {}});
    for (const proto::DeviceAttributes& device : responses[i].device_attributes()) {
      WEIR_ASSIGN_OR_RETURN(std::string name, NameIn(names[i], device.name()));
      task.devices.push_back({std::move(name), device.device_type(), device.physical_device_desc(),
                              device.memory_limit(), device.incarnation()});
    }
    if (task.devices.empty()) return Internal("Task ", names[i].ToString(), " has no devices");
  }
  return tasks;
}

// Whether a session has variables of its own on all tasks. In a cluster that the client has given
// it has, unless the client says otherwise.
bool IsIsolated(const proto::ConfigProto& config) {
  if (config.cluster_def().job_size() == 0) return config.isolate_session_state();
  return !config.experimental().share_session_state_in_clusterspec_propagation();
}

class ClusterSession final : public MasterSession {
 public:
  ClusterSession(SessionCluster cluster, std::vector<SessionTask> tasks,
                 const proto::ConfigProto& config, const MasterOptions& options,
                 std::shared_ptr<MemoryQuota> memory)
      : cluster_(std::move(cluster)),
        handle_(NewSessionHandle()),
        options_(options),
        memory_(std::move(memory)),
        steps_(cluster_, handle_, std::move(tasks), config, options.graph_limits),
        step_limit_(config.operation_timeout_in_ms() > 0
                        ? std::chrono::milliseconds(config.operation_timeout_in_ms())
                        : options.default_step_limit) {}

  ~ClusterSession() override {
    handles_.RemovePartialRuns();
    proto::DeleteWorkerSessionRequest request;
    request.set_session_handle(handle_);
    for (const SessionTask& task : steps_.tasks()) {
      NotifyTask<proto::DeleteWorkerSessionResponse>(cluster_, task.name, "DeleteWorkerSession",
                                                     &ClusterTask::DeleteWorkerSession, request);
    }
  }

  absl::Status Open(const proto::CreateSessionRequest& request, const Peers::AskOptions& options) {
    WEIR_RETURN_IF_ERROR(steps_.Begin(request.graph_def()));
    proto::CreateWorkerSessionRequest open;
    open.set_session_handle(handle_);
    open.set_isolate_session_state(IsIsolated(request.config()));
    open.set_master_task(cluster_.own.ToString());
    open.set_master_incarnation(static_cast<int64_t>(steps_.tasks()[0].host().incarnation));
    open.mutable_server_def()->set_protocol("grpc");
    *open.mutable_server_def()->mutable_default_session_config() = request.config();
    if (cluster_.is_of_client)
      *open.mutable_server_def()->mutable_cluster() = request.config().cluster_def();
    std::vector<proto::CreateWorkerSessionRequest> requests;
    const std::vector<TaskName> names = steps_.task_names();
    for (const TaskName& name : names) {
      open.mutable_server_def()->set_job_name(name.job);
      open.mutable_server_def()->set_task_index(name.index);
      requests.push_back(open);
    }
    std::vector<proto::CreateWorkerSessionResponse> responses;
    return FirstError(CallTasks(cluster_, names, "CreateWorkerSession",
                                &ClusterTask::CreateWorkerSession, requests, &responses, options));
  }

  int64_t graph_version() const override { return steps_.version(); }
  absl::StatusOr<int64_t> Extend(const proto::GraphDef& nodes, int64_t version) override {
    return steps_.Extend(nodes, version);
  }

  absl::Status Run(proto::RunStepRequest& request, Call& call,
                   proto::RunStepResponse* response) override {
    const std::shared_ptr<MemoryQuota> memory = StepMemory(memory_, options_.step_memory_bytes);
    const ScopedMemoryQuota of_step(memory.get());
    absl::StatusOr<Tensors> values = request.partial_run_handle().empty()
                                         ? RunFull(request, call, response)
                                         : RunPiece(request, call);
    if (!values.ok()) return values.status();
    WEIR_RETURN_IF_ERROR(
        ReserveResponse(*values, response->metadata().ByteSizeLong(), options_.max_response, call));
    for (int i = 0; i < request.fetch_size(); ++i) {
      proto::NamedTensorProto* const tensor = response->add_tensor();
      tensor->set_name(request.fetch(i));
      TensorToProto((*values)[i], tensor->mutable_tensor());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> SetUpPartialRun(const proto::PartialRunSetupRequest& request,
                                              Call& call) override {
    StepNames names = {Names(request.feed()), Names(request.fetch()), Names(request.target())};
    WEIR_ASSIGN_OR_RETURN(auto step, Prepare(names, call));
    return handles_.AddPartialRun(
        std::make_shared<ClusterPartialRun>(steps_, std::move(step), std::move(names), &closed_));
  }

  absl::StatusOr<int64_t> MakeCallable(const proto::CallableOptions& options, Call& call) override {
    auto callable = std::make_shared<Callable>();
    callable->names = {Names(options.feed()), Names(options.fetch()), Names(options.target())};
    for (const proto::TensorConnection& c : options.tensor_connection())
      callable->names.connections.emplace_back(c.from_tensor(), c.to_tensor());
    callable->options = options.run_options();
    WEIR_RETURN_IF_ERROR(Prepare(callable->names, call).status());
    return handles_.AddCallable(std::move(callable));
  }

  absl::Status RunCallable(proto::RunCallableRequest& request, Call& call,
                           proto::RunCallableResponse* response) override {
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const Callable> callable,
                          handles_.FindCallable(request.handle()));
    const std::shared_ptr<MemoryQuota> memory = StepMemory(memory_, options_.step_memory_bytes);
    const ScopedMemoryQuota of_step(memory.get());
    WEIR_ASSIGN_OR_RETURN(const Tensors feeds, TakeFeeds(callable->names.feeds, request));
    WEIR_ASSIGN_OR_RETURN(const Tensors values, RunStep(callable->names, feeds, callable->options,
                                                        call, response->mutable_metadata()));
    WEIR_RETURN_IF_ERROR(
        ReserveResponse(values, response->metadata().ByteSizeLong(), options_.max_response, call));
    for (const Tensor& value : values) TensorToProto(value, response->add_fetch());
    return absl::OkStatus();
  }

  absl::Status ReleaseCallable(int64_t handle) override { return handles_.RemoveCallable(handle); }

  std::vector<ServerDevice> local_devices() const override {
    return cluster_.is_of_client ? steps_.tasks()[0].devices : std::vector<ServerDevice>();
  }
  std::vector<ServerDevice> remote_devices() const override {
    std::vector<ServerDevice> devices;
    for (size_t i = 1; i < steps_.tasks().size(); ++i) {
      const SessionTask& task = steps_.tasks()[i];
      devices.insert(devices.end(), task.devices.begin(), task.devices.end());
    }
    return devices;
  }

  void Close() override {
    closed_.Cancel(
        absl::CancelledError("Step was cancelled by an explicit call to `Session::Close()`."));
  }

 private:
  struct Callable {
    StepNames names;
    proto::RunOptions options;
  };

  std::chrono::milliseconds LimitOf(std::chrono::milliseconds wanted) const {
    return ShorterLimit(wanted, options_.max_step_limit);
  }

  // Ends when the client leaves, too.
  absl::StatusOr<std::shared_ptr<const PreparedClusterStep>> Prepare(const StepNames& names,
                                                                     Call& call) {
    Cancellation ended;
    const LinkedCancellation by_client(&call.cancellation, ended), by_close(&closed_, ended);
    return steps_.Prepare(names, &ended, LimitOf(step_limit_));
  }

  absl::StatusOr<Tensors> RunStep(const StepNames& names, const Tensors& feeds,
                                  const proto::RunOptions& options, Call& call,
                                  proto::RunMetadata* metadata) {
    Cancellation ended;
    const LinkedCancellation by_client(&call.cancellation, ended), by_close(&closed_, ended);
    using std::chrono::milliseconds;
    const milliseconds given(options.timeout_in_ms());
    const milliseconds limit = LimitOf(given.count() > 0 ? given : step_limit_);
    const auto begin = std::chrono::steady_clock::now();
    WEIR_ASSIGN_OR_RETURN(const auto step, steps_.Prepare(names, &ended, limit));
    WEIR_RETURN_IF_ERROR(CheckFeeds(step->request.feeds, feeds));
    ClusterStep run(step->registered,
                    {.trace = options.trace_level() != proto::RunOptions::NO_TRACE,
                     .graphs = options.output_partition_graphs()},
                    &ended);
    const auto taken =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
    return run.Run(feeds, limit.count() > 0 ? std::max(limit - taken, milliseconds(1)) : limit,
                   metadata);
  }

  absl::StatusOr<Tensors> RunFull(proto::RunStepRequest& request, Call& call,
                                  proto::RunStepResponse* response) {
    StepNames names = {{}, Names(request.fetch()), Names(request.target())};
    Tensors feeds;
    WEIR_RETURN_IF_ERROR(TakeFeeds(request, &names.feeds, &feeds));
    return RunStep(names, feeds, request.options(), call, response->mutable_metadata());
  }

  absl::StatusOr<Tensors> RunPiece(proto::RunStepRequest& request, Call& call) {
    const std::string& handle = request.partial_run_handle();
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<ClusterPartialRun> run,
                          handles_.FindPartialRun(handle));
    std::vector<std::pair<std::string, Tensor>> feeds;
    for (proto::NamedTensorProto& feed : *request.mutable_feed()) {
      WEIR_ASSIGN_OR_RETURN(Tensor value, TakeFeed(feed.name(), feed.mutable_tensor()));
      feeds.emplace_back(feed.name(), std::move(value));
    }
    absl::StatusOr<Tensors> values = run->Run(std::move(feeds), Names(request.fetch()),
                                              Names(request.target()), &call.cancellation);
    if (run->is_over()) handles_.RemovePartialRun(handle);
    return values;
  }

  const SessionCluster cluster_;
  const std::string handle_;  // of the worker sessions
  const MasterOptions& options_;
  const std::shared_ptr<MemoryQuota> memory_;  // null: not limited
  Cancellation closed_;
  ClusterSteps steps_;
  const std::chrono::milliseconds step_limit_;  // of steps for which the client sets none
  SessionHandles<ClusterPartialRun, Callable> handles_;
};

// The cluster that the client has given: the master is the task at the address that the client has
// called. INVALID_ARGUMENT if there is not exactly one.
absl::StatusOr<SessionCluster> ClusterOfClient(ClusterTask& own, const proto::ClusterDef& def,
                                               absl::string_view target) {
  if (const size_t scheme = target.find("://"); scheme != absl::string_view::npos)
    target.remove_prefix(scheme + 3);
  SessionCluster cluster = {own, ClusterSpec::FromProto(def), {}, /*is_of_client=*/true};
  std::vector<TaskName> found;
  for (const auto& [job, addresses] : cluster.spec.jobs()) {
    for (const auto& [index, address] : addresses) {
      if (address == target) found.push_back({job, index});
    }
  }
  if (found.size() != 1) {
    return InvalidArgument(
        "ConfigProto.cluster_def: ", found.empty() ? "no task has" : "several tasks have",
        " the address of the session's target, '", target,
        "'; the master must be one task of the cluster");
  }
  cluster.own = found[0];
  return cluster;
}

class ClusterSessionFactory final : public SessionFactory {
 public:
  ClusterSessionFactory(ClusterTask& own, MasterOptions options)
      : own_(own), options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<MasterSession>> Create(const proto::CreateSessionRequest& request,
                                                        Call& call) override {
    const proto::ConfigProto& config = request.config();
    WEIR_ASSIGN_OR_RETURN(SessionCluster cluster,
                          config.cluster_def().job_size() == 0
                              ? OwnCluster()
                              : ClusterOfClient(own_, config.cluster_def(), request.target()));
    WEIR_ASSIGN_OR_RETURN(const std::vector<TaskName> names, FilterTasks(cluster, config));
    const Peers::AskOptions options = {
        .cancellation = &call.cancellation,
        .limit = std::chrono::milliseconds(std::max<int64_t>(config.operation_timeout_in_ms(), 0))};
    WEIR_ASSIGN_OR_RETURN(std::vector<SessionTask> tasks, FindDevices(cluster, names, options));
    std::shared_ptr<MemoryQuota> memory =
        SessionMemory(MemoryQuota::ShareCurrent(), options_.session_memory_bytes);
    const ScopedMemoryQuota of_session(memory.get());
    auto session = std::make_unique<ClusterSession>(std::move(cluster), std::move(tasks), config,
                                                    options_, std::move(memory));
    WEIR_RETURN_IF_ERROR(session->Open(request, options));
    return session;
  }

  absl::Status Reset(const proto::ResetRequest& request, Call& call) override {
    proto::ConfigProto filters;
    *filters.mutable_device_filters() = request.device_filters();
    WEIR_ASSIGN_OR_RETURN(const SessionCluster cluster, OwnCluster());
    WEIR_ASSIGN_OR_RETURN(const std::vector<TaskName> names, FilterTasks(cluster, filters));
    proto::CleanupAllRequest clean;
    *clean.mutable_container() = request.container();
    std::vector<proto::CleanupAllRequest> requests(names.size(), clean);
    std::vector<proto::CleanupAllResponse> responses;
    return FirstError(CallTasks(cluster, names, "CleanupAll", &ClusterTask::CleanupAll, requests,
                                &responses,
                                {.cancellation = &call.cancellation, .limit = kResetLimit}));
  }

 private:
  absl::StatusOr<SessionCluster> OwnCluster() {
    return SessionCluster{own_, own_.cluster(), own_.name()};
  }

  ClusterTask& own_;
  const MasterOptions options_;
};

}  // namespace

std::unique_ptr<SessionFactory> NewClusterSessionFactory(ClusterTask& own, MasterOptions options) {
  return std::make_unique<ClusterSessionFactory>(own, std::move(options));
}

}  // namespace weir::rpc
