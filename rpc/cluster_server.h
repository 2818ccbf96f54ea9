#ifndef WEIR_RPC_CLUSTER_SERVER_H_
#define WEIR_RPC_CLUSTER_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/rpc/cluster/cluster_spec.h"
#include "weir/rpc/server.h"

// A task of a cluster in a program (tf.distribute.Server), which `weir serve --cluster` is too:
//
//   WEIR_ASSIGN_OR_RETURN(const rpc::ClusterSpec cluster, rpc::ClusterSpec::Create(
//       {{"ps", {"10.0.0.1:2222"}}, {"worker", {"10.0.0.2:2222", "10.0.0.3:2222"}}}));
//   WEIR_ASSIGN_OR_RETURN(const auto server, rpc::StartTask(cluster, {"worker", 1}));
//   rpc::EnableGrpcTargets();
//   ...
//   Session::Create(graph, {.target = server->target()})
//
// A parameter server calls `server->Join()` instead. Sessions of this program and of others run
// their graphs on all tasks, Weir's and TensorFlow's.
namespace weir::rpc {

// Sets what makes the server of these options a task of the cluster: the cluster, the port that the
// task has there, and, if the address is a loopback address and the task's own is not, the address
// "0.0.0.0", since other machines call it. INVALID_ARGUMENT for a task that the cluster does not
// have, and for port 0.
absl::Status SetCluster(ClusterSpec cluster, const TaskName& task, ServerOptions* options);

// Returns the tasks whose addresses are not of this machine: "/job:ps/replica:0/task:0
// (10.0.0.1:2222)".
std::vector<std::string> RemoteTasks(const ClusterSpec& cluster);

// Starts a server with these options as a task of the cluster. Errors are those of SetCluster and
// Server::Start.
absl::StatusOr<std::unique_ptr<Server>> StartTask(const ClusterSpec& cluster, const TaskName& task,
                                                  ServerOptions options = {});

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_SERVER_H_
