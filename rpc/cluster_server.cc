#include "weir/rpc/cluster_server.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "weir/rpc/lib/listener.h"

namespace weir::rpc {

namespace {

// "ps (0, 1), worker (0)"
std::string Describe(const ClusterSpec& cluster) {
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

absl::Status SetCluster(ClusterSpec cluster, const TaskName& task, ServerOptions* options) {
  const std::string address = cluster.AddressOf(task);
  if (address.empty()) {
    return InvalidArgument("Task ", task.index, " of job '", task.job,
                           "' is not in the cluster, which has the tasks ", Describe(cluster));
  }
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  if (!absl::SimpleAtoi(address.substr(colon + 1), &options->port) || options->port == 0)
    return InvalidArgument("The task's own address, ", address, ", needs a port");
  const bool is_local = host == "localhost" || IsLoopback(host);
  if (IsLoopback(options->address) && !is_local) options->address = "0.0.0.0";
  options->cluster = ClusterOptions{std::move(cluster), task};
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Server>> StartTask(const ClusterSpec& cluster, const TaskName& task,
                                                  ServerOptions options) {
  WEIR_RETURN_IF_ERROR(SetCluster(cluster, task, &options));
  return Server::Start(options);
}

}  // namespace weir::rpc
