#ifndef WEIR_RPC_CLUSTER_RECEIVE_SERVICE_H_
#define WEIR_RPC_CLUSTER_RECEIVE_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "weir/rpc/cluster/cluster_task.h"
#include "weir/rpc/lib/clients.h"

namespace weir::rpc {

// RecvTensor on gRPC. The calls of many tasks wait at a time for values that steps will send, so
// none of them holds a thread: it is the one method on gRPC's callbacks. A call counts for the
// quotas of its client, as others do.
class ReceiveService final : public grpc::Service {
 public:
  // `task` outlives the service's server. `clients`: see GrpcService.
  ReceiveService(ClusterTask& task, std::shared_ptr<const Clients> clients);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_RECEIVE_SERVICE_H_
