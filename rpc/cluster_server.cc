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

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

// Whether the host is this machine.
bool IsLocal(const std::string& host) { return host == "localhost" || IsLoopback(host); }

}  // namespace

absl::Status SetCluster(ClusterSpec cluster, const TaskName& task, ServerOptions* options) {
  const std::string address = cluster.AddressOf(task);
  if (address.empty()) {
    return InvalidArgument("Task ", task.index, " of job '", task.job,
                           "' is not in the cluster, which has the tasks ", Describe(cluster));
  }
  const std::string host = HostOf(address);
  if (!absl::SimpleAtoi(address.substr(host.size() + 1), &options->port) || options->port == 0)
    return InvalidArgument("The task's own address, ", address, ", needs a port");
  if (IsLoopback(options->address) && !IsLocal(host)) options->address = "0.0.0.0";
  options->cluster = ClusterOptions{std::move(cluster), task};
  return absl::OkStatus();
}

std::vector<std::string> RemoteTasks(const ClusterSpec& cluster) {
  std::vector<std::string> tasks;
  for (const auto& [job, addresses] : cluster.jobs()) {
    for (const auto& [index, address] : addresses) {
      if (!IsLocal(HostOf(address)))
        tasks.push_back(absl::StrCat(TaskName{job, index}.ToString(), " (", address, ")"));
    }
  }
  return tasks;
}

absl::StatusOr<std::unique_ptr<Server>> StartTask(const ClusterSpec& cluster, const TaskName& task,
                                                  ServerOptions options) {
  WEIR_RETURN_IF_ERROR(SetCluster(cluster, task, &options));
  return Server::Start(options);
}

}  // namespace weir::rpc
