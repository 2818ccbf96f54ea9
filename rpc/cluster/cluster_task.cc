#include "weir/rpc/cluster/cluster_task.h"

#include <future>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/config.pb.h"
#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/partial_steps.h"
#include "weir/rpc/lib/run_metadata.h"
#include "weir/rpc/lib/session_requests.h"

namespace weir::rpc {

namespace {

absl::Status CheckNew(RequestNumbers& numbers, int64_t number, const char* method) {
  if (numbers.IsNew(nullptr, number)) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("The same ", method, " request was received twice."));
}

absl::Status NoGraph(const std::string& handle) {
  return absl::AbortedError(absl::StrCat("Graph handle is not found: ", handle,
                                         ". Possibly, this worker just restarted."));
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
    WEIR_ASSIGN_OR_RETURN(Tensor value, TakeFeed(key.edge, sent.mutable_tensor()));
    WEIR_RETURN_IF_ERROR(rendezvous.Send(key, {std::move(value), false}));
  }
  return absl::OkStatus();
}

absl::Status TakeReceived(const proto::RunGraphRequest& request, Rendezvous& rendezvous,
                          const ResponseLimit& limit, Call& call,
                          proto::RunGraphResponse* response) {
  std::vector<Tensor> values;
  for (const std::string& name : request.recv_key()) {
    WEIR_ASSIGN_OR_RETURN(const RendezvousKey key, RendezvousKey::Parse(name));
    WEIR_ASSIGN_OR_RETURN(SentValue received, ReceiveNow(rendezvous, key, call.cancellation));
    if (received.is_dead) return DeadFetchError(request.step_id(), name);
    values.push_back(std::move(received.value));
  }
  WEIR_RETURN_IF_ERROR(ReserveResponse(values, 0, limit, call));
  for (int i = 0; i < request.recv_key_size(); ++i) {
    proto::NamedTensorProto* out = response->add_recv();
    out->set_name(request.recv_key(i));
    TensorToProtoContent(values[i], out->mutable_tensor());
  }
  return absl::OkStatus();
}

}  // namespace

ClusterTask::ClusterTask(const ClusterSpec& cluster, const TaskName& task,
                         std::vector<ServerDevice> devices, MasterOptions options,
                         PeerOptions peers)
    : cluster_(cluster),
      task_(task),
      options_(std::move(options)),
      devices_(std::move(devices)),
      peers_(timer_, std::move(peers)),
      sessions_(steps_, options_.max_sessions, options_.idle_limit),
      partial_steps_(std::make_unique<PartialSteps>()) {}

ClusterTask::~ClusterTask() { CloseAll(); }

absl::StatusOr<std::unique_ptr<ClusterTask>> ClusterTask::Create(const ClusterSpec& cluster,
                                                                 const TaskName& task,
                                                                 std::vector<ServerDevice> devices,
                                                                 MasterOptions options,
                                                                 PeerOptions peers) {
  if (cluster.AddressOf(task).empty())
    return InvalidArgument("Task ", task.ToString(), " is not in the cluster");
  options.session.task = task.ToString();
  for (const auto& [job, addresses] : cluster.jobs()) {
    for (const auto& [index, address] : addresses) peers.addresses.insert(address);
  }
  // Only the master of a step knows whether its client has set a limit.
  options.session.operation_timeout = options.max_step_limit;
  return std::unique_ptr<ClusterTask>(
      new ClusterTask(cluster, task, std::move(devices), std::move(options), std::move(peers)));
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
                                              Call& call, proto::CreateWorkerSessionResponse*) {
  WorkerSessionOptions options;
  options.cluster = cluster_;
  options.task = task_;
  options.session = options_.session;
  options.limits = options_.graph_limits;
  options.master_task = request.master_task();
  options.master_incarnation = request.master_incarnation();
  options.client = call.client;
  options.memory = SessionMemory(MemoryQuota::ShareCurrent(), options_.session_memory_bytes);
  options.step_memory_bytes = options_.step_memory_bytes;
  // The client has given the cluster, in which this task may have another name.
  if (request.server_def().cluster().job_size() > 0) {
    options.cluster = ClusterSpec::FromProto(request.server_def().cluster());
    options.task = {request.server_def().job_name(), request.server_def().task_index()};
    options.session.task = options.task.ToString();
  }
  options.shares_state = !request.isolate_session_state();
  if (!options.shares_state) options.session.resources = std::make_shared<ResourceMap>();
  options.session.own_resources = std::make_shared<ResourceMap>();
  return sessions_.Add(request.session_handle(),
                       std::make_shared<WorkerSession>(std::move(options)));
}

