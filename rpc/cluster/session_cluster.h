#ifndef WEIR_RPC_CLUSTER_SESSION_CLUSTER_H_
#define WEIR_RPC_CLUSTER_SESSION_CLUSTER_H_

#include "weir/rpc/cluster/cluster_spec.h"
#include "weir/rpc/cluster/cluster_task.h"

namespace weir::rpc {

// The cluster of a master's session: that of its server, or one that the client has given
// (ConfigProto.cluster_def), in which all tasks may have other names, also the master's own.
struct SessionCluster {
  ClusterTask& task;  // the master's own; outlives the session
  ClusterSpec spec;
  TaskName own;               // what `task` is called in `spec`
  bool is_of_client = false;  // tasks that the session uses must learn `spec` and their names
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_SESSION_CLUSTER_H_
