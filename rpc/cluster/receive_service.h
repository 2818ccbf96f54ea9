#ifndef WEIR_RPC_CLUSTER_RECEIVE_SERVICE_H_
#define WEIR_RPC_CLUSTER_RECEIVE_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include "weir/rpc/cluster/cluster_task.h"

namespace weir::rpc {

// RecvTensor on gRPC. The calls of many tasks wait at a time for values that steps will send, so
// none of them holds a thread: it is the one method on gRPC's callbacks.
class ReceiveService final : public grpc::Service {
 public:
  // `task` outlives the service's server.
  explicit ReceiveService(ClusterTask& task);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_RECEIVE_SERVICE_H_
