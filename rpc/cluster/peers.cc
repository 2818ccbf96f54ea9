#include "weir/rpc/cluster/peers.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/client_callback.h>

#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/sent_value.h"
#include "weir/rpc/lib/grpc_status.h"
#include "weir/rpc/lib/message_bytes.h"

namespace weir::rpc {

namespace {

constexpr int kReconnectMs = 1000;
// Clients may name any number of addresses (ConfigProto.cluster_def).
constexpr size_t kMaxChannels = 1000;

std::string PathOf(absl::string_view method) {
  return absl::StrCat("/tensorflow.WorkerService/", method);
}

// Replaces the error of a connection by one that says what is wrong with the other task, and that
// no repetition mends.
absl::Status ExplainTls(const absl::Status& status, const PeerTask& task) {
  if (!absl::IsUnavailable(status)) return status;
  const auto says = [&](absl::string_view words) {
    return absl::StrContains(status.message(), words);
  };
  if (says("wrong version number")) {
    return FailedPrecondition(task.name, " at ", task.address,
                              " speaks no TLS, as the tasks of this cluster must (weir serve "
                              "--tls-cert; TensorFlow's servers cannot): ",
                              status.message());
  }
  if (says("SSL_ERROR_SSL") || says("is not in peer certificate")) {
    return FailedPrecondition("The certificate of ", task.name, " at ", task.address,
                              " is not one of its name from the authority that this task trusts "
                              "(weir serve --tls-server-ca): ",
                              status.message());
  }
  return status;
}

// Whether gRPC has cancelled the call, and not the task's own code: then the server of the task is
// being stopped.
bool IsDropped(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::CANCELLED &&
         (status.error_message().empty() || status.error_message() == "CANCELLED");
}

// A call in progress. It owns itself until the answer has come.
struct PeerCall : std::enable_shared_from_this<PeerCall> {
  PeerTask task;
  bool uses_tls = false;
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  grpc::ByteBuffer request, response;
  Cancellation* cancellation = nullptr;
  int64_t token = 0;
  std::shared_ptr<PeerWatch> watch;  // null: does not watch
  PeerWait wait;
  int64_t watched = 0;
  Mutex mutex;
  absl::Status ended ABSL_GUARDED_BY(mutex);  // by the watch

  // Calls `finish` once, with the status of what ended the call.
  void Start(const std::string& path, std::function<void(const absl::Status&)> finish) {
    const auto cancel = [call = shared_from_this()] { call->context.TryCancel(); };
    if (cancellation != nullptr && !cancellation->OnCancel(cancel, &token))
      return finish(cancellation->status());
    Watch();
    const grpc::internal::RpcMethod method(path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC,
                                           channel);
    grpc::internal::CallbackUnaryCall(
        channel.get(), method, &context, &request, &response,
        [call = shared_from_this(), finish = std::move(finish)](const grpc::Status& status) {
          if (call->watch != nullptr) call->watch->End(call->watched);
          if (call->cancellation != nullptr) call->cancellation->Unregister(call->token);
          finish(call->StatusOf(status));
        });
  }

 private:
  void Watch() {
    if (watch == nullptr) return;
    wait.task = task;
    wait.end = [weak = weak_from_this()](const absl::Status& why) {
      const std::shared_ptr<PeerCall> call = weak.lock();
      if (call == nullptr) return;
      {
        const MutexLock lock(call->mutex);
        call->ended = why;
      }
      call->context.TryCancel();
    };
    watched = watch->Begin(std::move(wait));
  }

  // A call that fails by itself while it is being cancelled tells more than the cancellation.
  absl::Status StatusOf(const grpc::Status& status) {
    if (status.error_code() == grpc::StatusCode::CANCELLED) {
      if (cancellation != nullptr && cancellation->cancelled()) return cancellation->status();
      const MutexLock lock(mutex);
      if (!ended.ok()) return ended;
    }
    if (IsDropped(status)) {
      return absl::UnavailableError(
          absl::StrCat("The server of ", task.name, " at ", task.address, " has dropped the call"));
    }
    return uses_tls ? ExplainTls(FromGrpc(status), task) : FromGrpc(status);
  }
};

}  // namespace

int64_t NewRequestId() {
  thread_local std::mt19937_64 numbers(std::random_device{}());
  return static_cast<int64_t>(numbers() >> 1 | 1);
}

// The channels to other tasks, by address. Thread-safe.
class Peers::Connections {
 public:
  explicit Connections(PeerOptions options) : options_(std::move(options)) {}

  void ReplaceTlsFiles(const std::string& authority, const std::string& certificate,
                       const std::string& key) {
    const MutexLock lock(mutex_);
    options_.authority = authority;
    options_.certificate = certificate;
    options_.key = key;
    for (Channels* const channels : {&calls_, &probes_}) channels->clear();
  }

