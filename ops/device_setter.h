#ifndef WEIR_OPS_DEVICE_SETTER_H_
#define WEIR_OPS_DEVICE_SETTER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph.h"

// Placing a graph on parameter servers and a worker (tf.train.replica_device_setter).
namespace weir {

// The addresses of each job's tasks: {{"ps", {"a:2222", "b:2222"}}, {"worker", {"c:2222"}}}.
using ClusterSpec = std::map<std::string, std::vector<std::string>>;

// Chooses the task, from 0 on, for a node that belongs on a parameter server. Copies share their
// state.
using PsStrategy = std::function<int(const Node&)>;
// One task after the other, in the order the nodes are made.
PsStrategy RoundRobinStrategy(int num_tasks);
// The task with the smallest load so far, the first of these; it then has load(node) more.
using LoadFn = std::function<double(const Node&)>;
PsStrategy GreedyLoadBalancingStrategy(int num_tasks, LoadFn load);
// The bytes of a variable, by its node's dtype and shape. INVALID_ARGUMENT on the graph for a node
// whose shape is not known in full.
double ByteSizeLoad(const Node& node);

// Ops that hold state which several workers share: variables, tables, accumulators.
const std::vector<std::string>& StandardPsOps();

struct ReplicaDeviceSetterOptions {
  int ps_tasks = 0;                           // not used if there is a cluster
  std::string ps_device = "/job:ps";          // for state; empty: as everything else
  std::string worker_device = "/job:worker";  // for everything else
  // False: a node that an inner scope places is left as it is.
  bool merge_devices = true;
  // The number of tasks is that of ps_device's job in it.
  std::optional<ClusterSpec> cluster = {};
  std::vector<std::string> ps_ops = StandardPsOps();
  PsStrategy ps_strategy = {};  // default: round robin
};

// A function for a device scope:
//   const DeviceScope scope(g, ReplicaDeviceSetter({.ps_tasks = 2}));
// places variables on "/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0", ..., and everything
// else on "/job:worker". Inner scopes win field by field; where one names another job than
// ps_device, no task is chosen. Without ps tasks the function places nothing. Copies share their
// state. A device that does not parse, or a task that is negative, is INVALID_ARGUMENT on the
// graph.
Graph::DeviceFn ReplicaDeviceSetter(ReplicaDeviceSetterOptions options);

}  // namespace weir

#endif  // WEIR_OPS_DEVICE_SETTER_H_
