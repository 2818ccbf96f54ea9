#ifndef WEIR_RPC_SERVICE_H_
#define WEIR_RPC_SERVICE_H_

#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "weir/rpc/lib/call.h"
#include "weir/rpc/lib/call_watch.h"
#include "weir/rpc/lib/clients.h"

namespace weir::rpc {

class ClusterTask;
class IsolatedMaster;
class Master;
class ModelService;
class PredictionService;

// The methods of a server on gRPC: TensorFlow's master service, its worker service, and TensorFlow
// Serving's services of models. Registers the paths, such as "/tensorflow.MasterService/RunStep",
// by hand: this needs no generated code, and the messages may be in any package.
class GrpcService final : public grpc::Service {
 public:
  // `watch` must outlive the service, and so must the objects added below. `max_request_bytes`: see
  // ServerOptions. `clients` are those that the server admits; null: everyone.
  GrpcService(CallWatch& watch, uint64_t max_request_bytes, std::shared_ptr<const Clients> clients,
              OnCall on_call)
      : watch_(watch),
        max_request_bytes_(max_request_bytes),
        clients_(std::move(clients)),
        on_call_(std::move(on_call)) {}

  // Each adds the methods of a service. Before the server starts.
  void Add(Master& master);
  void Add(IsolatedMaster& master);
  void Add(ClusterTask& task);  // but for RecvTensor (receive_service.h)
  void Add(PredictionService& predictions);
  void Add(ModelService& models);

 private:
  // Answers a request, which arrives unparsed.
  template <class Response>
  using Answer = std::function<absl::Status(grpc::ByteBuffer*, Call&, Response*)>;
  template <class Response>
  class Method;
  template <class Response>
  void AddMethodOf(const char* path, CallWatch::Kind kind, Answer<Response> answer);
  template <class Object, class Request, class Response>
  void AddCall(const char* path, Object& object,
               absl::Status (Object::*function)(Request&, Call&, Response*), CallWatch::Kind kind);

  CallWatch& watch_;
  const uint64_t max_request_bytes_;
  const std::shared_ptr<const Clients> clients_;
  const OnCall on_call_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_SERVICE_H_
