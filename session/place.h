#ifndef WEIR_SESSION_PLACE_H_
#define WEIR_SESSION_PLACE_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "weir/core/graph.h"
#include "weir/core/kernel.h"
#include "weir/core/scope.h"
#include "weir/session/disjoint_sets.h"
#include "weir/session/session.h"

namespace weir {

// The argument that position `i` belongs to, of inputs or outputs, is one that the kernel keeps in
// host memory, whatever its device.
bool IsHostArgument(const KernelDef& kernel, const Node& node, int i, bool is_input);

// Where the nodes of a session's graph go: every node has one device, the same in all steps, since
// a variable's memory lies there from one step to the next. How it is chosen stands in place.cc.
// For one thread at a time, which holds the mutex; keeps references to all it is made from.
class Placement {
 public:
  Placement(const Graph& graph, const KernelRegistry& kernels,
            absl::Span<const std::unique_ptr<Device>> devices, const SessionOptions& options)
      : graph_(graph), kernels_(kernels), devices_(devices), options_(options) {}

  std::mutex& mutex() { return mutex_; }

  struct Choice {
    Device* device;
    const KernelDef* kernel;
  };
  // INVALID_ARGUMENT, naming nodes and devices, if no device can be had that all who must share it
  // agree on.
  absl::StatusOr<Choice> Choose(const Node& node);

 private:
  // What nodes that share a device ask for.
  struct Group {
    std::vector<const Node*> members;  // in the order they were made
    DeviceName request;
    const Node* requester = nullptr;
  };

  absl::Status Unite(int a, int b);
  void Extend();
  absl::Status Join(const Node& node);
  bool AsksForDevice(int root) const;
  absl::StatusOr<Group> GroupOf(int root) const;
  bool HasKernels(const Group& group, const Device& device) const;
  bool IsLogicOfHost(const Group& group);
  bool LiesOnHost(const Output& value);
  absl::StatusOr<Device*> Decide(const Group& group) const;
  absl::Status CannotAssign(const Group& group) const;
  absl::Status CannotColocate(const Node& a, const Node& b) const;
  absl::StatusOr<const KernelDef*> FindKernel(const Node& node, int root,
                                              const Device& device) const;

  std::mutex mutex_;
  const Graph& graph_;
  const KernelRegistry& kernels_;
  const absl::Span<const std::unique_ptr<Device>> devices_;  // devices_[0] is the CPU
  const SessionOptions& options_;
  DisjointSets groups_;                               // of nodes
  std::vector<int> next_;                             // by node: its group's members as a ring
  std::vector<Device*> device_;                       // by root; null until a step needs the group
  absl::flat_hash_map<int, absl::Status> conflicts_;  // nodes that came too late to be joined
  // Nodes by what they share beside edges: a resource's name, a mark that names no node.
  absl::flat_hash_map<std::string, int> classes_;
};

}  // namespace weir

#endif  // WEIR_SESSION_PLACE_H_
