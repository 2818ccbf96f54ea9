#include "weir/rpc/service.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/method_handler.h>

#include <type_traits>
#include <utility>

#include "weir/core/tensor/exception.h"
#include "weir/proto/master.pb.h"
#include "weir/rpc/grpc_status.h"
#include "weir/rpc/read_request.h"

namespace weir::rpc {

namespace {

constexpr char kService[] = "/tensorflow.MasterService/";

}  // namespace

template <class Request, class Response>
void MasterService::Add(const char* path,
                        absl::Status (Master::*method)(Request&, Cancellation&, Response*)) {
  using Message = std::remove_const_t<Request>;
  // Requests arrive unparsed: ReadRequest limits the memory of the parsed message.
  using Handler = grpc::internal::RpcMethodHandler<MasterService, grpc::ByteBuffer, Response,
                                                   grpc::ByteBuffer, google::protobuf::MessageLite>;
  const absl::string_view name = absl::string_view(path).substr(sizeof(kService) - 1);
  const auto run = [method, name](MasterService* self, grpc::ServerContext* context,
                                  const grpc::ByteBuffer* bytes, Response* response) {
    const auto start = std::chrono::steady_clock::now();
    CallWatch::Call call(self->watch_, *context);
    google::protobuf::Arena arena(RequestArena());
    auto* const request = google::protobuf::Arena::CreateMessage<Message>(&arena);
    // gRPC created the buffer for this call only, so its bytes may be moved from.
    const absl::Status status = CatchExceptions(name, [&]() -> absl::Status {
      WEIR_RETURN_IF_ERROR(ReadRequest(const_cast<grpc::ByteBuffer*>(bytes), arena, request));
      return (self->master_.*method)(*request, call.cancellation(), response);
    });
    if (self->on_call_) self->on_call_(name, status, std::chrono::steady_clock::now() - start);
    return ToGrpc(status);
  };
  AddMethod(new grpc::internal::RpcServiceMethod(path, grpc::internal::RpcMethod::NORMAL_RPC,
                                                 new Handler(run, this)));
}

MasterService::MasterService(Master& master, CallWatch& watch, OnCall on_call)
    : master_(master), watch_(watch), on_call_(std::move(on_call)) {
  Add("/tensorflow.MasterService/CreateSession", &Master::CreateSession);
  Add("/tensorflow.MasterService/ExtendSession", &Master::ExtendSession);
  Add("/tensorflow.MasterService/PartialRunSetup", &Master::PartialRunSetup);
  Add("/tensorflow.MasterService/RunStep", &Master::RunStep);
  Add("/tensorflow.MasterService/CloseSession", &Master::CloseSession);
  Add("/tensorflow.MasterService/ListDevices", &Master::ListDevices);
  Add("/tensorflow.MasterService/Reset", &Master::Reset);
  Add("/tensorflow.MasterService/MakeCallable", &Master::MakeCallable);
  Add("/tensorflow.MasterService/RunCallable", &Master::RunCallable);
  Add("/tensorflow.MasterService/ReleaseCallable", &Master::ReleaseCallable);
}

}  // namespace weir::rpc
