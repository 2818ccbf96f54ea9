#ifndef WEIR_RPC_CLUSTER_SESSION_H_
#define WEIR_RPC_CLUSTER_SESSION_H_

#include <memory>

#include "weir/rpc/cluster/cluster_task.h"
#include "weir/rpc/lib/master_options.h"
#include "weir/rpc/master_session.h"

namespace weir::rpc {

// Makes sessions whose graphs run on all tasks of a cluster, with `own` as their master: each node
// where its device says (cluster/task_placement.h), what requests no device on `own`. Its part of
// a step runs in this process. `own` outlives the factory and its sessions.
//
// A client may give a session a cluster of its own (ConfigProto.cluster_def), whose tasks are any
// servers that are tasks of some cluster, by the names that they have there. One of them has the
// address that the client called: the master. Such a session has variables of its own on all
// tasks, unless ConfigProto.experimental.share_session_state_in_clusterspec_propagation is set.
//
// A session begins when all its tasks answer: ConfigProto.device_filters says which it uses
// ("/job:ps", "/job:worker/task:1"; none: all, and the master's own in any case). Until then a line
// in the log names those that are missing.
//
// clang-format off
//   ABORTED              a task was restarted since the session began: clients begin a new session
//   UNAVAILABLE          a task is lost: it cannot be reached, or does not answer (peer_watch.h)
//   FAILED_PRECONDITION  a task speaks no TLS, or has the wrong certificate (peers.h)
//   DEADLINE_EXCEEDED    a task did not answer within ConfigProto.operation_timeout_in_ms
//   INVALID_ARGUMENT     a device that no task has; the error lists the devices that there are;
//                        a ConfigProto.cluster_def without the master, or with it twice
// clang-format on
//
// Of `options`, which are those of the server's master, the limits of graphs, steps, sessions and
// responses hold. Errors of steps begin with "From TASK:", and those of nodes name the node.
std::unique_ptr<SessionFactory> NewClusterSessionFactory(ClusterTask& own, MasterOptions options);

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_SESSION_H_
