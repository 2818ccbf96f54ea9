#ifndef WEIR_RPC_MASTER_SESSION_H_
#define WEIR_RPC_MASTER_SESSION_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

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

// One session of a server: a graph that grows, the Session that runs it, and the steps that clients
// have prepared. Thread-safe; several clients may use one session.
class MasterSession {
 public:
  // `options` is what all sessions of the server have in common; `config` is what this client asks
  // for. The errors of ImportGraphDef and Session::Create.
  static absl::StatusOr<std::shared_ptr<MasterSession>> Create(const proto::GraphDef& graph,
                                                               const proto::ConfigProto& config,
                                                               SessionOptions options);

  // How often the graph has been extended.
  int64_t graph_version() const { return version_; }
  // Adds nodes, whose inputs may be nodes that are there, and functions. Returns the new version.
  // ABORTED if `version` is not the graph's. On an error the graph is as it was.
  absl::StatusOr<int64_t> Extend(const proto::GraphDef& nodes, int64_t version);

  // A step, or a piece of one. The error of the step is returned, wherever the client wants it to
  // stand. The values fed are taken out of the request.
  absl::Status Run(proto::RunStepRequest& request, Cancellation& cancellation,
                   proto::RunStepResponse* response);
  // Returns the handle by which RunStepRequests name the step.
  absl::StatusOr<std::string> SetUpPartialRun(const proto::PartialRunSetupRequest& request);

  absl::StatusOr<int64_t> MakeCallable(const proto::CallableOptions& options);
  // The values fed are taken out of the request.
  absl::Status RunCallable(proto::RunCallableRequest& request, Cancellation& cancellation,
                           proto::RunCallableResponse* response);
  absl::Status ReleaseCallable(int64_t handle);

  // Where it leaves what may call its functions (iterators, batchers) in the state of all sessions.
  // As long as there are such containers it has to be kept, closed as it may be.
  std::set<std::string> ContainersHoldingFunctions();
  // Ends running steps with CANCELLED.
  void Close() { session_->Close(); }
  const Session& session() const { return *session_; }

 private:
  // A step that the client has set up, to be run piece by piece. Names are those that it gave.
  struct PartialRunState {
    PartialRun run;
    std::map<std::string, Output> tensors;
    std::map<std::string, Operation> targets;
  };
  struct Callable;

  MasterSession() = default;
  absl::StatusOr<Tensors> RunFull(proto::RunStepRequest& request, const RunOptions& options);
  absl::StatusOr<Tensors> RunPartial(proto::RunStepRequest& request, const RunOptions& options);

  Graph graph_;
  std::unique_ptr<Session> session_;
  bool shares_state_ = true;
  std::atomic<int64_t> version_{0};
  std::mutex extend_mutex_;  // held by Extend; guards what follows
  std::set<std::string> containers_holding_functions_;

  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::shared_ptr<PartialRunState>> partial_runs_;
  std::map<int64_t, std::shared_ptr<const Callable>> callables_;
  int64_t next_handle_ = 0;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_MASTER_SESSION_H_
