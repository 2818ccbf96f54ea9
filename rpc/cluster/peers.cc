#include "weir/rpc/cluster/peers.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/client_callback.h>

#include <random>
#include <utility>

#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/sent_value.h"
#include "weir/rpc/lib/grpc_status.h"
#include "weir/rpc/lib/message_bytes.h"

namespace weir::rpc {

namespace {

constexpr int kReconnectMs = 1000;

std::string PathOf(absl::string_view method) {
  return absl::StrCat("/tensorflow.WorkerService/", method);
}

// A call in progress. It owns itself until the answer has come.
struct PeerCall : std::enable_shared_from_this<PeerCall> {
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  grpc::ByteBuffer request, response;
  Cancellation* cancellation = nullptr;
  int64_t token = 0;

  // Calls `finish` once, with the status of the cancellation if that ended the call.
  void Start(const std::string& path, std::function<void(const absl::Status&)> finish) {
    const auto cancel = [call = shared_from_this()] { call->context.TryCancel(); };
    if (cancellation != nullptr && !cancellation->OnCancel(cancel, &token))
      return finish(cancellation->status());
    const grpc::internal::RpcMethod method(path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC,
                                           channel);
    grpc::internal::CallbackUnaryCall(
        channel.get(), method, &context, &request, &response,
        [call = shared_from_this(), finish = std::move(finish)](const grpc::Status& status) {
          Cancellation* const by = call->cancellation;
          if (by != nullptr) by->Unregister(call->token);
          finish(by != nullptr && by->cancelled() ? by->status() : FromGrpc(status));
        });
  }
};

void Acknowledge(const std::shared_ptr<grpc::Channel>& channel, int64_t request_id) {
  auto call = std::make_shared<PeerCall>();
  call->channel = channel;
  proto::MarkRecvFinishedRequest request;
  request.set_request_id(request_id);
  call->request = ToBytes(request);
  call->Start(PathOf("MarkRecvFinished"), [](const absl::Status&) {});
}

}  // namespace

int64_t NewRequestId() {
  thread_local std::mt19937_64 numbers(std::random_device{}());
  return static_cast<int64_t>(numbers() >> 1 | 1);
}

Peers::~Peers() = default;

std::shared_ptr<grpc::Channel> Peers::ChannelTo(const std::string& address) {
  const MutexLock lock(mutex_);
  std::shared_ptr<grpc::Channel>& channel = channels_[address];
  if (channel == nullptr) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
    channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }
  return channel;
}

void Peers::Receive(const std::string& address, int64_t step_id, const RendezvousKey& key,
                    Cancellation* cancellation, Rendezvous::Done done) {
  auto call = std::make_shared<PeerCall>();
  call->channel = ChannelTo(address);
  const int64_t request_id = NewRequestId();
  proto::RecvTensorRequest request;
  request.set_step_id(step_id);
  request.set_rendezvous_key(key.text);
  request.set_request_id(request_id);
  call->request = ToBytes(request);
  call->cancellation = cancellation;
  call->Start(PathOf("RecvTensor"),
              [call = call.get(), request_id, done = std::move(done)](const absl::Status& status) {
                if (!status.ok()) return done(status);
                bool require_ack = false;
                absl::StatusOr<SentValue> received = DecodeSentValue(&call->response, &require_ack);
                if (require_ack) Acknowledge(call->channel, request_id);
                done(std::move(received));
              });
}

void Peers::Ask(const std::string& address, const char* method,
                const google::protobuf::MessageLite& request,
                google::protobuf::MessageLite* response, const AskOptions& options,
                Answered answered) {
  auto call = std::make_shared<PeerCall>();
  call->channel = ChannelTo(address);
  call->request = ToBytes(request);
  call->cancellation = options.cancellation;
  call->context.set_wait_for_ready(options.wait_for_ready);
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
