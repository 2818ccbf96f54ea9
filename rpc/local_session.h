#ifndef WEIR_RPC_LOCAL_SESSION_H_
#define WEIR_RPC_LOCAL_SESSION_H_

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "weir/core/tensor/memory_quota.h"
#include "weir/core/tensor/mutex.h"
#include "weir/rpc/lib/response_limit.h"
#include "weir/rpc/lib/session_requests.h"
#include "weir/rpc/master_session.h"
#include "weir/rpc/session_graph.h"
#include "weir/session/session.h"

namespace weir::proto {
class ConfigProto;
}

namespace weir::rpc {

class RunReport;

// What a client's session may contain and do.
struct SessionLimits {
  GraphLimits graph;
  std::chrono::milliseconds max_step{0};  // bounds the time limits of steps; zero: it does not
  ResponseLimit max_response;             // of the values and the trace of a step
  int64_t step_memory_bytes = 0;          // see MasterOptions
};

// A session that runs its steps in this process.
class LocalSession final : public MasterSession {
 public:
  // `options` are common to all sessions of the server; `config` comes from the client. What the
  // session holds counts for `memory`, which may be null.
  // Returns the errors of GraphPolicy, ImportGraphDef and Session::Create.
  static absl::StatusOr<std::unique_ptr<MasterSession>> Create(const proto::GraphDef& graph,
                                                               const proto::ConfigProto& config,
                                                               SessionOptions options,
                                                               const SessionLimits& limits,
                                                               std::shared_ptr<MemoryQuota> memory);

  int64_t graph_version() const override { return graph_.version(); }
  absl::StatusOr<int64_t> Extend(const proto::GraphDef& nodes, int64_t version) override;
  absl::Status Run(proto::RunStepRequest& request, Call& call,
                   proto::RunStepResponse* response) override;
  absl::StatusOr<std::string> SetUpPartialRun(const proto::PartialRunSetupRequest& request,
                                              Call& call) override;
  absl::StatusOr<int64_t> MakeCallable(const proto::CallableOptions& options, Call& call) override;
  absl::Status RunCallable(proto::RunCallableRequest& request, Call& call,
                           proto::RunCallableResponse* response) override;
  absl::Status ReleaseCallable(int64_t handle) override;
  std::set<std::string> ContainersHoldingFunctions() override;
  void Close() override { session_->Close(); }

 private:
  // A partial run set up by a client. The keys are the names that the client used.
  struct PartialRunState {
    PartialRun run;
    std::map<std::string, Output> tensors;
    std::map<std::string, Operation> targets;
  };
  struct Callable;

  LocalSession(const SessionLimits& limits, std::shared_ptr<MemoryQuota> memory)
      : memory_(std::move(memory)),
        graph_(limits.graph),
        max_step_limit_(limits.max_step),
        max_response_(limits.max_response),
        step_memory_bytes_(limits.step_memory_bytes) {}
  // Returns the quota of a new step; null if there are no limits.
  std::shared_ptr<MemoryQuota> MemoryOfStep() const;
  // Updates the two members below that are about functions.
  void NoteFunctions(const proto::GraphDef& graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(extend_mutex_);
  absl::StatusOr<Tensors> RunFull(proto::RunStepRequest& request, const RunOptions& options);
  absl::StatusOr<Tensors> RunPartial(proto::RunStepRequest& request, const RunOptions& options);

  const std::shared_ptr<MemoryQuota> memory_;  // null: not limited
  SessionGraph graph_;
  std::unique_ptr<Session> session_;
  bool shares_state_ = true;
  const std::chrono::milliseconds max_step_limit_;
  const ResponseLimit max_response_;
  const int64_t step_memory_bytes_;
  Mutex extend_mutex_;  // held by Extend
  bool has_functions_ ABSL_GUARDED_BY(extend_mutex_) = false;
  std::set<std::string> containers_holding_functions_ ABSL_GUARDED_BY(extend_mutex_);

  SessionHandles<PartialRunState, Callable> handles_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LOCAL_SESSION_H_
