#ifndef WEIR_OPS_FRAMEWORK_DEVICE_SETTER_H_
#define WEIR_OPS_FRAMEWORK_DEVICE_SETTER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Placement of a graph on parameter servers and workers (tf.train.replica_device_setter).
namespace WEIR_API weir {

// The addresses of each job's tasks: {{"ps", {"a:2222", "b:2222"}}, {"worker", {"c:2222"}}}.
using ClusterSpec = std::map<std::string, std::vector<std::string>>;

// Returns the task number, starting at 0, for a node that is placed on a parameter server. Copies
// share their state.
using PsStrategy = std::function<int(const Node&)>;
// Assigns tasks in turn, in the order in which the nodes are created.
PsStrategy RoundRobinStrategy(int num_tasks);
// Assigns the task with the smallest load so far (the first one on a tie) and adds load(node) to
// its load.
using LoadFn = std::function<double(const Node&)>;
PsStrategy GreedyLoadBalancingStrategy(int num_tasks, LoadFn load);
// Returns the size of a variable in bytes, from its node's dtype and shape. INVALID_ARGUMENT on the
// graph if the shape is not fully defined.
double ByteSizeLoad(const Node& node);

// Returns the ops with state that several workers share: variables, tables, accumulators.
const std::vector<std::string>& StandardPsOps();

// How ReplicaDeviceSetter places nodes.
struct ReplicaDeviceSetterOptions {
  int ps_tasks = 0;                           // ignored if `cluster` is set
  std::string ps_device = "/job:ps";          // for ps_ops; empty: worker_device
  std::string worker_device = "/job:worker";  // for all other nodes
  // If false, a node that an inner scope places is left unchanged.
  bool merge_devices = true;
  // If set, the number of tasks is that of ps_device's job in this cluster.
  std::optional<ClusterSpec> cluster = {};
  std::vector<std::string> ps_ops = StandardPsOps();
  PsStrategy ps_strategy = {};  // default: round robin
};

// Returns a function for a device scope:
//   const DeviceScope scope(g, ReplicaDeviceSetter({.ps_tasks = 2}));
// places variables on "/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0", ..., and all other
// nodes on "/job:worker". Inner scopes take precedence field by field; if an inner scope names a
// job other than that of ps_device, no task is chosen. Without ps tasks the function places
// nothing. Copies share their state. INVALID_ARGUMENT on the graph if a device cannot be parsed or
// a task is negative.
Graph::DeviceFn ReplicaDeviceSetter(ReplicaDeviceSetterOptions options);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_DEVICE_SETTER_H_
