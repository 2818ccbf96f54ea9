#ifndef WEIR_RPC_CLUSTER_CLUSTER_SPEC_H_
#define WEIR_RPC_CLUSTER_CLUSTER_SPEC_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "weir/core/tensor/status.h"

namespace weir::proto {
class ClusterDef;
}

namespace weir::rpc {

// A task of a cluster: "ps", 1.
struct TaskName {
  std::string job;  // "ps"
  int index = 0;    // in the job, from 0

  // "/job:ps/replica:0/task:1"
  std::string ToString() const;
  // The task of a device, such as "/job:ps/replica:0/task:1/device:CPU:0". INVALID_ARGUMENT, with
  // the name, without a job or a task.
  static absl::StatusOr<TaskName> OfDevice(absl::string_view device);
  friend bool operator==(const TaskName&, const TaskName&) = default;
};

// The jobs of a cluster, and the addresses of their tasks.
class ClusterSpec {
 public:
  // Parses the form of TensorFlow's own server: jobs separated by commas, tasks by semicolons,
  // "ps|host:port;host:port,worker|host:port". "3=host:port" is task 3, and those after it count
  // on. INVALID_ARGUMENT, with the part and what was expected, for anything else.
  static absl::StatusOr<ClusterSpec> Parse(absl::string_view text);
  // The tasks of each job, by their addresses, in order: {{"ps", {"host1:2222", "host2:2222"}}}.
  // INVALID_ARGUMENT for what is not HOST:PORT.
  static absl::StatusOr<ClusterSpec> Create(
      const std::map<std::string, std::vector<std::string>>& jobs);
  static ClusterSpec FromProto(const proto::ClusterDef& def);

  // Returns the address of a task; "" if it is not in the cluster.
  std::string AddressOf(const TaskName& task) const;
  // The number of tasks of a job, as ReplicaDeviceSetter takes it; 0 if there is no such job.
  int NumTasks(const std::string& job) const;
  // By job and index.
  const std::map<std::string, std::map<int, std::string>>& jobs() const { return jobs_; }

 private:
  std::map<std::string, std::map<int, std::string>> jobs_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_CLUSTER_SPEC_H_
