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
                        absl::Status (Master::*method)(Request&, Call&, Response*),
                        CallWatch::Kind kind) {
  using Message = std::remove_const_t<Request>;
  // Requests arrive unparsed: ReadRequest limits the memory of the parsed message.
  using Handler = grpc::internal::RpcMethodHandler<MasterService, grpc::ByteBuffer, Response,
                                                   grpc::ByteBuffer, google::protobuf::MessageLite>;
  const absl::string_view name = absl::string_view(path).substr(sizeof(kService) - 1);
  const auto run = [method, name, kind](MasterService* self, grpc::ServerContext* context,
                                        const grpc::ByteBuffer* bytes, Response* response) {
    const auto start = std::chrono::steady_clock::now();
    CallWatch::ScopedCall scope(self->watch_, *context, kind);
    google::protobuf::Arena arena(RequestArena());
    auto* const request = google::protobuf::Arena::CreateMessage<Message>(&arena);
    // gRPC created the buffer for this call only, so its bytes may be moved from.
    const absl::Status status = CatchExceptions(name, [&]() -> absl::Status {
      WEIR_RETURN_IF_ERROR(scope.admission());
      WEIR_RETURN_IF_ERROR(ReadRequest(const_cast<grpc::ByteBuffer*>(bytes), arena, request));
      return (self->master_.*method)(*request, scope.call(), response);
    });
    if (self->on_call_) self->on_call_(name, status, std::chrono::steady_clock::now() - start);
    return ToGrpc(status);
  };
  AddMethod(new grpc::internal::RpcServiceMethod(path, grpc::internal::RpcMethod::NORMAL_RPC,
                                                 new Handler(run, this)));
}

MasterService::MasterService(Master& master, CallWatch& watch, OnCall on_call)
    : master_(master), watch_(watch), on_call_(std::move(on_call)) {
  constexpr auto kWork = CallWatch::Kind::kWork;
  constexpr auto kAdministration = CallWatch::Kind::kAdministration;
  Add("/tensorflow.MasterService/CreateSession", &Master::CreateSession, kWork);
  Add("/tensorflow.MasterService/ExtendSession", &Master::ExtendSession, kWork);
  Add("/tensorflow.MasterService/PartialRunSetup", &Master::PartialRunSetup, kWork);
  Add("/tensorflow.MasterService/RunStep", &Master::RunStep, kWork);
  Add("/tensorflow.MasterService/CloseSession", &Master::CloseSession, kAdministration);
  Add("/tensorflow.MasterService/ListDevices", &Master::ListDevices, kAdministration);
  Add("/tensorflow.MasterService/Reset", &Master::Reset, kAdministration);
  Add("/tensorflow.MasterService/MakeCallable", &Master::MakeCallable, kWork);
  Add("/tensorflow.MasterService/RunCallable", &Master::RunCallable, kWork);
  Add("/tensorflow.MasterService/ReleaseCallable", &Master::ReleaseCallable, kAdministration);
}

}  // namespace weir::rpc
