#include "weir/rpc/cluster/cluster_task.h"

#include <future>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/config.pb.h"
#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/partial_steps.h"
#include "weir/rpc/cluster/worker_session.h"
#include "weir/rpc/lib/run_metadata.h"

namespace weir::rpc {

namespace {

absl::Status CheckNew(RequestNumbers& numbers, int64_t number, const char* method) {
  if (numbers.IsNew(nullptr, number)) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("The same ", method, " request was received twice."));
}

// Waits for a value. For what a step has sent, or will send before it ends.
absl::StatusOr<SentValue> ReceiveNow(Rendezvous& rendezvous, const RendezvousKey& key,
                                     Cancellation& cancellation) {
  std::promise<absl::StatusOr<SentValue>> promise;
  rendezvous.Receive(key, &cancellation, [&promise](absl::StatusOr<SentValue> received) {
    promise.set_value(std::move(received));
  });
  return promise.get_future().get();
}

absl::Status PutSent(proto::RunGraphRequest& request, Rendezvous& rendezvous) {
  for (proto::NamedTensorProto& sent : *request.mutable_send()) {
    WEIR_ASSIGN_OR_RETURN(const RendezvousKey key, RendezvousKey::Parse(sent.name()));
    WEIR_ASSIGN_OR_RETURN(Tensor value, TensorFromProto(std::move(*sent.mutable_tensor())));
    WEIR_RETURN_IF_ERROR(rendezvous.Send(key, {std::move(value), false}));
  }
  return absl::OkStatus();
}

absl::Status TakeReceived(const proto::RunGraphRequest& request, Rendezvous& rendezvous,
                          Cancellation& cancellation, proto::RunGraphResponse* response) {
  for (const std::string& name : request.recv_key()) {
    WEIR_ASSIGN_OR_RETURN(const RendezvousKey key, RendezvousKey::Parse(name));
    WEIR_ASSIGN_OR_RETURN(const SentValue received, ReceiveNow(rendezvous, key, cancellation));
    if (received.is_dead) return DeadFetchError(request.step_id(), name);
    proto::NamedTensorProto* out = response->add_recv();
    out->set_name(name);
    TensorToProtoContent(received.value, out->mutable_tensor());
  }
  return absl::OkStatus();
}

}  // namespace

ClusterTask::ClusterTask(const ClusterSpec& cluster, const TaskName& task,
                         std::vector<ServerDevice> devices, SessionOptions session,
                         const GraphLimits& limits)
    : cluster_(cluster),
      task_(task),
      session_options_(std::move(session)),
      limits_(limits),
      devices_(std::move(devices)),
      partial_steps_(std::make_unique<PartialSteps>()) {}

ClusterTask::~ClusterTask() { CloseAll(); }

absl::StatusOr<std::unique_ptr<ClusterTask>> ClusterTask::Create(const ClusterSpec& cluster,
                                                                 const TaskName& task,
                                                                 std::vector<ServerDevice> devices,
                                                                 SessionOptions session,
                                                                 const GraphLimits& limits) {
  if (cluster.AddressOf(task).empty())
    return InvalidArgument("Task ", task.ToString(), " is not in the cluster");
  session.task = task.ToString();
  return std::unique_ptr<ClusterTask>(
      new ClusterTask(cluster, task, std::move(devices), std::move(session), limits));
}

absl::Status ClusterTask::GetStatus(const proto::GetStatusRequest&, Call&,
                                    proto::GetStatusResponse* response) {
  for (const ServerDevice& device : devices_) {
    proto::DeviceAttributes* attributes = response->add_device_attributes();
    attributes->set_name(device.name);
    attributes->set_device_type(device.type);
    attributes->set_memory_limit(device.memory_limit);
    attributes->mutable_locality();
    attributes->set_incarnation(device.incarnation);
    attributes->set_xla_global_id(-1);
  }
  return absl::OkStatus();
}

absl::Status ClusterTask::CreateWorkerSession(const proto::CreateWorkerSessionRequest& request,
                                              Call&, proto::CreateWorkerSessionResponse*) {
  WorkerSessionOptions options;
  options.cluster = cluster_;
  options.task = task_;
  options.session = session_options_;
  options.limits = limits_;
  options.master_task = request.master_task();
  options.master_incarnation = request.master_incarnation();
  bool is_isolated = request.isolate_session_state();
  // The client has given the cluster, in which this task may have another name.
  if (request.server_def().cluster().job_size() > 0) {
    options.cluster = ClusterSpec::FromProto(request.server_def().cluster());
    options.task = {request.server_def().job_name(), request.server_def().task_index()};
    options.session.task = options.task.ToString();
    is_isolated = true;
  }
  options.shares_state = !is_isolated;
  if (is_isolated) options.session.resources = std::make_shared<ResourceMap>();
  options.session.own_resources = std::make_shared<ResourceMap>();
  auto session = std::make_shared<WorkerSession>(std::move(options));
  std::vector<std::shared_ptr<WorkerSession>> orphans;
  {
    const MutexLock lock(mutex_);
    // What a master left behind that was restarted since.
    std::erase_if(sessions_, [&](const auto& entry) {
      const WorkerSessionOptions& other = entry.second->options();
      if (request.master_task().empty() || other.master_task != request.master_task() ||
          other.master_incarnation == request.master_incarnation())
        return false;
      orphans.push_back(entry.second);
      return true;
    });
    sessions_[request.session_handle()] = std::move(session);
  }
  for (const std::shared_ptr<WorkerSession>& orphan : orphans) End(orphan);
  return absl::OkStatus();
}

