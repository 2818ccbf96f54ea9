#ifndef WEIR_TOOLS_SERVE_CLUSTER_H_
#define WEIR_TOOLS_SERVE_CLUSTER_H_

#include <string>

#include "weir/rpc/server.h"

// The options of `weir serve` that make the server a task of a cluster.
namespace weir::tools {

// The values of the options.
struct ClusterFlags {
  std::string cluster;  // empty: the server is not in a cluster
  std::string job;
  int task = 0;
  double peer_seconds = 60;  // ClusterOptions::peer_timeout
};

// Sets the cluster of the server, the port that it has there, and, if the server has no other
// address, the addresses that it listens on: this machine only for "localhost" and loopback
// addresses, all otherwise. INVALID_ARGUMENT for a malformed cluster, and a task that is not in it.
absl::Status ApplyCluster(const ClusterFlags& flags, rpc::ServerOptions* server);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_SERVE_CLUSTER_H_
