#ifndef WEIR_SESSION_PLAN_PLACE_H_
#define WEIR_SESSION_PLAN_PLACE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "weir/core/graph/graph.h"
#include "weir/core/graph/scope.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/mutex.h"
#include "weir/session/plan/disjoint_sets.h"
#include "weir/session/plan/session_options.h"

namespace weir {

// Returns whether the kernel keeps the argument of input or output position `i` in host memory,
// whatever its device.
bool IsHostArgument(const KernelDef& kernel, const Node& node, int i, bool is_input);

// The placement of the nodes of a session's graph. Every node has one device, the same in all
// steps, since a variable's memory stays there from one step to the next. place.cc describes how
// the device is chosen. Not thread-safe: the caller holds the mutex. Keeps references to its
// constructor's arguments.
class Placement {
 public:
  Placement(const Graph& graph, const KernelRegistry& kernels,
            absl::Span<const std::unique_ptr<Device>> devices, const SessionOptions& options)
      : graph_(graph), kernels_(kernels), devices_(devices), options_(options) {}

  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

  struct Choice {
    Device* device;
    const KernelDef* kernel;
  };
  // Returns INVALID_ARGUMENT, with the names of nodes and devices, if no available device satisfies
  // all nodes that must share it.
  absl::StatusOr<Choice> Choose(const Node& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

 private:
  // The requests of the nodes of a colocation group.
  struct Group {
    std::vector<const Node*> members;  // in order of creation
    DeviceName request;
    const Node* requester = nullptr;
  };

  absl::Status Unite(int a, int b) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddNewNodes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Join(const Node& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RequestsDevice(int root) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Group> GroupOf(int root) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasKernels(const Group& group, const Device& device) const;
  bool IsHostLogic(const Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsOnHost(const Output& value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Device*> ChooseDevice(const Group& group) const;
  absl::Status CannotAssign(const Group& group) const;
  absl::Status CannotColocate(const Node& a, const Node& b) const;
  absl::StatusOr<const KernelDef*> FindKernel(const Node& node, int root,
                                              const Device& device) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  const Graph& graph_;
  const KernelRegistry& kernels_;
  const absl::Span<const std::unique_ptr<Device>> devices_;  // devices_[0] is the CPU
  const SessionOptions& options_;
  DisjointSets groups_ ABSL_GUARDED_BY(mutex_);  // of nodes
  // By node: its group's members as a ring.
  std::vector<int> next_ ABSL_GUARDED_BY(mutex_);
  // By root; null until a step needs the group.
  std::vector<Device*> device_ ABSL_GUARDED_BY(mutex_);
  // Nodes added too late to be joined.
  absl::flat_hash_map<int, absl::Status> conflicts_ ABSL_GUARDED_BY(mutex_);
  // Nodes by what they share other than edges: the name of a resource, or a colocation name that is
  // no node's.
  absl::flat_hash_map<std::string, int> classes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_PLACE_H_
