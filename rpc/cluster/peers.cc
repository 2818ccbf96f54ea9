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

constexpr char kReceivePath[] = "/tensorflow.WorkerService/RecvTensor";
constexpr char kAcknowledgePath[] = "/tensorflow.WorkerService/MarkRecvFinished";
constexpr int kReconnectMs = 1000;

// A number for each request, so that a task can refuse one that arrives twice.
int64_t NewRequestId() {
  thread_local std::mt19937_64 numbers(std::random_device{}());
  return static_cast<int64_t>(numbers() >> 1 | 1);
}

// A call in progress. It owns itself until the answer has come.
struct PeerCall {
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  grpc::ByteBuffer request, response;
  int64_t request_id = 0;
  Cancellation* cancellation = nullptr;
  int64_t token = 0;
  Rendezvous::Done done;

  void Start(const char* path, std::function<void(const grpc::Status&)> finish) {
    const grpc::internal::RpcMethod method(path, grpc::internal::RpcMethod::NORMAL_RPC, channel);
    grpc::internal::CallbackUnaryCall(channel.get(), method, &context, &request, &response,
                                      std::move(finish));
  }
};

void Acknowledge(const std::shared_ptr<grpc::Channel>& channel, int64_t request_id) {
  auto call = std::make_shared<PeerCall>();
  call->channel = channel;
  proto::MarkRecvFinishedRequest request;
  request.set_request_id(request_id);
  call->request = ToBytes(request);
  call->Start(kAcknowledgePath, [call](const grpc::Status&) {});
}

}  // namespace

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
  call->done = std::move(done);
  call->request_id = NewRequestId();
  proto::RecvTensorRequest request;
  request.set_step_id(step_id);
  request.set_rendezvous_key(key.text);
  request.set_request_id(call->request_id);
  call->request = ToBytes(request);
  call->cancellation = cancellation;
  const auto cancel = [call] { call->context.TryCancel(); };
  if (cancellation != nullptr && !cancellation->OnCancel(cancel, &call->token))
    return call->done(cancellation->status());
  call->Start(kReceivePath, [call](const grpc::Status& status) {
    Cancellation* const cancelled_by = call->cancellation;
    if (cancelled_by != nullptr) cancelled_by->Unregister(call->token);
    if (cancelled_by != nullptr && cancelled_by->cancelled())
      return call->done(cancelled_by->status());
    if (!status.ok()) return call->done(FromGrpc(status));
    bool require_ack = false;
    absl::StatusOr<SentValue> received = DecodeSentValue(&call->response, &require_ack);
    if (require_ack) Acknowledge(call->channel, call->request_id);
    call->done(std::move(received));
  });
}

}  // namespace weir::rpc
