#ifndef WEIR_RPC_MASTER_SESSION_H_
#define WEIR_RPC_MASTER_SESSION_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "weir/core/tensor/status.h"
#include "weir/rpc/lib/call.h"
#include "weir/rpc/lib/server_device.h"

namespace weir::proto {
class CallableOptions;
class CreateSessionRequest;
class GraphDef;
class PartialRunSetupRequest;
class ResetRequest;
class RunCallableRequest;
class RunCallableResponse;
class RunStepRequest;
class RunStepResponse;
}  // namespace weir::proto

namespace weir::rpc {

// One session of a server: a growing graph, and the steps prepared by clients. Thread-safe; several
// clients may use one session.
class MasterSession {
 public:
  virtual ~MasterSession() = default;

  // The number of extensions of the graph.
  virtual int64_t graph_version() const = 0;
  // Adds functions and nodes, whose inputs may be existing nodes. Returns the new version. Returns
  // ABORTED if `version` is not the graph's current version. On an error the graph is unchanged.
  virtual absl::StatusOr<int64_t> Extend(const proto::GraphDef& nodes, int64_t version) = 0;

  // Runs a step, or a part of a partial run. Returns the error of the step, regardless of where the
  // client wants it reported; RESOURCE_EXHAUSTED if there is no memory for the response. Moves the
  // feeds out of the request.
  virtual absl::Status Run(proto::RunStepRequest& request, Call& call,
                           proto::RunStepResponse* response) = 0;
  // Returns the handle by which RunStepRequests refer to the partial run.
  virtual absl::StatusOr<std::string> SetUpPartialRun(const proto::PartialRunSetupRequest& request,
                                                      Call& call) = 0;

  virtual absl::StatusOr<int64_t> MakeCallable(const proto::CallableOptions& options,
                                               Call& call) = 0;
  // Moves the feeds out of the request.
  virtual absl::Status RunCallable(proto::RunCallableRequest& request, Call& call,
                                   proto::RunCallableResponse* response) = 0;
  virtual absl::Status ReleaseCallable(int64_t handle) = 0;

  // Returns the containers of the shared state that hold resources which may call functions of this
  // session (iterators, batchers); none if the graph has no functions. While there are any, the
  // session must be kept alive, even if closed.
  virtual std::set<std::string> ContainersHoldingFunctions() { return {}; }
  // The devices that its nodes may use: those of this process, by the names that the session has
  // for them (none: the names of the server), and those of others.
  virtual std::vector<ServerDevice> local_devices() const { return {}; }
  virtual std::vector<ServerDevice> remote_devices() const { return {}; }
  // Ends running steps with CANCELLED.
  virtual void Close() = 0;
};

// Makes the sessions of a master that is a task of a cluster. Thread-safe.
class SessionFactory {
 public:
  virtual ~SessionFactory() = default;
  virtual absl::StatusOr<std::unique_ptr<MasterSession>> Create(
      const proto::CreateSessionRequest& request, Call& call) = 0;
  // Clears the containers of all tasks, as Master::Reset does.
  virtual absl::Status Reset(const proto::ResetRequest& request, Call& call) = 0;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_MASTER_SESSION_H_
