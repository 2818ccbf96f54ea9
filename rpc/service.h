#ifndef WEIR_RPC_SERVICE_H_
#define WEIR_RPC_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include "weir/rpc/call_watch.h"
#include "weir/rpc/master.h"

namespace weir::rpc {

// TensorFlow's master service on gRPC. Its paths, "/tensorflow.MasterService/RunStep", are said
// here: no generated code, and no matter which package the messages are in.
class MasterService final : public grpc::Service {
 public:
  MasterService(Master& master, CallWatch& watch);

 private:
  template <class Request, class Response>
  void Add(const char* path,
           absl::Status (Master::*method)(const Request&, Cancellation&, Response*));

  Master& master_;
  CallWatch& watch_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_SERVICE_H_
