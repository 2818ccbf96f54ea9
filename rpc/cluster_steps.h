#ifndef WEIR_RPC_CLUSTER_STEPS_H_
#define WEIR_RPC_CLUSTER_STEPS_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/rpc/cluster/cluster_step.h"
#include "weir/rpc/cluster/task_placement.h"
#include "weir/rpc/session_graph.h"
#include "weir/session/plan/plan_request.h"
#include "weir/session/runtime/lru_cache.h"

namespace weir::proto {
class ConfigProto;
}

namespace weir::rpc {

// What a client runs, by names.
struct StepNames {
  std::vector<std::string> feeds, fetches, targets;
  NamedConnections connections = {};
};

// A step of a session over tasks, ready to run. Immutable.
struct PreparedClusterStep {
  // The tasks drop their parts with the last reference to a step that `is_evicted` from the cache,
  // and all of them when the session ends.
  PreparedClusterStep(RegisteredStep step, std::shared_ptr<const std::atomic<bool>> evicted)
      : registered(std::move(step)), is_evicted(std::move(evicted)) {}
  ~PreparedClusterStep();
  PreparedClusterStep(const PreparedClusterStep&) = delete;
  PreparedClusterStep& operator=(const PreparedClusterStep&) = delete;

  PlanRequest request;
  RegisteredStep registered;
  const std::shared_ptr<const std::atomic<bool>> is_evicted;
};

// The graph of a session over tasks, and its steps, each of which is cut into parts and sent to the
// tasks once. Keeps the 1,000 most recently used steps. Thread-safe.
class ClusterSteps {
 public:
  // `session` is the handle of the worker sessions, `tasks[0]` is the master's own; `cluster`
  // outlives the object.
  ClusterSteps(const SessionCluster& cluster, std::string session, std::vector<SessionTask> tasks,
               const proto::ConfigProto& config, const GraphLimits& limits);
  ~ClusterSteps();

  // As SessionGraph, after LowerFunctionalOps; also returns the errors of TaskPlacement, after
  // which steps return them too.
  absl::Status Begin(const proto::GraphDef& def);
  absl::StatusOr<int64_t> Extend(const proto::GraphDef& nodes, int64_t version);
  int64_t version() const { return graph_.version(); }

  // Returns the step of these names, which it cuts and registers if it is new. Errors are those of
  // FindByName, of PartitionStep and of the tasks; DEADLINE_EXCEEDED if one does not answer within
  // `limit` (zero: none). A call that finds the step in preparation by another waits for that.
  absl::StatusOr<std::shared_ptr<const PreparedClusterStep>> Prepare(
      const StepNames& names, Cancellation* cancellation, std::chrono::milliseconds limit);
  // Returns whether a tensor of the graph can be computed without the feeds `missing`.
  bool CanCompute(const Output& fetch, const Outputs& feeds, const Outputs& missing);

  const std::vector<SessionTask>& tasks() const { return placement_.tasks(); }
  std::vector<TaskName> task_names() const;

 private:
  struct Entry {
    const std::shared_ptr<std::atomic<bool>> is_evicted =
        std::make_shared<std::atomic<bool>>(false);
    Mutex mutex;
    CondVar changed;  // also when a call that waits is cancelled
    bool is_in_preparation ABSL_GUARDED_BY(mutex) = false;
    std::shared_ptr<const PreparedClusterStep> step ABSL_GUARDED_BY(mutex);  // null: not prepared
  };
  using Key = std::tuple<std::vector<std::string>, std::vector<std::string>,
                         std::vector<std::string>, NamedConnections>;

  std::shared_ptr<Entry> FindEntry(const StepNames& names);
  // Waits until the entry has a step, or this call is the one that prepares it (null).
  static absl::StatusOr<std::shared_ptr<const PreparedClusterStep>> Claim(
      Entry& entry, Cancellation* cancellation, std::chrono::milliseconds limit);
  absl::StatusOr<std::shared_ptr<const PreparedClusterStep>> PrepareNew(
      const Entry& entry, const StepNames& names, Cancellation* cancellation,
      std::chrono::milliseconds limit);
  absl::StatusOr<StepPartition> Cut(const StepNames& names, PlanRequest* request);
  absl::Status Register(StepPartition partition, RegisteredStep* step, Cancellation* cancellation,
                        std::chrono::milliseconds limit);

  const SessionCluster& cluster_;
  const std::string session_;
  const std::unique_ptr<const proto::ConfigProto> config_;
  SharedMutex graph_mutex_;  // held shared while reading the graph
  Mutex extend_mutex_;       // held by Extend
  SessionGraph graph_;
  TaskPlacement placement_;
  absl::Status placed_ ABSL_GUARDED_BY(graph_mutex_);
  Mutex mutex_;
  LruCache<Key, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_STEPS_H_