void ClusterTask::End(const std::shared_ptr<WorkerSession>& session) {
  session->Close();
  std::set<std::string> holders = session->ContainersHoldingFunctions();
  if (holders.empty()) return;
  const MutexLock lock(mutex_);
  ended_sessions_.push_back({session, std::move(holders)});
}

absl::Status ClusterTask::DeleteWorkerSession(const proto::DeleteWorkerSessionRequest& request,
                                              Call&, proto::DeleteWorkerSessionResponse*) {
  std::shared_ptr<WorkerSession> session;
  {
    const MutexLock lock(mutex_);
    const auto found = sessions_.find(request.session_handle());
    if (found == sessions_.end()) return absl::OkStatus();
    session = std::move(found->second);
    sessions_.erase(found);
  }
  End(session);
  return absl::OkStatus();
}

std::shared_ptr<WorkerSession> ClusterTask::FindSession(const std::string& handle) {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(handle);
  return found == sessions_.end() ? nullptr : found->second;
}

absl::StatusOr<std::shared_ptr<GraphPart>> ClusterTask::FindPart(const std::string& session,
                                                                 const std::string& graph) {
  const std::shared_ptr<WorkerSession> found = FindSession(session);
  if (found == nullptr) {
    return absl::AbortedError(absl::StrCat("Session handle is not found: ", session,
                                           ". Possibly this worker (\"", task_.ToString(),
                                           "\") just restarted."));
  }
  std::shared_ptr<GraphPart> part = found->Find(graph);
  if (part != nullptr) return part;
  return absl::AbortedError(absl::StrCat("Graph handle is not found: ", graph,
                                         ". Possibly, this worker just restarted."));
}

absl::Status ClusterTask::RegisterGraph(proto::RegisterGraphRequest& request, Call&,
                                        proto::RegisterGraphResponse* response) {
  const std::shared_ptr<WorkerSession> session = FindSession(request.session_handle());
  if (session == nullptr) return FindPart(request.session_handle(), "").status();
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<GraphPart> part,
                        GraphPart::Create(request.mutable_graph_def(), session->options(),
                                          request.config_proto().allow_soft_placement()));
  std::string handle;
  {
    const MutexLock lock(mutex_);
    handle = absl::StrFormat("%016x", next_graph_++);
  }
  session->Add(handle, std::move(part));
  response->set_graph_handle(handle);
  return absl::OkStatus();
}

absl::Status ClusterTask::DeregisterGraph(const proto::DeregisterGraphRequest& request, Call&,
                                          proto::DeregisterGraphResponse*) {
  const std::shared_ptr<WorkerSession> session = FindSession(request.session_handle());
  if (session == nullptr || !session->Remove(request.graph_handle()))
    return FindPart(request.session_handle(), request.graph_handle()).status();
  return absl::OkStatus();
}

