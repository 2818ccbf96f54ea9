#ifndef WEIR_RPC_CLUSTER_TASK_PLACEMENT_H_
#define WEIR_RPC_CLUSTER_TASK_PLACEMENT_H_

#include <map>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/graph/scope.h"
#include "weir/rpc/cluster/cluster_spec.h"
#include "weir/rpc/lib/server_device.h"
#include "weir/session/plan/disjoint_sets.h"

namespace weir::rpc {

// A task that a session uses.
struct SessionTask {
  TaskName name;
  std::vector<ServerDevice> devices;  // as the task told them; at least one

  // The device that sends and receives what crosses between tasks: the first CPU.
  const ServerDevice& host() const;
};

// Which task of a cluster runs each node of a session's graph. Every node has one device, the same
// in all steps, since a variable stays where it is. Not thread-safe.
//
// Nodes that work on one variable or resource share a device, as do nodes with a common "loc:@name"
// attribute. Such a group goes to the device that its members request; what a variable or resource
// requests has precedence over its users. Variants stay with their users as far as requests let
// them. What they leave open, and nodes without a request, goes to the master's own task; there is
// no choice by load. The kernels are not looked up, as another program may run the task.
class TaskPlacement {
 public:
  // `tasks[0]` is the master's own. `graph` outlives the placement.
  TaskPlacement(const Graph& graph, std::vector<SessionTask> tasks, bool allow_soft_placement)
      : graph_(graph), tasks_(std::move(tasks)), soft_(allow_soft_placement) {}

  // Places the nodes that were added to the graph since the last call. INVALID_ARGUMENT, with the
  // node and the devices that there are, for a device that no task has (soft placement changes the
  // type and the number of a device, and never the task), and for nodes that must share a device
  // and request different ones. After an error, the object must not be used.
  absl::Status PlaceNewNodes();

  // Where a node runs.
  struct Place {
    int task = -1;       // in tasks()
    std::string device;  // full name; without a type on the own task, if none is requested
  };
  // Of a node that has been placed.
  const Place& Of(const Node& node) const { return places_[node.id()]; }
  const std::vector<SessionTask>& tasks() const { return tasks_; }

 private:
  absl::Status Join(const Node& node);
  absl::Status Unite(const Node& a, const Node& b, bool by_handle);
  absl::Status AddRequest(const Node& node);
  absl::StatusOr<Place> Choose(const DeviceName& request, const Node& requester) const;
  absl::Status NoSuchDevice(const Node& requester, const DeviceName& request) const;

  // What the members of a group request.
  struct Group {
    DeviceName request;
    const Node* requester = nullptr;  // the first that requests anything
    Place place;                      // task -1: not placed yet
  };

  bool Agree(const Group& a, const Group& b) const;
  const Group& GroupOf(const Node& node) { return groups_[sets_.Find(node.id())]; }

  const Graph& graph_;
  const std::vector<SessionTask> tasks_;
  const bool soft_;
  DisjointSets sets_;          // of nodes
  std::vector<Group> groups_;  // by root
  std::vector<Place> places_;  // by node
  // By a name in "loc:@name" that no node had: the first node with that attribute.
  std::map<std::string, const Node*> unknown_leaders_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_TASK_PLACEMENT_H_
