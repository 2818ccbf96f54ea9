#ifndef WEIR_RPC_MASTER_SESSION_H_
#define WEIR_RPC_MASTER_SESSION_H_

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "weir/core/tensor/memory_quota.h"
#include "weir/core/tensor/mutex.h"
#include "weir/rpc/lib/call.h"
#include "weir/rpc/lib/graph_policy.h"
#include "weir/rpc/lib/response_limit.h"
#include "weir/session/session.h"

namespace weir::proto {
class CallableOptions;
class ConfigProto;
class GraphDef;
class NamedTensorProto;
class PartialRunSetupRequest;
class RunCallableRequest;
class RunCallableResponse;
class RunOptions;
class RunStepRequest;
class RunStepResponse;
}  // namespace weir::proto

namespace weir::rpc {

class RunReport;

// What a client's session may contain and do.
struct SessionLimits {
  GraphLimits graph;
  std::chrono::milliseconds max_step{0};  // bounds the time limits of steps; zero: it does not
  ResponseLimit max_response;             // of the values and the trace of a step
  int64_t step_memory_bytes = 0;          // see MasterOptions
};

// One session of a server: a growing graph, the Session that runs it, and the steps prepared by
// clients. Thread-safe; several clients may use one session.
class MasterSession {
 public:
  // `options` are common to all sessions of the server; `config` comes from the client. What the
  // session holds counts for `memory`, which may be null.
  // Returns the errors of GraphPolicy, ImportGraphDef and Session::Create.
  static absl::StatusOr<std::unique_ptr<MasterSession>> Create(const proto::GraphDef& graph,
                                                               const proto::ConfigProto& config,
                                                               SessionOptions options,
                                                               const SessionLimits& limits,
                                                               std::shared_ptr<MemoryQuota> memory);

  // The number of extensions of the graph.
  int64_t graph_version() const { return version_; }
  // Adds functions and nodes, whose inputs may be existing nodes. Returns the new version. Returns
  // ABORTED if `version` is not the graph's current version. On an error the graph is unchanged.
  absl::StatusOr<int64_t> Extend(const proto::GraphDef& nodes, int64_t version);

  // Runs a step, or a part of a partial run. Returns the error of the step, regardless of where the
  // client wants it reported; RESOURCE_EXHAUSTED if there is no memory for the response. Moves the
  // feeds out of the request.
  absl::Status Run(proto::RunStepRequest& request, Call& call, proto::RunStepResponse* response);
  // Returns the handle by which RunStepRequests refer to the partial run.
  absl::StatusOr<std::string> SetUpPartialRun(const proto::PartialRunSetupRequest& request);

  absl::StatusOr<int64_t> MakeCallable(const proto::CallableOptions& options);
  // Moves the feeds out of the request.
  absl::Status RunCallable(proto::RunCallableRequest& request, Call& call,
                           proto::RunCallableResponse* response);
  absl::Status ReleaseCallable(int64_t handle);

  // Returns the containers of the shared state that hold resources which may call functions of this
  // session (iterators, batchers); none if the graph has no functions. While there are any, the
  // session must be kept alive, even if closed.
  std::set<std::string> ContainersHoldingFunctions();
  // Ends running steps with CANCELLED.
  void Close() { session_->Close(); }
  const Session& session() const { return *session_; }

 private:
  // A partial run set up by a client. The keys are the names that the client used.
  struct PartialRunState {
    PartialRun run;
    std::map<std::string, Output> tensors;
    std::map<std::string, Operation> targets;
  };
  struct Callable;

  MasterSession(const SessionLimits& limits, std::shared_ptr<MemoryQuota> memory)
      : memory_(std::move(memory)),
        max_step_limit_(limits.max_step),
        max_response_(limits.max_response),
        step_memory_bytes_(limits.step_memory_bytes),
        policy_(limits.graph) {}
  // Returns the quota of a new step; null if there are no limits.
  std::shared_ptr<MemoryQuota> MemoryOfStep() const;
  // Returns RESOURCE_EXHAUSTED if the response with these values would be too large, or if there is
  // no memory for it. The call has the memory until the response is sent.
  absl::Status ReserveResponse(const Tensors& values, const RunReport& report, Call& call) const;
  // Updates the two members below that are about functions.
  void NoteFunctions(const proto::GraphDef& graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(extend_mutex_);
  absl::StatusOr<Tensors> RunFull(proto::RunStepRequest& request, const RunOptions& options);
  absl::StatusOr<Tensors> RunPartial(proto::RunStepRequest& request, const RunOptions& options);

  const std::shared_ptr<MemoryQuota> memory_;  // null: not limited
  Graph graph_;
  std::unique_ptr<Session> session_;
  bool shares_state_ = true;
  const std::chrono::milliseconds max_step_limit_;
  const ResponseLimit max_response_;
  const int64_t step_memory_bytes_;
  std::atomic<int64_t> version_{0};
  Mutex extend_mutex_;  // held by Extend
  GraphPolicy policy_ ABSL_GUARDED_BY(extend_mutex_);
  bool has_functions_ ABSL_GUARDED_BY(extend_mutex_) = false;
  std::set<std::string> containers_holding_functions_ ABSL_GUARDED_BY(extend_mutex_);

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<PartialRunState>> partial_runs_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, std::shared_ptr<const Callable>> callables_ ABSL_GUARDED_BY(mutex_);
  int64_t next_handle_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_MASTER_SESSION_H_
