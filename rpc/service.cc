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

// A method with one request and one response, as the client sees it. gRPC sees a stream: it would
// hand over a method that is not a stream when its request has arrived, and wait without limit for
// a client that sends a part of it or does not read the response.
template <class Request, class Response>
class MasterService::Method final : public grpc::internal::MethodHandler {
 public:
  using Function = absl::Status (Master::*)(Request&, Call&, Response*);
  Method(MasterService& service, absl::string_view name, Function function, CallWatch::Kind kind)
      : service_(service), name_(name), function_(function), kind_(kind) {}

  void RunHandler(const HandlerParameter& parameter) override {
    CallWatch::ScopedCall call(service_.watch_, *parameter.server_context, kind_);
    // Returns when the client has read the response, so the call is watched until then.
    grpc::internal::TemplatedBidiStreamingHandler<Stream, false>([&](grpc::ServerContext*,
                                                                     Stream* stream) {
      return Serve(call, stream);
    }).RunHandler(parameter);
  }

 private:
  // Requests arrive unparsed: ParsedRequest limits their memory.
  using Stream = grpc::ServerReaderWriter<Response, grpc::ByteBuffer>;

  grpc::Status Serve(CallWatch::ScopedCall& call, Stream* stream) {
    const auto start = std::chrono::steady_clock::now();
    Response response;
    const absl::Status status =
        CatchExceptions(name_, [&] { return Run(call, stream, &response); });
    if (service_.on_call_)
      service_.on_call_(name_, status, std::chrono::steady_clock::now() - start);
    call.StartSending();
    if (status.ok()) stream->WriteLast(response, grpc::WriteOptions());
    return ToGrpc(status);
  }

  absl::Status Run(CallWatch::ScopedCall& call, Stream* stream, Response* response) {
    WEIR_RETURN_IF_ERROR(call.admission());
    grpc::ByteBuffer bytes;
    if (!stream->Read(&bytes))
      return absl::CancelledError("The client has not sent its request in time.");
    WEIR_RETURN_IF_ERROR(call.StartWork());
    ParsedRequest memory(service_.max_request_bytes_);
    WEIR_ASSIGN_OR_RETURN(Request * request, memory.Parse<std::remove_const_t<Request>>(&bytes));
    return (service_.master_.*function_)(*request, call.call(), response);
  }

  MasterService& service_;
  const absl::string_view name_;
  const Function function_;
  const CallWatch::Kind kind_;
};

template <class Request, class Response>
void MasterService::Add(const char* path,
                        absl::Status (Master::*function)(Request&, Call&, Response*),
                        CallWatch::Kind kind) {
  const absl::string_view name = absl::string_view(path).substr(sizeof(kService) - 1);
  AddMethod(new grpc::internal::RpcServiceMethod(
      path, grpc::internal::RpcMethod::BIDI_STREAMING,
      new Method<Request, Response>(*this, name, function, kind)));
}

MasterService::MasterService(Master& master, CallWatch& watch, uint64_t max_request_bytes,
                             OnCall on_call)
    : master_(master),
      watch_(watch),
      max_request_bytes_(max_request_bytes),
      on_call_(std::move(on_call)) {
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
