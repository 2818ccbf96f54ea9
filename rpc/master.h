#ifndef WEIR_RPC_MASTER_H_
#define WEIR_RPC_MASTER_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/tensor/mutex.h"
#include "weir/rpc/lib/call.h"
#include "weir/rpc/lib/master_options.h"
#include "weir/rpc/lib/request_numbers.h"
#include "weir/rpc/lib/server_device.h"
#include "weir/session/session.h"

namespace weir::proto {
class CloseSessionRequest;
class CloseSessionResponse;
class CreateSessionRequest;
class CreateSessionResponse;
class ExtendSessionRequest;
class ExtendSessionResponse;
class ListDevicesRequest;
class ListDevicesResponse;
class MakeCallableRequest;
class MakeCallableResponse;
class PartialRunSetupRequest;
class PartialRunSetupResponse;
class ReleaseCallableRequest;
class ReleaseCallableResponse;
class ResetRequest;
class ResetResponse;
class RunCallableRequest;
class RunCallableResponse;
class RunStepRequest;
class RunStepResponse;
}  // namespace weir::proto

// The part of a server that runs sessions. Programs reach it through Server (server.h).
namespace weir::rpc {

class Client;
class MasterSession;
class Reaper;
class SessionFactory;
template <class Session>
class SessionTable;

// The server without the network layer: sessions by handle, and the state that they share. Each
// method of TensorFlow's master service is one function from request (proto/master.proto) to
// response. Thread-safe.
//
// All sessions of a client share their state, by container and name, unless the ConfigProto has
// `isolate_session_state`; then the state is destroyed with the session. RunStep and RunCallable
// move the feeds out of their requests, so large ones are not copied.
//
// clang-format off
//   ABORTED             no (or no longer a) session with that handle, or one of another client; an
//                       ExtendSession for another version of the graph; a duplicate request_id
//   INVALID_ARGUMENT    a malformed request; a node that already exists in the graph
//   PERMISSION_DENIED   an op that the graph limits exclude
//   RESOURCE_EXHAUSTED  too many sessions; too large a response, or no memory for it; a graph
//                       beyond the limits; memory beyond that of a step, a session or a client
// clang-format on
//
// In addition: the errors of importing and running a graph.
class Master {
 public:
  // Creates a master without sessions. Returns the errors of creating devices.
  static absl::StatusOr<std::unique_ptr<Master>> Create(MasterOptions options);
  ~Master();
  // From now on, sessions run on the tasks of a cluster, as the factory makes them. Call it before
  // any other method.
  void JoinCluster(std::unique_ptr<SessionFactory> cluster);

  // The methods of TensorFlow's master service; see above.
  absl::Status CreateSession(const proto::CreateSessionRequest& request, Call& call,
                             proto::CreateSessionResponse* response);
  absl::Status ExtendSession(const proto::ExtendSessionRequest& request, Call& call,
                             proto::ExtendSessionResponse* response);
  absl::Status PartialRunSetup(const proto::PartialRunSetupRequest& request, Call& call,
                               proto::PartialRunSetupResponse* response);
  // With `store_errors_in_response_body`, an error of the step is returned in the response.
  absl::Status RunStep(proto::RunStepRequest& request, Call& call,
                       proto::RunStepResponse* response);
  absl::Status CloseSession(const proto::CloseSessionRequest& request, Call& call,
                            proto::CloseSessionResponse* response);
  // With a session, also the devices of other tasks that it uses.
  absl::Status ListDevices(const proto::ListDevicesRequest& request, Call& call,
                           proto::ListDevicesResponse* response);
  // Closes all sessions of the client, and clears the named ones of its containers (if none is
  // named, the default one).
  absl::Status Reset(const proto::ResetRequest& request, Call& call,
                     proto::ResetResponse* response);
  absl::Status MakeCallable(const proto::MakeCallableRequest& request, Call& call,
                            proto::MakeCallableResponse* response);
  absl::Status RunCallable(proto::RunCallableRequest& request, Call& call,
                           proto::RunCallableResponse* response);
  absl::Status ReleaseCallable(const proto::ReleaseCallableRequest& request, Call& call,
                               proto::ReleaseCallableResponse* response);

  // Closes sessions that have been idle or orphaned for too long; call it periodically.
  // `is_open` returns whether a connection still exists.
  void CloseIdleSessions(absl::FunctionRef<bool(const std::string& connection)> is_open);
  // Ends every step and closes all sessions; later calls return ABORTED.
  void CloseAll();
  int num_sessions() const;
  // The devices of all sessions, the CPU first.
  const std::vector<ServerDevice>& devices() const { return devices_; }
  // The state that the sessions of everyone share, where clients are not told apart.
  std::shared_ptr<ResourceMap> resources() { return ResourcesOf(nullptr); }

 private:
  using Sessions = SessionTable<MasterSession>;
  // A closed session whose functions may still be called, and the containers from which.
  struct ClosedSession {
    std::shared_ptr<MasterSession> session;
    std::shared_ptr<Client> client;
    std::set<std::string> containers;
  };

  explicit Master(MasterOptions options);
  absl::StatusOr<std::unique_ptr<MasterSession>> CreateLocalSession(
      const proto::CreateSessionRequest& request, Call& call);
  // Returns the state that the client's sessions share.
  std::shared_ptr<ResourceMap> ResourcesOf(const std::shared_ptr<Client>& client);
  // The number of closed sessions that are kept.
  size_t NumKept() const;
  absl::Status CheckUnique(int64_t request_id, const char* method, const Call& call);
  void Close(const std::shared_ptr<MasterSession>& session, const std::shared_ptr<Client>& client);

  const MasterOptions options_;
  std::vector<ServerDevice> devices_;
  std::unique_ptr<SessionFactory> cluster_;  // null outside of clusters; outlives the sessions
  const std::unique_ptr<Reaper> reaper_;     // destroys the sessions below
  const std::unique_ptr<Sessions> sessions_;
  RequestNumbers requests_;

  mutable Mutex mutex_;
  // The state that the sessions of a client share, by the client.
  std::map<std::shared_ptr<Client>, std::shared_ptr<ResourceMap>> resources_
      ABSL_GUARDED_BY(mutex_);
  std::vector<ClosedSession> closed_sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_MASTER_H_
