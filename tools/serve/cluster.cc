#include "weir/tools/serve/cluster.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "weir/rpc/lib/listener.h"

namespace weir::tools {

namespace {

// "ps (0, 1), worker (0)"
std::string Describe(const rpc::ClusterSpec& cluster) {
  return absl::StrJoin(cluster.jobs(), ", ", [](std::string* out, const auto& job) {
    absl::StrAppend(out, job.first, " (",
                    absl::StrJoin(job.second, ", ",
                                  [](std::string* number, const auto& task) {
                                    absl::StrAppend(number, task.first);
                                  }),
                    ")");
  });
}

}  // namespace

absl::Status ApplyCluster(const ClusterFlags& flags, rpc::ServerOptions* server) {
  if (flags.cluster.empty()) {
    if (flags.job.empty()) return absl::OkStatus();
    return InvalidArgument("--job and --task need --cluster");
  }
  WEIR_ASSIGN_OR_RETURN(rpc::ClusterSpec cluster, rpc::ClusterSpec::Parse(flags.cluster));
  const rpc::TaskName task = {flags.job, flags.task};
  const std::string address = cluster.AddressOf(task);
  if (address.empty()) {
    return InvalidArgument("--job '", flags.job, "' --task ", flags.task,
                           " is not in the cluster, which has the tasks ", Describe(cluster));
  }
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  if (!absl::SimpleAtoi(address.substr(colon + 1), &server->port) || server->port == 0)
    return InvalidArgument("The task's own address, ", address, ", needs a port");
  const bool is_local = host == "localhost" || rpc::IsLoopback(host);
  if (rpc::IsLoopback(server->address) && !is_local) server->address = "0.0.0.0";
  server->cluster = rpc::ClusterOptions{std::move(cluster), task};
  return absl::OkStatus();
}

}  // namespace weir::tools
