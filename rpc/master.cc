#include "weir/rpc/master.h"

#include <algorithm>
#include <random>
#include <utility>

#include "weir/proto/master.pb.h"
#include "weir/rpc/lib/session_requests.h"
#include "weir/rpc/local_session.h"
#include "weir/rpc/reaper.h"
#include "weir/rpc/session_table.h"

namespace weir::rpc {

namespace {

uint64_t RandomNumber() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

absl::Status SessionNotFound(const std::string& handle) {
  return absl::AbortedError(absl::StrCat("Session ", handle, " is not found."));
}

// Checks what MasterSession cannot know before it is made, such as a graph.
template <class Response>
absl::Status CheckSize(const Response& response, const MasterOptions& options) {
  return options.max_response.Check(response.ByteSizeLong(), "The response of the step");
}

void WriteDevice(const ServerDevice& device, proto::DeviceAttributes* attributes) {
  attributes->set_name(device.name);
  attributes->set_device_type(device.type);
  attributes->set_memory_limit(device.memory_limit);
  attributes->set_incarnation(device.incarnation);
  attributes->set_physical_device_desc(device.description);
}

}  // namespace

Master::Master(MasterOptions options)
    : options_(std::move(options)),
      reaper_(std::make_unique<Reaper>()),
      sessions_(std::make_unique<Sessions>(
          SessionTableLimits{options_.max_sessions, options_.idle_limit, options_.orphan_limit})) {}

Master::~Master() { CloseAll(); }

void Master::JoinCluster(std::unique_ptr<SessionFactory> cluster) { cluster_ = std::move(cluster); }

absl::StatusOr<std::unique_ptr<Master>> Master::Create(MasterOptions options) {
  std::unique_ptr<Master> master(new Master(std::move(options)));
  const Graph empty;
  WEIR_ASSIGN_OR_RETURN(const Session session, Session::Create(empty, master->options_.session));
  for (const Device* device : session.devices()) {
    master->devices_.push_back({device->text(), device->name().type.value_or("CPU"),
                                device->Description(), device->memory_limit(), RandomNumber()});
  }
  return master;
}

std::shared_ptr<ResourceMap> Master::ResourcesOf(const std::shared_ptr<Client>& client) {
  const MutexLock lock(mutex_);
  std::shared_ptr<ResourceMap>& resources = resources_[client];
  if (resources == nullptr) resources = std::make_shared<ResourceMap>();
  return resources;
}

size_t Master::NumKept() const {
  const MutexLock lock(mutex_);
  return closed_sessions_.size();
}

absl::Status Master::CheckUnique(int64_t request_id, const char* method, const Call& call) {
  if (requests_.IsNew(call.client.get(), request_id)) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("The same ", method, " request was received twice: request_id ", request_id));
}

absl::StatusOr<std::unique_ptr<MasterSession>> Master::CreateLocalSession(
    const proto::CreateSessionRequest& request, Call& call) {
  SessionOptions options = options_.session;
  options.resources = ResourcesOf(call.client);
  options.operation_timeout = options_.default_step_limit;
  return LocalSession::Create(
      request.graph_def(), request.config(), std::move(options),
      {options_.graph_limits, options_.max_step_limit, options_.max_response,
       options_.step_memory_bytes},
      SessionMemory(call.client == nullptr ? nullptr : call.client->memory(),
                    options_.session_memory_bytes));
}

absl::Status Master::CreateSession(const proto::CreateSessionRequest& request, Call& call,
                                   proto::CreateSessionResponse* response) {
  // Before the work of creating a session.
  WEIR_RETURN_IF_ERROR(sessions_->CheckRoom(call.client, NumKept()));
  WEIR_ASSIGN_OR_RETURN(
      std::unique_ptr<MasterSession> created,
      cluster_ == nullptr ? CreateLocalSession(request, call) : cluster_->Create(request, call));
  const std::shared_ptr<MasterSession> session(
      created.release(), [this](MasterSession* closed) { reaper_->Destroy(closed); });
  WEIR_ASSIGN_OR_RETURN(const std::string handle,
                        sessions_->Add(session, call.client, call.connection, NumKept()));
  response->set_session_handle(handle);
  response->set_graph_version(session->graph_version());
  return absl::OkStatus();
}

absl::Status Master::ExtendSession(const proto::ExtendSessionRequest& request, Call& call,
                                   proto::ExtendSessionResponse* response) {
  const Sessions::Use session(*sessions_, request.session_handle(), call.client, call.connection);
  if (!session) return SessionNotFound(request.session_handle());
  WEIR_ASSIGN_OR_RETURN(const int64_t version,
                        session->Extend(request.graph_def(), request.current_graph_version()));
  response->set_new_graph_version(version);
  return absl::OkStatus();
}

absl::Status Master::PartialRunSetup(const proto::PartialRunSetupRequest& request, Call& call,
                                     proto::PartialRunSetupResponse* response) {
  WEIR_RETURN_IF_ERROR(CheckUnique(request.request_id(), "PartialRunSetup", call));
  const Sessions::Use session(*sessions_, request.session_handle(), call.client, call.connection);
  if (!session) return SessionNotFound(request.session_handle());
  WEIR_ASSIGN_OR_RETURN(*response->mutable_partial_run_handle(),
                        session->SetUpPartialRun(request, call));
  return absl::OkStatus();
}

