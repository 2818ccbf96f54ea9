#include "weir/rpc/isolated_master.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_method.h>

#include <limits>
#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "weir/proto/master.pb.h"
#include "weir/rpc/lib/grpc_status.h"
#include "weir/rpc/lib/message_bytes.h"
#include "weir/rpc/worker_process.h"

namespace weir::rpc {

namespace {

using google::protobuf::internal::WireFormatLite;

// Field 1 of every request for a session is its handle.
constexpr int kHandleField = 1;
constexpr int kMaxHandleBytes = 64;

// Returns the handle in a request, or "". Skips what precedes it, usually nothing.
absl::StatusOr<std::string> HandleOf(grpc::ByteBuffer* request) {
  grpc::ProtoBufferReader reader(request);
  if (!reader.status().ok()) return InvalidArgument("Cannot read the request");
  google::protobuf::io::CodedInputStream in(&reader);
  in.SetTotalBytesLimit(std::numeric_limits<int>::max());
  while (const uint32_t tag = in.ReadTag()) {
    if (tag == WireFormatLite::MakeTag(kHandleField, WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) {
      uint32_t size = 0;
      std::string handle;
      if (!in.ReadVarint32(&size) || size > kMaxHandleBytes ||
          !in.ReadString(&handle, static_cast<int>(size)))
        return InvalidArgument("The request has no valid session handle");
      return handle;
    }
    if (!WireFormatLite::SkipField(&in, tag)) return InvalidArgument("Cannot parse the request");
  }
  return std::string();
}

// Appends a handle to a request. The last one in a message counts.
absl::Status AppendHandle(const std::string& handle, grpc::ByteBuffer* request) {
  std::vector<grpc::Slice> slices;
  const grpc::Status dumped = request->Dump(&slices);
  if (!dumped.ok()) return FromGrpc(dumped);
  const char head[] = {kHandleField << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED,
                       static_cast<char>(handle.size())};
  slices.emplace_back(std::string(head, sizeof head) + handle);
  *request = grpc::ByteBuffer(slices.data(), slices.size());
  return absl::OkStatus();
}

absl::Status SessionNotFound(const std::string& handle) {
  return absl::AbortedError(absl::StrCat("Session ", handle, " is not found."));
}

}  // namespace

// A session, and the process that runs it.
class IsolatedMaster::Session {
 public:
  Session(std::unique_ptr<WorkerProcess> process, std::shared_ptr<Client> client)
      : process_(std::move(process)), client_(std::move(client)) {}

  absl::Status Forward(const std::string& method, const grpc::ByteBuffer& request, Call& call,
                       grpc::ByteBuffer* response) {
    grpc::ClientContext context;
    int64_t token = 0;
    if (!call.cancellation.OnCancel([&context] { context.TryCancel(); }, &token))
      return call.cancellation.status();
    const std::string path = absl::StrCat("/tensorflow.MasterService/", method);
    const grpc::internal::RpcMethod rpc(path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC);
    const grpc::Status status =
        grpc::internal::BlockingUnaryCall(&process_->channel(), rpc, &context, request, response);
    call.cancellation.Unregister(token);
    ChargeCpu();
    if (call.cancellation.cancelled()) return call.cancellation.status();
    if (!status.ok() && is_closed_) return absl::CancelledError("Session has been closed.");
    // The worker itself never returns UNAVAILABLE for a call that it has received.
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return process_->HowItEnded();
    return FromGrpc(status);
  }

  void Close() {
    is_closed_ = true;
    ChargeCpu();
    process_->Kill();
  }

  // Charges the processor time since the last charge to the client.
  void ChargeCpu() {
    if (client_ == nullptr) return;
    const MutexLock lock(mutex_);
    const double used = process_->CpuSeconds();
    if (used <= charged_seconds_) return;
    client_->ChargeCpu(used - charged_seconds_);
    charged_seconds_ = used;
  }

  // The process's own handle of its session. Set before the session has an entry in the table.
  std::string handle;

