#include "weir/rpc/cluster/receive_service.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/sent_value.h"
#include "weir/rpc/lib/grpc_status.h"
#include "weir/rpc/lib/message_bytes.h"

namespace weir::rpc {

namespace {

// One call. gRPC deletes it when the answer has been sent, or the caller has gone.
class ReceiveCall final : public grpc::ServerUnaryReactor {
 public:
  void Start(ClusterTask& task, const grpc::ByteBuffer* bytes, grpc::ByteBuffer* response) {
    proto::RecvTensorRequest request;
    if (!FromBytes(*bytes, &request))
      return Finish(grpc::Status(grpc::INVALID_ARGUMENT, "Cannot parse the request"));
    task.Receive(request.step_id(), request.rendezvous_key(), request.request_id(), &cancellation_,
                 [this, response](absl::StatusOr<SentValue> value) {
                   if (!value.ok()) return Finish(ToGrpc(value.status()));
                   absl::StatusOr<grpc::ByteBuffer> encoded = EncodeSentValue(*value);
                   if (!encoded.ok()) return Finish(ToGrpc(encoded.status()));
                   response->Swap(&*encoded);
                   Finish(grpc::Status::OK);
                 });
  }

 private:
  void OnCancel() override {
    cancellation_.Cancel(absl::CancelledError("The receiver of the value has gone"));
  }
  void OnDone() override { delete this; }

  Cancellation cancellation_;
};

}  // namespace

ReceiveService::ReceiveService(ClusterTask& task) {
  AddMethod(new grpc::internal::RpcServiceMethod("/tensorflow.WorkerService/RecvTensor",
                                                 grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
  MarkMethodCallback(0,
                     new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                         [&task](grpc::CallbackServerContext*, const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) -> grpc::ServerUnaryReactor* {
                           auto* call = new ReceiveCall;
                           call->Start(task, request, response);
                           return call;
                         }));
}

}  // namespace weir::rpc