absl::Status Master::RunStep(proto::RunStepRequest& request, Call& call,
                             proto::RunStepResponse* response) {
  WEIR_RETURN_IF_ERROR(CheckUnique(request.request_id(), "RunStep", call));
  const Sessions::Use session(*sessions_, request.session_handle(), call.client, call.connection);
  if (!session) return SessionNotFound(request.session_handle());
  absl::Status status = session->Run(request, call, response);
  if (status.ok()) status = CheckSize(*response, options_);
  if (status.ok() || !request.store_errors_in_response_body()) return status;
  response->clear_tensor();
  response->set_status_code(static_cast<proto::error::Code>(status.raw_code()));
  response->set_status_error_message(std::string(status.message()));
  return absl::OkStatus();
}

absl::Status Master::CloseSession(const proto::CloseSessionRequest& request, Call& call,
                                  proto::CloseSessionResponse*) {
  const Sessions::Removed removed = sessions_->Remove(request.session_handle(), call.client);
  if (removed.session == nullptr) return SessionNotFound(request.session_handle());
  Close(removed.session, removed.client);
  return absl::OkStatus();
}

absl::Status Master::ListDevices(const proto::ListDevicesRequest& request, Call& call,
                                 proto::ListDevicesResponse* response) {
  const auto write_local = [response](const std::vector<ServerDevice>& devices) {
    for (const ServerDevice& device : devices) WriteDevice(device, response->add_local_device());
  };
  const std::string& handle = request.session_handle();
  if (handle.empty()) {
    write_local(devices_);
    return absl::OkStatus();
  }
  const Sessions::Use session(*sessions_, handle, call.client, call.connection);
  if (!session) return InvalidArgument("Session ", handle, " is not found.");
  const std::vector<ServerDevice> local = session->local_devices();
  write_local(local.empty() ? devices_ : local);
  for (const ServerDevice& device : session->remote_devices())
    WriteDevice(device, response->add_remote_device());
  return absl::OkStatus();
}

absl::Status Master::Reset(const proto::ResetRequest& request, Call& call, proto::ResetResponse*) {
  for (const Sessions::Removed& removed : sessions_->RemoveAllOf(call.client))
    Close(removed.session, removed.client);
  ResourcesOf(call.client)->Reset({request.container().begin(), request.container().end()});
  if (cluster_ != nullptr) WEIR_RETURN_IF_ERROR(cluster_->Reset(request, call));
  std::vector<ClosedSession> unreferenced;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  std::erase_if(closed_sessions_, [&](ClosedSession& kept) {
    if (kept.client != call.client) return false;
    if (request.container().empty()) kept.containers.erase("");
    for (const std::string& container : request.container()) kept.containers.erase(container);
    if (!kept.containers.empty()) return false;
    unreferenced.push_back(std::move(kept));
    return true;
  });
  return absl::OkStatus();
}

absl::Status Master::MakeCallable(const proto::MakeCallableRequest& request, Call& call,
                                  proto::MakeCallableResponse* response) {
  WEIR_RETURN_IF_ERROR(CheckUnique(request.request_id(), "MakeCallable", call));
  const Sessions::Use session(*sessions_, request.session_handle(), call.client, call.connection);
  if (!session) return SessionNotFound(request.session_handle());
  WEIR_ASSIGN_OR_RETURN(const int64_t handle, session->MakeCallable(request.options(), call));
  response->set_handle(handle);
  return absl::OkStatus();
}

absl::Status Master::RunCallable(proto::RunCallableRequest& request, Call& call,
                                 proto::RunCallableResponse* response) {
  WEIR_RETURN_IF_ERROR(CheckUnique(request.request_id(), "RunCallable", call));
  const Sessions::Use session(*sessions_, request.session_handle(), call.client, call.connection);
  if (!session) return SessionNotFound(request.session_handle());
  WEIR_RETURN_IF_ERROR(session->RunCallable(request, call, response));
  return CheckSize(*response, options_);
}

absl::Status Master::ReleaseCallable(const proto::ReleaseCallableRequest& request, Call& call,
                                     proto::ReleaseCallableResponse*) {
  const Sessions::Use session(*sessions_, request.session_handle(), call.client, call.connection);
  if (!session) return SessionNotFound(request.session_handle());
  return session->ReleaseCallable(request.handle());
}

void Master::CloseIdleSessions(absl::FunctionRef<bool(const std::string& connection)> is_open) {
  for (const Sessions::Removed& removed : sessions_->RemoveIdle(is_open))
    Close(removed.session, removed.client);
}

void Master::Close(const std::shared_ptr<MasterSession>& session,
                   const std::shared_ptr<Client>& client) {
  session->Close();
  std::set<std::string> callers = session->ContainersHoldingFunctions();
  if (callers.empty()) return;
  const MutexLock lock(mutex_);
  closed_sessions_.push_back({session, client, std::move(callers)});
}

void Master::CloseAll() {
  for (const Sessions::Removed& removed : sessions_->RemoveAll())
    Close(removed.session, removed.client);
}

int Master::num_sessions() const { return sessions_->size(); }

}  // namespace weir::rpc
