#include "weir/tools/serve/cluster.h"

#include <utility>

#include "weir/rpc/cluster_server.h"

namespace weir::tools {

absl::Status ApplyCluster(const ClusterFlags& flags, rpc::ServerOptions* server) {
  if (flags.cluster.empty()) {
    if (flags.job.empty()) return absl::OkStatus();
    return InvalidArgument("--job and --task need --cluster");
  }
  WEIR_ASSIGN_OR_RETURN(rpc::ClusterSpec cluster, rpc::ClusterSpec::Parse(flags.cluster));
  return rpc::SetCluster(std::move(cluster), {flags.job, flags.task}, server);
}

}  // namespace weir::tools
