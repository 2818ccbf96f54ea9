#include "weir/rpc/service.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/method_handler.h>

#include <optional>
#include <type_traits>
#include <utility>

#include "weir/core/tensor/exception.h"
#include "weir/proto/classification.pb.h"
#include "weir/proto/get_model_metadata.pb.h"
#include "weir/proto/get_model_status.pb.h"
#include "weir/proto/inference.pb.h"
#include "weir/proto/master.pb.h"
#include "weir/proto/model_management.pb.h"
#include "weir/proto/predict.pb.h"
#include "weir/proto/regression.pb.h"
#include "weir/proto/worker.pb.h"
#include "weir/rpc/cluster/cluster_task.h"
#include "weir/rpc/isolated_master.h"
#include "weir/rpc/lib/caller.h"
#include "weir/rpc/lib/grpc_status.h"
#include "weir/rpc/lib/read_request.h"
#include "weir/rpc/master.h"
#include "weir/rpc/models/model_service.h"
#include "weir/rpc/models/prediction_service.h"

namespace weir::rpc {

namespace {

constexpr auto kWork = CallWatch::Kind::kWork;
constexpr auto kAdministration = CallWatch::Kind::kAdministration;

absl::string_view Metadata(const grpc::ServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return "";
  return {found->second.data(), found->second.size()};
}

// What a response takes on the wire.
uint64_t BytesOf(const google::protobuf::MessageLite& response) { return response.ByteSizeLong(); }
uint64_t BytesOf(const grpc::ByteBuffer& response) { return response.Length(); }

// How many times the memory of its message a request takes: the message, and the nodes of a graph
// that are made of it.
template <class Request>
constexpr uint64_t kCopies = 1;
template <>
constexpr uint64_t kCopies<const proto::CreateSessionRequest> = 3;
template <>
constexpr uint64_t kCopies<const proto::ExtendSessionRequest> = 3;
template <>
constexpr uint64_t kCopies<proto::RegisterGraphRequest> = 3;
// The examples, serialized for the ops that parse them.
template <>
constexpr uint64_t kCopies<const proto::serving::ClassificationRequest> = 2;
template <>
constexpr uint64_t kCopies<const proto::serving::RegressionRequest> = 2;
template <>
constexpr uint64_t kCopies<const proto::serving::MultiInferenceRequest> = 2;

// The name of the method in a path.
absl::string_view NameOf(absl::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

// A method with one request and one response, as the client sees it. gRPC sees a stream: it would
// hand over a method that is not a stream when its request has arrived, and wait without limit for
// a client that sends a part of it or does not read the response.
template <class Response>
class GrpcService::Method final : public grpc::internal::MethodHandler {
 public:
  Method(GrpcService& service, absl::string_view name, CallWatch::Kind kind,
         Answer<Response> answer)
      : service_(service), name_(name), kind_(kind), answer_(std::move(answer)) {}

  void RunHandler(const HandlerParameter& parameter) override {
    CallWatch::ScopedCall call(service_.watch_, *parameter.server_context, kind_);
    std::optional<Client::Use> sent;
    // Returns when the client has read the response, so the call is watched until then.
    grpc::internal::TemplatedBidiStreamingHandler<Stream, false>([&](grpc::ServerContext* context,
                                                                     Stream* stream) {
      return Serve(call, *context, &sent, stream);
    }).RunHandler(parameter);
  }

 private:
  using Stream = grpc::ServerReaderWriter<Response, grpc::ByteBuffer>;

  // `sent` is what the response takes of the client's quota.
  grpc::Status Serve(CallWatch::ScopedCall& scope, const grpc::ServerContext& context,
                     std::optional<Client::Use>* sent, Stream* stream) {
    const auto start = std::chrono::steady_clock::now();
    Call& call = scope.call();
    call.request_id = RequestId(Metadata(context, "x-request-id"));
    call.traceparent = Traceparent(Metadata(context, "traceparent"));
    Response response;
    const absl::Status status = CatchExceptions(name_, [&]() -> absl::Status {
      WEIR_RETURN_IF_ERROR(Run(scope, context, stream, &response));
      const uint64_t bytes = BytesOf(response);
      WEIR_RETURN_IF_ERROR(
          call.response_memory.Take(bytes, absl::StrCat("the response of ", name_)));
      return sent->emplace(call.client).StartResponse(static_cast<int64_t>(bytes));
    });
    if (service_.on_call_)
      service_.on_call_({name_, "GRPC", call, status, std::chrono::steady_clock::now() - start});
    scope.StartSending();
    if (status.ok()) stream->WriteLast(response, grpc::WriteOptions());
    return ToGrpc(status);
  }

  absl::Status Run(CallWatch::ScopedCall& call, const grpc::ServerContext& context, Stream* stream,
                   Response* response) {
    WEIR_RETURN_IF_ERROR(call.admission());
    WEIR_ASSIGN_OR_RETURN(call.call().client, CallerOf(context, service_.clients_.get()));
    WEIR_ASSIGN_OR_RETURN(call.call().is_low_priority,
                          IsLowPriority(Metadata(context, kPriorityName)));
    grpc::ByteBuffer bytes;
    if (!stream->Read(&bytes))
      return absl::CancelledError("The client has not sent its request in time.");
    WEIR_RETURN_IF_ERROR(call.StartWork());
    Client::Use use(kind_ == kWork ? call.call().client : nullptr);
    WEIR_RETURN_IF_ERROR(use.Start(static_cast<int64_t>(bytes.Length())));
    Client* const client = call.call().client.get();
    const ScopedMemoryQuota of_client(client == nullptr ? nullptr : client->memory().get());
    return answer_(&bytes, call.call(), response);
  }

  GrpcService& service_;
  const absl::string_view name_;
  const CallWatch::Kind kind_;
  const Answer<Response> answer_;
};

template <class Response>
void GrpcService::AddMethodOf(const char* path, CallWatch::Kind kind, Answer<Response> answer) {
  AddMethod(new grpc::internal::RpcServiceMethod(
      path, grpc::internal::RpcMethod::BIDI_STREAMING,
      new Method<Response>(*this, NameOf(path), kind, std::move(answer))));
}

template <class Object, class Request, class Response>
void GrpcService::AddCall(const char* path, Object& object,
                          absl::Status (Object::*function)(Request&, Call&, Response*),
                          CallWatch::Kind kind) {
  AddMethodOf<Response>(
      path, kind,
      [&object, function, limit = max_request_bytes_](grpc::ByteBuffer* bytes, Call& call,
                                                      Response* response) -> absl::Status {
        ParsedRequest memory(limit, kCopies<Request>);
        WEIR_ASSIGN_OR_RETURN(Request * request, memory.Parse<std::remove_const_t<Request>>(bytes));
        return (object.*function)(*request, call, response);
      });
}

namespace {

// Calls `add` with the path, the function and the kind of each method of the master service.
template <class F>
void ForMasterMethods(const F& add) {
  add("/tensorflow.MasterService/CreateSession", &Master::CreateSession, kWork);
  add("/tensorflow.MasterService/ExtendSession", &Master::ExtendSession, kWork);
  add("/tensorflow.MasterService/PartialRunSetup", &Master::PartialRunSetup, kWork);
  add("/tensorflow.MasterService/RunStep", &Master::RunStep, kWork);
  add("/tensorflow.MasterService/CloseSession", &Master::CloseSession, kAdministration);
  add("/tensorflow.MasterService/ListDevices", &Master::ListDevices, kAdministration);
  add("/tensorflow.MasterService/Reset", &Master::Reset, kAdministration);
  add("/tensorflow.MasterService/MakeCallable", &Master::MakeCallable, kWork);
  add("/tensorflow.MasterService/RunCallable", &Master::RunCallable, kWork);
  add("/tensorflow.MasterService/ReleaseCallable", &Master::ReleaseCallable, kAdministration);
}

}  // namespace

void GrpcService::Add(Master& master) {
  ForMasterMethods([&](const char* path, auto function, CallWatch::Kind kind) {
    AddCall(path, master, function, kind);
  });
}

// The process of the session parses the request.
void GrpcService::Add(IsolatedMaster& master) {
  ForMasterMethods([&](const char* path, auto, CallWatch::Kind kind) {
    AddMethodOf<grpc::ByteBuffer>(
        path, kind,
        [&master, method = std::string(NameOf(path))](grpc::ByteBuffer* bytes, Call& call,
                                                      grpc::ByteBuffer* response) {
          return master.Run(method, bytes, call, response);
        });
  });
}

void GrpcService::Add(ClusterTask& task) {
  const auto add = [&](const char* path, auto method, CallWatch::Kind kind) {
    AddCall(path, task, method, kind);
  };
  add("/tensorflow.WorkerService/GetStatus", &ClusterTask::GetStatus, kAdministration);
  add("/tensorflow.WorkerService/CreateWorkerSession", &ClusterTask::CreateWorkerSession, kWork);
  add("/tensorflow.WorkerService/DeleteWorkerSession", &ClusterTask::DeleteWorkerSession,
      kAdministration);
  add("/tensorflow.WorkerService/RegisterGraph", &ClusterTask::RegisterGraph, kWork);
  add("/tensorflow.WorkerService/DeregisterGraph", &ClusterTask::DeregisterGraph, kAdministration);
  add("/tensorflow.WorkerService/RunGraph", &ClusterTask::RunGraph, kWork);
  add("/tensorflow.WorkerService/CleanupGraph", &ClusterTask::CleanupGraph, kAdministration);
  add("/tensorflow.WorkerService/CleanupAll", &ClusterTask::CleanupAll, kAdministration);
  add("/tensorflow.WorkerService/Logging", &ClusterTask::Logging, kAdministration);
  add("/tensorflow.WorkerService/MarkRecvFinished", &ClusterTask::MarkRecvFinished,
      kAdministration);
}

void GrpcService::Add(PredictionService& predictions) {
  const auto add = [&](const char* path, auto method) {
    AddCall(path, predictions, method, kWork);
  };
  add("/tensorflow.serving.PredictionService/Predict", &PredictionService::Predict);
  add("/tensorflow.serving.PredictionService/Classify", &PredictionService::Classify);
  add("/tensorflow.serving.PredictionService/Regress", &PredictionService::Regress);
  add("/tensorflow.serving.PredictionService/MultiInference", &PredictionService::MultiInference);
  add("/tensorflow.serving.PredictionService/GetModelMetadata",
      &PredictionService::GetModelMetadata);
}

void GrpcService::Add(ModelService& models) {
  AddCall("/tensorflow.serving.ModelService/GetModelStatus", models, &ModelService::GetModelStatus,
          kAdministration);
  AddCall("/tensorflow.serving.ModelService/HandleReloadConfigRequest", models,
          &ModelService::HandleReloadConfigRequest, kWork);
}

}  // namespace weir::rpc
