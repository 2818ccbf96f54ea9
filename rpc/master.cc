#include "weir/rpc/master.h"

#include <random>

#include "absl/strings/str_format.h"
#include "weir/proto/master.pb.h"
#include "weir/rpc/master_session.h"
#include "weir/rpc/reaper.h"

namespace weir::rpc {

namespace {

constexpr size_t kRememberedRequests = 100'000;
// The maximum message size of protobuf and gRPC.
constexpr size_t kMaxResponseBytes = (size_t{1} << 31) - 1024;

uint64_t RandomNumber() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

absl::Status SessionNotFound(const std::string& handle) {
  return absl::AbortedError(absl::StrCat("Session ", handle, " is not found."));
}

template <class Response>
absl::Status CheckSize(const Response& response) {
  const size_t bytes = response.ByteSizeLong();
  if (bytes <= kMaxResponseBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("The fetched values take ", bytes, " bytes, but a response is limited to 2 GB"));
}

}  // namespace

// A session in use by one call.
class Master::ActiveSession {
 public:
  ActiveSession(Master& master, const std::string& handle, const Call& call)
      : master_(master), handle_(handle) {
    const MutexLock lock(master_.mutex_);
    const auto it = master_.sessions_.find(handle);
    if (it == master_.sessions_.end()) return;
    ++it->second.calls;
    it->second.connections.insert(call.connection);
    it->second.connected_at = Clock::now();
    session_ = it->second.session;
  }
  ~ActiveSession() {
    if (session_ == nullptr) return;
    const MutexLock lock(master_.mutex_);
    const auto it = master_.sessions_.find(handle_);
    if (it == master_.sessions_.end()) return;
    --it->second.calls;
    it->second.idle_since = Clock::now();
  }
  ActiveSession(const ActiveSession&) = delete;
  ActiveSession& operator=(const ActiveSession&) = delete;

  explicit operator bool() const { return session_ != nullptr; }
  MasterSession* operator->() const { return session_.get(); }

 private:
  Master& master_;
  const std::string handle_;
  std::shared_ptr<MasterSession> session_;
};

Master::Master(MasterOptions options)
    : options_(std::move(options)),
      resources_(std::make_shared<ResourceMap>()),
      reaper_(std::make_unique<Reaper>()) {}

Master::~Master() { CloseAll(); }

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

std::string Master::NewHandle() { return absl::StrFormat("%016x", RandomNumber()); }

// A request that a client or proxy retries must not run again.
absl::Status Master::CheckUnique(int64_t request_id, const char* method) {
  if (request_id == 0) return absl::OkStatus();
  const MutexLock lock(mutex_);
  if (!recent_requests_.insert(request_id).second) {
    return absl::AbortedError(
        absl::StrCat("The same ", method, " request was received twice: request_id ", request_id));
  }
  request_order_.push_back(request_id);
  if (request_order_.size() > kRememberedRequests) {
    recent_requests_.erase(request_order_.front());
    request_order_.pop_front();
  }
  return absl::OkStatus();
}

absl::Status Master::CheckRoom() const {
  if (sessions_.size() + closed_sessions_.size() < static_cast<size_t>(options_.max_sessions))
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("The server has reached its limit of ", options_.max_sessions, " sessions"));
}

absl::Status Master::CreateSession(const proto::CreateSessionRequest& request, Call& call,
                                   proto::CreateSessionResponse* response) {
  {  // before the work of creating a session
    const MutexLock lock(mutex_);
    WEIR_RETURN_IF_ERROR(CheckRoom());
  }
  SessionOptions options = options_.session;
  options.resources = resources_;
  options.operation_timeout = options_.default_step_limit;
  WEIR_ASSIGN_OR_RETURN(
      std::unique_ptr<MasterSession> created,
      MasterSession::Create(request.graph_def(), request.config(), std::move(options),
                            {options_.graph_limits, options_.max_step_limit}));
  const std::shared_ptr<MasterSession> session(
      created.release(), [this](MasterSession* closed) { reaper_->Destroy(closed); });
  const std::string handle = NewHandle();
  response->set_session_handle(handle);
  response->set_graph_version(session->graph_version());
  const MutexLock lock(mutex_);
  WEIR_RETURN_IF_ERROR(CheckRoom());
  const Clock::time_point now = Clock::now();
  sessions_[handle] = Entry{session, 0, now, {call.connection}, now};
  return absl::OkStatus();
}

absl::Status Master::ExtendSession(const proto::ExtendSessionRequest& request, Call& call,
                                   proto::ExtendSessionResponse* response) {
  const ActiveSession session(*this, request.session_handle(), call);
  if (!session) return SessionNotFound(request.session_handle());
  WEIR_ASSIGN_OR_RETURN(const int64_t version,
                        session->Extend(request.graph_def(), request.current_graph_version()));
  response->set_new_graph_version(version);
  return absl::OkStatus();
}

absl::Status Master::PartialRunSetup(const proto::PartialRunSetupRequest& request, Call& call,
                                     proto::PartialRunSetupResponse* response) {
  WEIR_RETURN_IF_ERROR(CheckUnique(request.request_id(), "PartialRunSetup"));
  const ActiveSession session(*this, request.session_handle(), call);
  if (!session) return SessionNotFound(request.session_handle());
  WEIR_ASSIGN_OR_RETURN(*response->mutable_partial_run_handle(), session->SetUpPartialRun(request));
  return absl::OkStatus();
}

