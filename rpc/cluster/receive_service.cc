#include "weir/rpc/cluster/receive_service.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/sent_value.h"
#include "weir/rpc/lib/caller.h"
#include "weir/rpc/lib/grpc_status.h"
#include "weir/rpc/lib/message_bytes.h"

namespace weir::rpc {

namespace {

// A request consists of a key and two numbers.
constexpr size_t kMaxRequestBytes = 64 << 10;

// One call. gRPC deletes it when the answer has been sent, or the caller has gone.
class ReceiveCall final : public grpc::ServerUnaryReactor {
 public:
  explicit ReceiveCall(std::shared_ptr<Client> client) : use_(client), sent_(client) {}

  void Start(ClusterTask& task, const grpc::ByteBuffer* bytes, grpc::ByteBuffer* response) {
    proto::RecvTensorRequest request;
    absl::Status status = use_.Start(static_cast<int64_t>(bytes->Length()));
    if (status.ok() && (bytes->Length() > kMaxRequestBytes || !FromBytes(*bytes, &request)))
      status = InvalidArgument("Cannot parse the request");
    if (!status.ok()) return Finish(ToGrpc(status));
    task.Receive(request.step_id(), request.rendezvous_key(), request.request_id(), &cancellation_,
                 [this, response](const absl::StatusOr<SentValue>& value) {
                   const absl::Status answered =
                       value.ok() ? Answer(*value, response) : value.status();
                   Finish(ToGrpc(answered));
                 });
  }

 private:
  absl::Status Answer(const SentValue& value, grpc::ByteBuffer* response) {
    WEIR_ASSIGN_OR_RETURN(grpc::ByteBuffer encoded, EncodeSentValue(value));
    WEIR_RETURN_IF_ERROR(sent_.StartResponse(static_cast<int64_t>(encoded.Length())));
    response->Swap(&encoded);
    return absl::OkStatus();
  }
  void OnCancel() override {
    cancellation_.Cancel(absl::CancelledError("The receiver of the value has gone"));
  }
  void OnDone() override { delete this; }

  Cancellation cancellation_;
  Client::Use use_, sent_;  // until the answer has been sent
};

// A call that is refused.
class Refusal final : public grpc::ServerUnaryReactor {
 public:
  explicit Refusal(const absl::Status& why) { Finish(ToGrpc(why)); }

 private:
  void OnDone() override { delete this; }
};

}  // namespace

ReceiveService::ReceiveService(ClusterTask& task, std::shared_ptr<const Clients> clients) {
  AddMethod(new grpc::internal::RpcServiceMethod("/tensorflow.WorkerService/RecvTensor",
                                                 grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
  MarkMethodCallback(
      0, new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
             [&task, clients](grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                              grpc::ByteBuffer* response) -> grpc::ServerUnaryReactor* {
               absl::StatusOr<std::shared_ptr<Client>> caller = CallerOf(*context, clients.get());
               if (!caller.ok()) return new Refusal(caller.status());
               auto* const call = new ReceiveCall(*std::move(caller));
               call->Start(task, request, response);
               return call;
             }));
}

}  // namespace weir::rpc
