#ifndef WEIR_RPC_CLUSTER_WORKER_SESSION_H_
#define WEIR_RPC_CLUSTER_WORKER_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "weir/core/tensor/memory_quota.h"
#include "weir/core/tensor/mutex.h"
#include "weir/rpc/cluster/cluster_spec.h"
#include "weir/rpc/lib/clients.h"
#include "weir/rpc/lib/graph_policy.h"
#include "weir/session/session.h"

namespace weir::proto {
class GraphDef;
}

namespace weir::rpc {

// What a worker session is made of: who this task is in it, and who the others are.
struct WorkerSessionOptions {
  ClusterSpec cluster;
  TaskName task;
  SessionOptions session;  // of each graph
  GraphLimits limits;
  bool shares_state = true;  // variables and other named resources, with other sessions
  std::string master_task;   // who opened it; "" if unknown
  int64_t master_incarnation = 0;
  std::shared_ptr<Client> client = nullptr;  // of the calls; null if clients are not told apart
  // What the session holds, and what each step of it may; null and 0: not limited.
  std::shared_ptr<MemoryQuota> memory = nullptr;
  int64_t step_memory_bytes = 0;
};

// A part of a master's graph: what one of its steps runs on this task. Immutable.
class GraphPart {
 public:
  // Imports the graph, all of which runs in a step, and changes `def` for that. INVALID_ARGUMENT
  // for a name that a master may not choose; also returns the errors of GraphPolicy, ImportGraphDef
  // and Session::Prepare.
  static absl::StatusOr<std::shared_ptr<GraphPart>> Create(proto::GraphDef* def,
                                                           const WorkerSessionOptions& options,
                                                           bool allow_soft_placement);

  // Runs it; an error names the failed node as TensorFlow's clients look for it.
  absl::Status Run(const RunOptions& options) const;
  const Graph& graph() const { return graph_; }
  const Session& session() const { return *session_; }
  // The containers with resources that may call functions of the part.
  const std::set<std::string>& function_holders() const { return function_holders_; }
  // Ends running steps with CANCELLED.
  void Close() const { session_->Close(); }

 private:
  GraphPart() = default;

  Graph graph_;
  std::unique_ptr<Session> session_;
  Step step_;
  std::set<std::string> function_holders_;
};

// A master's session, as one task has it: the parts of its steps, by handle. What a session has for
// itself, such as a queue without a shared_name, belongs to all of its parts. Thread-safe.
class WorkerSession {
 public:
  explicit WorkerSession(WorkerSessionOptions options);
  // Destroys the state before the functions of the parts, which it may call.
  ~WorkerSession();

  const WorkerSessionOptions& options() const { return options_; }
  // The memory of a new step; null: not limited.
  std::shared_ptr<MemoryQuota> MemoryOfStep() const;
  // RESOURCE_EXHAUSTED if there are too many.
  absl::Status Add(const std::string& handle, std::shared_ptr<GraphPart> part);
  // Null if there is none.
  std::shared_ptr<GraphPart> Find(const std::string& handle) const;
  // Returns whether there was one. One with functions, which state of the session may call, lives
  // on until the session ends.
  bool Remove(const std::string& handle);
  // The containers with resources that may call functions of the parts, after the session has
  // ended; none if its state is its own.
  std::set<std::string> ContainersHoldingFunctions() const;
  // Ends running steps.
  void Close();

 private:
  const WorkerSessionOptions options_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<GraphPart>> parts_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<GraphPart>> removed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_WORKER_SESSION_H_