absl::Status ClusterTask::DeleteWorkerSession(const proto::DeleteWorkerSessionRequest& request,
                                              Call& call, proto::DeleteWorkerSessionResponse*) {
  sessions_.Remove(request.session_handle(), call.client);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<WorkerSession>> ClusterTask::FindSession(const std::string& handle,
                                                                        const Call& call) {
  std::shared_ptr<WorkerSession> session = sessions_.Find(handle, call.client);
  if (session != nullptr) return session;
  return absl::AbortedError(absl::StrCat("Session handle is not found: ", handle,
                                         ". Possibly this worker (\"", task_.ToString(),
                                         "\") just restarted."));
}

absl::Status ClusterTask::RegisterGraph(proto::RegisterGraphRequest& request, Call& call,
                                        proto::RegisterGraphResponse* response) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<WorkerSession> session,
                        FindSession(request.session_handle(), call));
  const ScopedMemoryQuota of_session(session->options().memory.get());
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<GraphPart> part,
                        GraphPart::Create(request.mutable_graph_def(), session->options(),
                                          request.config_proto().allow_soft_placement()));
  const std::string handle = absl::StrFormat("%016x", next_graph_++);
  WEIR_RETURN_IF_ERROR(session->Add(handle, std::move(part)));
  response->set_graph_handle(handle);
  return absl::OkStatus();
}

absl::Status ClusterTask::DeregisterGraph(const proto::DeregisterGraphRequest& request, Call& call,
                                          proto::DeregisterGraphResponse*) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<WorkerSession> session,
                        FindSession(request.session_handle(), call));
  return session->Remove(request.graph_handle()) ? absl::OkStatus()
                                                 : NoGraph(request.graph_handle());
}

absl::Status ClusterTask::RunGraph(proto::RunGraphRequest& request, Call& call,
                                   proto::RunGraphResponse* response) {
  WEIR_RETURN_IF_ERROR(CheckNew(runs_, request.request_id(), "RunGraph (Worker)"));
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<WorkerSession> session,
                        FindSession(request.session_handle(), call));
  const std::shared_ptr<GraphPart> part = session->Find(request.graph_handle());
  if (part == nullptr) return NoGraph(request.graph_handle());
  proto::RunOptions wanted;
  if (request.exec_opts().record_timeline()) wanted.set_trace_level(proto::RunOptions::FULL_TRACE);
  RunReport report(wanted);
  const absl::Status status =
      RunPart(session, part, request, report.options(call.cancellation, options_.max_step_limit),
              call, response);
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

absl::Status ClusterTask::RunPart(const std::shared_ptr<WorkerSession>& session,
                                  const std::shared_ptr<GraphPart>& part,
                                  proto::RunGraphRequest& request, const RunOptions& options,
                                  Call& call, proto::RunGraphResponse* response) {
  const int64_t step_id = request.step_id();
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<TaskStep> step,
                        steps_.Join(step_id, request.session_handle()));
  const std::shared_ptr<LocalRendezvous> local(step, &step->exchange);
  const LinkedCancellation linked(&step->cancellation, call.cancellation);
  // Also for values that never come.
  std::optional<ScopedAlarm> end;
  if (const auto limit = options_.max_step_limit; limit.count() > 0) {
    end.emplace(timer_, Timer::Clock::now() + limit, [&call, limit] {
      call.cancellation.Cancel(absl::DeadlineExceededError(
          absl::StrCat("The step exceeded the time limit of ", limit.count(), " ms")));
    });
  }
  const std::shared_ptr<MemoryQuota> memory = session->MemoryOfStep();
  const ScopedMemoryQuota of_step(memory.get());
  // Runs the part, and tells the tasks that wait for its values if it fails.
  const auto run = [this, session, part, local, step_id, memory](RunOptions of_run) {
    const ScopedMemoryQuota of_part(memory.get());
    StepExchange exchange(local, step_id, session->options().task, session->options().cluster,
                          peers_);
    of_run.rendezvous = &exchange;
    const absl::Status status = part->Run(of_run);
    if (!status.ok()) local->Abort(status);
    return status;
  };
  const auto take = [&] {
    return TakeReceived(request, *local, options_.max_response, call, response);
  };
  WEIR_RETURN_IF_ERROR(PutSent(request, *local));
  if (!request.is_partial()) {
    WEIR_RETURN_IF_ERROR(run(options));
    return take();
  }
  WEIR_RETURN_IF_ERROR(partial_steps_->Start(
      step_id, [run](Cancellation& cancellation) { return run({.cancellation = &cancellation}); }));
  WEIR_RETURN_IF_ERROR(take());
  return request.is_last_partial_run() ? partial_steps_->Finish(step_id) : absl::OkStatus();
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
  const std::vector<std::string> containers = Names(request.container());
  if (options_.session.resources != nullptr) options_.session.resources->Reset(containers);
  sessions_.Forget(containers);
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
  const auto step = steps_.BeginWait(step_id);
  if (!step.ok()) return done(step.status());
  (*step)->exchange.Receive(*parsed, cancellation,
                            [this, step_id, done = std::move(done)](auto received) {
                              // Until `done` has returned: it runs in the exchange of the step.
                              const std::shared_ptr<TaskStep> kept = steps_.EndWait(step_id);
                              done(std::move(received));
                            });
}

std::shared_ptr<LocalRendezvous> ClusterTask::Exchange(int64_t step_id) {
  absl::StatusOr<std::shared_ptr<TaskStep>> step = steps_.Join(step_id, "");
  if (!step.ok()) {
    const absl::Status why = step.status();
    step = std::make_shared<TaskStep>();
    (*step)->exchange.Abort(why);
  }
  return {*step, &(*step)->exchange};
}

void ClusterTask::CloseAll() {
  sessions_.RemoveAll();
  steps_.RemoveAll();
}

}  // namespace weir::rpc
