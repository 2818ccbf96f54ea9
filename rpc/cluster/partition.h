#ifndef WEIR_RPC_CLUSTER_PARTITION_H_
#define WEIR_RPC_CLUSTER_PARTITION_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/runtime/rendezvous.h"
#include "weir/rpc/cluster/task_placement.h"
#include "weir/session/plan/plan_environment.h"

namespace weir::proto {
class GraphDef;
}

namespace weir::rpc {

// What one task runs of a step.
struct StepPart {
  int task = 0;  // in TaskPlacement::tasks()
  std::unique_ptr<proto::GraphDef> graph;

  StepPart(int of, std::unique_ptr<proto::GraphDef> nodes);
  StepPart(StepPart&&) noexcept;
  StepPart& operator=(StepPart&&) noexcept;
  ~StepPart();
};

// A value that the master sends from its own task before the step starts.
struct FedValue {
  int feed = 0;  // in PlanRequest::feeds
  RendezvousKey key;
};

// A step cut into the parts of tasks. Values cross between parts, and between the master and the
// parts, by the keys of _Send and _Recv nodes (core/runtime/rendezvous.h).
struct StepPartition {
  std::vector<StepPart> parts;         // one for each task that has nodes, in order of the tasks
  std::vector<FedValue> feeds;         // a feed crosses to each task that uses it
  std::vector<RendezvousKey> fetches;  // by fetch: received by the master's own task
};

// Cuts a step of the graph, all of whose nodes have been placed. Each part has the nodes of its
// task with full devices and names unchanged, and the functions that they call. An edge between two
// tasks becomes a pair of _Send and _Recv, as TensorFlow's masters cut graphs, so that any of its
// tasks can run any part. Returns the errors of PruneGraph and FindLoops, and INVALID_ARGUMENT for
// a loop that several tasks run and that has no LoopCond.
absl::StatusOr<StepPartition> PartitionStep(const PlanRequest& request, const Graph& graph,
                                            const TaskPlacement& placement);

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_PARTITION_H_
