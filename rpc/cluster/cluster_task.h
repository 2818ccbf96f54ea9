#ifndef WEIR_RPC_CLUSTER_CLUSTER_TASK_H_
#define WEIR_RPC_CLUSTER_CLUSTER_TASK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/rpc/cluster/cluster_spec.h"
#include "weir/rpc/cluster/peers.h"
#include "weir/rpc/cluster/step_exchange.h"
#include "weir/rpc/cluster/worker_sessions.h"
#include "weir/rpc/lib/call.h"
#include "weir/rpc/lib/master_options.h"
#include "weir/rpc/lib/request_numbers.h"
#include "weir/rpc/lib/server_device.h"
#include "weir/rpc/lib/timer.h"

namespace weir::proto {
class CleanupAllRequest;
class CleanupAllResponse;
class CleanupGraphRequest;
class CleanupGraphResponse;
class CreateWorkerSessionRequest;
class CreateWorkerSessionResponse;
class DeleteWorkerSessionRequest;
class DeleteWorkerSessionResponse;
class DeregisterGraphRequest;
class DeregisterGraphResponse;
class GetStatusRequest;
class GetStatusResponse;
class LoggingRequest;
class LoggingResponse;
class MarkRecvFinishedRequest;
class MarkRecvFinishedResponse;
class RegisterGraphRequest;
class RegisterGraphResponse;
class RunGraphRequest;
class RunGraphResponse;
}  // namespace weir::proto

namespace weir::rpc {

class PartialSteps;

// A task of a cluster, without the network layer: the methods of TensorFlow's WorkerService, by
// which masters run the parts of their graphs that are placed on this task. Thread-safe.
//
// A master opens a session (CreateWorkerSession), sends its part of each step once (RegisterGraph)
// and runs it (RunGraph); the parts of a step run on all tasks at the same time, and fetch from
// each other what they need (Receive). Sessions of one master and of many share variables, queues
// and tables by container and name, unless they are isolated.
//
// clang-format off
//   ABORTED             no session or graph of this handle: this task was perhaps restarted since;
//                       a value asked of a task that ran here before; a step that has ended; a
//                       request that came twice
//   INVALID_ARGUMENT    a malformed request
//   RESOURCE_EXHAUSTED  too many worker sessions, steps or waits; memory or values beyond the limits
// clang-format on
//
// ABORTED, and UNAVAILABLE for another task that is lost (peers.h), are the errors after which
// TensorFlow's MonitoredSession starts again from a checkpoint. In addition: the errors of
// importing and running a graph. The limits are those of the server's sessions (MasterOptions).
class ClusterTask {
 public:
  // A task of this name, with these devices. `options` are those of the server's master, with the
  // state that all sessions share. INVALID_ARGUMENT if the task is not in the cluster.
  static absl::StatusOr<std::unique_ptr<ClusterTask>> Create(const ClusterSpec& cluster,
                                                             const TaskName& task,
                                                             std::vector<ServerDevice> devices,
                                                             MasterOptions options,
                                                             PeerOptions peers = {});
  // All calls must have ended.
  ~ClusterTask();

  // The methods of TensorFlow's worker service; see above.
  absl::Status GetStatus(const proto::GetStatusRequest& request, Call& call,
                         proto::GetStatusResponse* response);
  absl::Status CreateWorkerSession(const proto::CreateWorkerSessionRequest& request, Call& call,
                                   proto::CreateWorkerSessionResponse* response);
  absl::Status DeleteWorkerSession(const proto::DeleteWorkerSessionRequest& request, Call& call,
                                   proto::DeleteWorkerSessionResponse* response);
  // Uses up the graph of the request.
  absl::Status RegisterGraph(proto::RegisterGraphRequest& request, Call& call,
                             proto::RegisterGraphResponse* response);
  absl::Status DeregisterGraph(const proto::DeregisterGraphRequest& request, Call& call,
                               proto::DeregisterGraphResponse* response);
  // With `store_errors_in_response_body`, an error of the step is returned in the response. Moves
  // the values out of the request.
  absl::Status RunGraph(proto::RunGraphRequest& request, Call& call,
                        proto::RunGraphResponse* response);
  // Ends the step, if it still runs.
  absl::Status CleanupGraph(const proto::CleanupGraphRequest& request, Call& call,
                            proto::CleanupGraphResponse* response);
  // Clears the named containers; if none is named, the default one.
  absl::Status CleanupAll(const proto::CleanupAllRequest& request, Call& call,
                          proto::CleanupAllResponse* response);
  // Nothing is logged: the answer is empty.
  absl::Status Logging(const proto::LoggingRequest& request, Call& call,
                       proto::LoggingResponse* response);
  // Nothing is kept for a receiver that may not have it.
  absl::Status MarkRecvFinished(const proto::MarkRecvFinishedRequest& request, Call& call,
                                proto::MarkRecvFinishedResponse* response);

  // RecvTensor: waits for a value that this task sends, without holding a thread. `cancellation`
  // outlives the call of `done`.
  void Receive(int64_t step_id, const std::string& key, int64_t request_id,
               Cancellation* cancellation, Rendezvous::Done done);

  // Ends sessions that have been idle for too long; call it periodically.
  void CloseIdleSessions() { sessions_.RemoveIdle(); }
  // Ends every step. Later calls return ABORTED.
  void CloseAll();

  // Who and where it is, and the connections to the others: what a master on this task needs.
  const ClusterSpec& cluster() const { return cluster_; }
  const TaskName& name() const { return task_; }
  const std::vector<ServerDevice>& devices() const { return devices_; }
  Peers& peers() { return peers_; }
  Timer& timer() { return timer_; }
  // Where the values of a step cross that this task sends.
  std::shared_ptr<LocalRendezvous> Exchange(int64_t step_id);

 private:
  ClusterTask(const ClusterSpec& cluster, const TaskName& task, std::vector<ServerDevice> devices,
              MasterOptions options, PeerOptions peers);
  absl::StatusOr<std::shared_ptr<WorkerSession>> FindSession(const std::string& handle,
                                                             const Call& call);
  // Runs a part, or a piece of it, and takes the values that the request asks for.
  absl::Status RunPart(const std::shared_ptr<WorkerSession>& session,
                       const std::shared_ptr<GraphPart>& part, proto::RunGraphRequest& request,
                       const RunOptions& options, Call& call, proto::RunGraphResponse* response);
  absl::Status CheckIncarnation(const RendezvousKey& key) const;

  const ClusterSpec cluster_;
  const TaskName task_;
  const MasterOptions options_;
  const std::vector<ServerDevice> devices_;
  Timer timer_;
  Peers peers_;
  StepTable steps_;
  RequestNumbers runs_, receives_;
  WorkerSessions sessions_;
  const std::unique_ptr<PartialSteps> partial_steps_;
  std::atomic<int64_t> next_graph_{1};
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_CLUSTER_TASK_H_