 private:
  const std::unique_ptr<WorkerProcess> process_;
  const std::shared_ptr<Client> client_;  // may be null
  std::atomic<bool> is_closed_{false};
  Mutex mutex_;
  double charged_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
};

IsolatedMaster::IsolatedMaster(const MasterOptions& options, Program program)
    : program_(std::move(program)),
      sessions_({options.max_sessions, options.idle_limit, options.orphan_limit}) {}

IsolatedMaster::~IsolatedMaster() { CloseAll(); }

absl::StatusOr<std::unique_ptr<IsolatedMaster>> IsolatedMaster::Create(const MasterOptions& options,
                                                                       Program program) {
  std::unique_ptr<IsolatedMaster> master(new IsolatedMaster(options, std::move(program)));
  WEIR_ASSIGN_OR_RETURN(master->devices_, Master::Create(options));
  return master;
}

absl::Status IsolatedMaster::Run(const std::string& method, grpc::ByteBuffer* request, Call& call,
                                 grpc::ByteBuffer* response) {
  if (method == "CreateSession") return CreateSession(request, call, response);
  if (method == "Reset") {
    for (const auto& removed : sessions_.RemoveAllOf(call.client)) removed.session->Close();
    *response = ToBytes(proto::ResetResponse());
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(const std::string handle, HandleOf(request));
  if (method == "ListDevices") return ListDevices(handle, call, response);
  if (method == "CloseSession") {
    const auto removed = sessions_.Remove(handle, call.client);
    if (removed.session == nullptr) return SessionNotFound(handle);
    removed.session->Close();
    *response = ToBytes(proto::CloseSessionResponse());
    return absl::OkStatus();
  }
  const SessionTable<Session>::Use session(sessions_, handle, call.client, call.connection);
  if (!session) return SessionNotFound(handle);
  WEIR_RETURN_IF_ERROR(AppendHandle(session->handle, request));
  return session->Forward(method, *request, call, response);
}

absl::Status IsolatedMaster::CreateSession(grpc::ByteBuffer* request, Call& call,
                                           grpc::ByteBuffer* response) {
  // Sessions in creation count, since each is a process.
  const struct Creating {
    explicit Creating(std::atomic<size_t>* n) : count(n), others(n->fetch_add(1)) {}
    ~Creating() { count->fetch_sub(1); }
    std::atomic<size_t>* const count;
    const size_t others;
  } creating(&num_creating_);
  WEIR_RETURN_IF_ERROR(sessions_.CheckRoom(call.client, creating.others));
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<WorkerProcess> process,
                        WorkerProcess::Start(program_.path, program_.arguments));
  const auto session = std::make_shared<Session>(std::move(process), call.client);
  grpc::ByteBuffer bytes;
  WEIR_RETURN_IF_ERROR(session->Forward("CreateSession", *request, call, &bytes));
  proto::CreateSessionResponse created;
  if (!FromBytes(bytes, &created) || created.session_handle().size() > kMaxHandleBytes)
    return Internal("the process of the session has sent an invalid response");
  session->handle = created.session_handle();
  WEIR_ASSIGN_OR_RETURN(*created.mutable_session_handle(),
                        sessions_.Add(session, call.client, call.connection));
  *response = ToBytes(created);
  return absl::OkStatus();
}

absl::Status IsolatedMaster::ListDevices(const std::string& handle, Call& call,
                                         grpc::ByteBuffer* response) {
  if (!handle.empty() &&
      !SessionTable<Session>::Use(sessions_, handle, call.client, call.connection))
    return InvalidArgument("Session ", handle, " is not found.");
  proto::ListDevicesResponse devices;
  WEIR_RETURN_IF_ERROR(devices_->ListDevices(proto::ListDevicesRequest(), call, &devices));
  *response = ToBytes(devices);
  return absl::OkStatus();
}

void IsolatedMaster::CloseIdleSessions(
    absl::FunctionRef<bool(const std::string& connection)> is_open) {
  for (const auto& session : sessions_.All()) session->ChargeCpu();
  for (const auto& removed : sessions_.RemoveIdle(is_open)) removed.session->Close();
}

void IsolatedMaster::CloseAll() {
  for (const auto& removed : sessions_.RemoveAll()) removed.session->Close();
}

int IsolatedMaster::num_sessions() const { return sessions_.size(); }

}  // namespace weir::rpc