absl::Status Master::RunStep(proto::RunStepRequest& request, Call& call,
                             proto::RunStepResponse* response) {
  WEIR_RETURN_IF_ERROR(CheckUnique(request.request_id(), "RunStep"));
  const ActiveSession session(*this, request.session_handle(), call);
  if (!session) return SessionNotFound(request.session_handle());
  absl::Status status = session->Run(request, call.cancellation, response);
  if (status.ok()) status = CheckSize(*response);
  if (status.ok() || !request.store_errors_in_response_body()) return status;
  response->clear_tensor();
  response->set_status_code(static_cast<proto::error::Code>(status.raw_code()));
  response->set_status_error_message(std::string(status.message()));
  return absl::OkStatus();
}

absl::Status Master::CloseSession(const proto::CloseSessionRequest& request, Call&,
                                  proto::CloseSessionResponse*) {
  std::shared_ptr<MasterSession> session;
  {
    const MutexLock lock(mutex_);
    const auto it = sessions_.find(request.session_handle());
    if (it == sessions_.end()) return SessionNotFound(request.session_handle());
    session = std::move(it->second.session);
    sessions_.erase(it);
  }
  Close(session);
  return absl::OkStatus();
}

absl::Status Master::ListDevices(const proto::ListDevicesRequest& request, Call& call,
                                 proto::ListDevicesResponse* response) {
  if (!request.session_handle().empty() && !ActiveSession(*this, request.session_handle(), call))
    return InvalidArgument("Session ", request.session_handle(), " is not found.");
  for (const DeviceInfo& device : devices_) {
    proto::DeviceAttributes* attributes = response->add_local_device();
    attributes->set_name(device.name);
    attributes->set_device_type(device.type);
    attributes->set_memory_limit(device.memory_limit);
    attributes->set_incarnation(device.incarnation);
    attributes->set_physical_device_desc(device.description);
  }
  return absl::OkStatus();
}

absl::Status Master::Reset(const proto::ResetRequest& request, Call&, proto::ResetResponse*) {
  CloseAll();
  resources_->Reset({request.container().begin(), request.container().end()});
  std::vector<std::shared_ptr<MasterSession>> unreferenced;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  std::erase_if(closed_sessions_, [&](auto& kept) {
    if (request.container().empty()) kept.second.erase("");
    for (const std::string& container : request.container()) kept.second.erase(container);
    if (kept.second.empty()) unreferenced.push_back(std::move(kept.first));
    return kept.second.empty();
  });
  return absl::OkStatus();
}

absl::Status Master::MakeCallable(const proto::MakeCallableRequest& request, Call& call,
                                  proto::MakeCallableResponse* response) {
  WEIR_RETURN_IF_ERROR(CheckUnique(request.request_id(), "MakeCallable"));
  const ActiveSession session(*this, request.session_handle(), call);
  if (!session) return SessionNotFound(request.session_handle());
  WEIR_ASSIGN_OR_RETURN(const int64_t handle, session->MakeCallable(request.options()));
  response->set_handle(handle);
  return absl::OkStatus();
}

absl::Status Master::RunCallable(proto::RunCallableRequest& request, Call& call,
                                 proto::RunCallableResponse* response) {
  WEIR_RETURN_IF_ERROR(CheckUnique(request.request_id(), "RunCallable"));
  const ActiveSession session(*this, request.session_handle(), call);
  if (!session) return SessionNotFound(request.session_handle());
  WEIR_RETURN_IF_ERROR(session->RunCallable(request, call.cancellation, response));
  return CheckSize(*response);
}

absl::Status Master::ReleaseCallable(const proto::ReleaseCallableRequest& request, Call& call,
                                     proto::ReleaseCallableResponse*) {
  const ActiveSession session(*this, request.session_handle(), call);
  if (!session) return SessionNotFound(request.session_handle());
  return session->ReleaseCallable(request.handle());
}

std::vector<std::shared_ptr<MasterSession>> Master::RemoveSessions(
    absl::FunctionRef<bool(const Entry&)> which) {
  std::vector<std::shared_ptr<MasterSession>> taken;
  const MutexLock lock(mutex_);
  std::erase_if(sessions_, [&](const auto& named) {
    if (!which(named.second)) return false;
    taken.push_back(named.second.session);
    return true;
  });
  return taken;
}

void Master::CloseIdleSessions(absl::FunctionRef<bool(const std::string& connection)> is_open) {
  const Clock::time_point now = Clock::now();
  {
    const MutexLock lock(mutex_);
    for (auto& [handle, entry] : sessions_) {
      std::erase_if(entry.connections, [&](const std::string& connection) {
        return !connection.empty() && !is_open(connection);
      });
      if (!entry.connections.empty()) entry.connected_at = now;
    }
  }
  const auto is_over = [now](std::chrono::milliseconds limit, Clock::time_point since) {
    return limit.count() > 0 && now - since > limit;
  };
  const auto idle = RemoveSessions([&](const Entry& entry) {
    return entry.calls == 0 && (is_over(options_.idle_limit, entry.idle_since) ||
                                is_over(options_.orphan_limit, entry.connected_at));
  });
  for (const auto& session : idle) Close(session);
}

void Master::Close(const std::shared_ptr<MasterSession>& session) {
  session->Close();
  std::set<std::string> callers = session->ContainersHoldingFunctions();
  if (callers.empty()) return;
  const MutexLock lock(mutex_);
  closed_sessions_.emplace_back(session, std::move(callers));
}

void Master::CloseAll() {
  for (const auto& session : RemoveSessions([](const Entry&) { return true; })) Close(session);
}

int Master::num_sessions() const {
  const MutexLock lock(mutex_);
  return static_cast<int>(sessions_.size());
}

}  // namespace weir::rpc