absl::Status ClusterTask::RunGraph(proto::RunGraphRequest& request, Call& call,
                                   proto::RunGraphResponse* response) {
  WEIR_RETURN_IF_ERROR(CheckNew(runs_, request.request_id(), "RunGraph (Worker)"));
  const std::shared_ptr<WorkerSession> session = FindSession(request.session_handle());
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<GraphPart> part,
                        FindPart(request.session_handle(), request.graph_handle()));
  const int64_t step_id = request.step_id();
  const std::shared_ptr<TaskStep> step = steps_.Find(step_id);
  const std::shared_ptr<LocalRendezvous> local(step, &step->exchange);
  const LinkedCancellation linked(&step->cancellation, call.cancellation);
  proto::RunOptions wanted;
  if (request.exec_opts().record_timeline()) wanted.set_trace_level(proto::RunOptions::FULL_TRACE);
  RunReport report(wanted);
  // Runs the part, and tells the tasks that wait for its values if it fails.
  const auto run = [this, session, part, local, step_id](RunOptions options) {
    StepExchange exchange(local, step_id, session->options().task, session->options().cluster,
                          peers_);
    options.rendezvous = &exchange;
    const absl::Status status = part->Run(options);
    if (!status.ok()) local->Abort(status);
    return status;
  };
  absl::Status status = PutSent(request, *local);
  if (status.ok() && request.is_partial()) {
    partial_steps_->Start(step_id, [run](Cancellation& cancellation) {
      return run({.cancellation = &cancellation});
    });
    status = TakeReceived(request, *local, call.cancellation, response);
    if (status.ok() && request.is_last_partial_run()) status = partial_steps_->Finish(step_id);
  } else if (status.ok()) {
    status = run(report.options(call.cancellation, std::chrono::milliseconds(0)));
    if (status.ok()) status = TakeReceived(request, *local, call.cancellation, response);
  }
  response->mutable_cost_graph();
  proto::RunMetadata metadata;
  report.WriteStatistics(part->session().devices(), &metadata);
  if (metadata.has_step_stats())
    response->mutable_step_stats()->Swap(metadata.mutable_step_stats());
  if (request.exec_opts().record_partition_graphs())
    ExportGraphDef(part->graph(), response->add_partition_graph());
  if (status.ok() || !request.store_errors_in_response_body()) return status;
  response->clear_recv();
  response->set_status_code(static_cast<proto::error::Code>(status.raw_code()));
  response->set_status_error_message(std::string(status.message()));
  return absl::OkStatus();
}

absl::Status ClusterTask::CleanupGraph(const proto::CleanupGraphRequest& request, Call&,
                                       proto::CleanupGraphResponse*) {
  steps_.Remove(request.step_id());
  partial_steps_->Cancel(request.step_id(),
                         absl::AbortedError(absl::StrCat("Cleanup ", request.step_id())));
  return absl::OkStatus();
}

absl::Status ClusterTask::CleanupAll(const proto::CleanupAllRequest& request, Call&,
                                     proto::CleanupAllResponse*) {
  if (session_options_.resources != nullptr)
    session_options_.resources->Reset({request.container().begin(), request.container().end()});
  std::vector<EndedSession> unreferenced;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  std::erase_if(ended_sessions_, [&](EndedSession& kept) {
    if (request.container().empty()) kept.function_holders.erase("");
    for (const std::string& container : request.container()) kept.function_holders.erase(container);
    if (!kept.function_holders.empty()) return false;
    unreferenced.push_back(std::move(kept));
    return true;
  });
  return absl::OkStatus();
}

absl::Status ClusterTask::Logging(const proto::LoggingRequest&, Call&, proto::LoggingResponse*) {
  return absl::OkStatus();
}

absl::Status ClusterTask::MarkRecvFinished(const proto::MarkRecvFinishedRequest&, Call&,
                                           proto::MarkRecvFinishedResponse*) {
  return absl::OkStatus();
}

// A session may know this task by another name: the local part of the device counts.
absl::Status ClusterTask::CheckIncarnation(const RendezvousKey& key) const {
  WEIR_ASSIGN_OR_RETURN(const DeviceName asked, DeviceName::Parse(key.send_device));
  for (const ServerDevice& device : devices_) {
    WEIR_ASSIGN_OR_RETURN(const DeviceName own, DeviceName::Parse(device.name));
    if (own.type != asked.type || own.id != asked.id) continue;
    if (device.incarnation == key.incarnation) return absl::OkStatus();
    return absl::AbortedError(absl::StrCat(
        "RecvTensor expects a different device incarnation: ", key.incarnation, " vs. ",
        device.incarnation, ". Your worker job (\"", task_.ToString(),
        "\") was probably restarted. Check your worker job for the reason why it was restarted."));
  }
  return InvalidArgument("Unknown device in the rendezvous key: ", key.text);
}

void ClusterTask::Receive(int64_t step_id, const std::string& key, int64_t request_id,
                          Cancellation* cancellation, Rendezvous::Done done) {
  const absl::StatusOr<RendezvousKey> parsed = RendezvousKey::Parse(key);
  absl::Status status = parsed.status();
  if (status.ok()) status = CheckIncarnation(*parsed);
  if (status.ok()) status = CheckNew(receives_, request_id, "RecvTensor (Worker)");
  if (!status.ok()) return done(status);
  steps_.Find(step_id)->exchange.Receive(*parsed, cancellation, std::move(done));
}

std::shared_ptr<LocalRendezvous> ClusterTask::Exchange(int64_t step_id) {
  const std::shared_ptr<TaskStep> step = steps_.Find(step_id);
  return {step, &step->exchange};
}

void ClusterTask::CloseAll() {
  std::map<std::string, std::shared_ptr<WorkerSession>> sessions;
  {
    const MutexLock lock(mutex_);
    sessions.swap(sessions_);
  }
  for (const auto& [handle, session] : sessions) End(session);
}

}  // namespace weir::rpc