  // Returns a call that has not started. A probe has a connection of its own: whether that of the
  // calls is busy does not matter.
  std::shared_ptr<PeerCall> NewCall(const PeerTask& task,
                                    const google::protobuf::MessageLite& request,
                                    bool is_probe = false) {
    auto call = std::make_shared<PeerCall>();
    call->task = task;
    call->request = ToBytes(request);
    const MutexLock lock(mutex_);
    call->channel = ChannelTo(task.address, is_probe);
    call->uses_tls = !options_.authority.empty();
    if (!options_.token.empty() && (call->uses_tls || options_.addresses.contains(task.address)))
      call->context.AddMetadata("authorization", absl::StrCat("Bearer ", options_.token));
    return call;
  }

  // Tells the task that a value has arrived.
  void Acknowledge(const PeerTask& task, int64_t request_id) {
    proto::MarkRecvFinishedRequest request;
    request.set_request_id(request_id);
    NewCall(task, request)->Start(PathOf("MarkRecvFinished"), [](const absl::Status&) {});
  }

 private:
  using Channels = std::map<std::string, std::shared_ptr<grpc::Channel>>;

  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address, bool is_probe)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Channels& channels = is_probe ? probes_ : calls_;
    if (channels.size() >= kMaxChannels) channels.clear();  // calls in progress keep theirs
    std::shared_ptr<grpc::Channel>& channel = channels[address];
    if (channel != nullptr) return channel;
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
    if (is_probe) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const std::shared_ptr<grpc::ChannelCredentials> credentials =
        options_.authority.empty()
            ? grpc::InsecureChannelCredentials()
            : grpc::SslCredentials({options_.authority, options_.key, options_.certificate});
    return channel = grpc::CreateCustomChannel(address, credentials, arguments);
  }

  Mutex mutex_;
  PeerOptions options_ ABSL_GUARDED_BY(mutex_);
  Channels calls_ ABSL_GUARDED_BY(mutex_), probes_ ABSL_GUARDED_BY(mutex_);
};

Peers::Peers(Timer& timer, PeerOptions options)
    : connections_(std::make_shared<Connections>(options)),
      watch_(std::make_shared<PeerWatch>(
          timer, options.timeout,
          [connections = connections_](const PeerTask& task, std::chrono::milliseconds limit,
                                       const PeerWatch::Answered& answered) {
            const auto call =
                connections->NewCall(task, proto::GetStatusRequest(), /*is_probe=*/true);
            call->context.set_wait_for_ready(true);
            call->context.set_deadline(std::chrono::system_clock::now() + limit);
            call->Start(PathOf("GetStatus"), [call = call.get(),
                                              answered](const absl::Status& status) {
              proto::GetStatusResponse response;
              if (!status.ok()) return answered(status);
              if (!FromBytes(call->response, &response) || response.device_attributes_size() == 0)
                return answered(Internal("The task has sent no status"));
              answered(response.device_attributes(0).incarnation());
            });
          })) {}

Peers::~Peers() = default;

void Peers::ReplaceTlsFiles(const std::string& authority, const std::string& certificate,
                            const std::string& key) {
  connections_->ReplaceTlsFiles(authority, certificate, key);
}

void Peers::Receive(const PeerTask& task, int64_t step_id, const RendezvousKey& key,
                    Cancellation* cancellation, Rendezvous::Done done) {
  const int64_t request_id = NewRequestId();
  proto::RecvTensorRequest request;
  request.set_step_id(step_id);
  request.set_rendezvous_key(key.text);
  request.set_request_id(request_id);
  const auto call = connections_->NewCall(task, request);
  call->cancellation = cancellation;
  call->watch = watch_;
  call->wait = {
      .incarnation = key.incarnation, .step_id = step_id, .what = key.edge, .is_edge = true};
  call->Start(PathOf("RecvTensor"), [call = call.get(), connections = connections_, request_id,
                                     done = std::move(done)](const absl::Status& status) {
    if (!status.ok()) return done(status);
    bool require_ack = false;
    absl::StatusOr<SentValue> received = DecodeSentValue(&call->response, &require_ack);
    if (require_ack) connections->Acknowledge(call->task, request_id);
    done(std::move(received));
  });
}

void Peers::Ask(const PeerTask& task, const char* method,
                const google::protobuf::MessageLite& request,
                google::protobuf::MessageLite* response, const AskOptions& options,
                Answered answered) {
  const auto call = connections_->NewCall(task, request);
  call->cancellation = options.cancellation;
  call->watch = watch_;
  call->wait = {.incarnation = options.incarnation, .step_id = options.step_id, .what = method};
  if (options.limit.count() > 0)
    call->context.set_deadline(std::chrono::system_clock::now() + options.limit);
  call->Start(PathOf(method), [call = call.get(), response,
                               answered = std::move(answered)](const absl::Status& status) {
    if (status.ok() && !FromBytes(call->response, response))
      return answered(Internal("Cannot parse the answer of a task"));
    answered(status);
  });
}

}  // namespace weir::rpc
