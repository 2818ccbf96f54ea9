#ifndef WEIR_RPC_SERVICE_H_
#define WEIR_RPC_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include <chrono>
#include <functional>

#include "weir/rpc/call_watch.h"
#include "weir/rpc/master.h"

namespace weir::rpc {

// See ServerOptions::on_call.
using OnCall =
    std::function<void(absl::string_view method, const absl::Status&, std::chrono::nanoseconds)>;

// TensorFlow's master service on gRPC. Registers the paths, such as
// "/tensorflow.MasterService/RunStep", by hand: this needs no generated code, and the messages may
// be in any package.
class MasterService final : public grpc::Service {
 public:
  // `max_request_bytes`: see ServerOptions.
  MasterService(Master& master, CallWatch& watch, uint64_t max_request_bytes, OnCall on_call);

 private:
  template <class Request, class Response>
  class Method;
  template <class Request, class Response>
  void Add(const char* path, absl::Status (Master::*function)(Request&, Call&, Response*),
           CallWatch::Kind kind);

  Master& master_;
  CallWatch& watch_;
  const uint64_t max_request_bytes_;
  const OnCall on_call_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_SERVICE_H_
