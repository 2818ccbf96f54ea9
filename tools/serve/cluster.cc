#include "weir/tools/serve/cluster.h"

#include <chrono>
#include <cstdint>
#include <utility>

#include "weir/rpc/cluster_server.h"

namespace weir::tools {

absl::Status ApplyCluster(const ClusterFlags& flags, rpc::ServerOptions* server) {
  if (flags.cluster.empty()) {
    if (flags.job.empty()) return absl::OkStatus();
    return InvalidArgument("--job and --task need --cluster");
  }
  WEIR_ASSIGN_OR_RETURN(rpc::ClusterSpec cluster, rpc::ClusterSpec::Parse(flags.cluster));
  WEIR_RETURN_IF_ERROR(rpc::SetCluster(std::move(cluster), {flags.job, flags.task}, server));
  server->cluster->peer_timeout =
      std::chrono::milliseconds(static_cast<int64_t>(flags.peer_seconds * 1000));
  return absl::OkStatus();
}

}  // namespace weir::tools
