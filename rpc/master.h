#ifndef WEIR_RPC_MASTER_H_
#define WEIR_RPC_MASTER_H_

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
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

namespace weir::rpc {

class MasterSession;

struct MasterOptions {
  // What the sessions have in common; `resources` is the server's business.
  SessionOptions session = {};
  // RESOURCE_EXHAUSTED beyond it. Sessions whose iterators others may find count until a Reset.
  int max_sessions = 1000;
  // Sessions that nobody has called for so long are closed: their clients are gone. Zero: never.
  std::chrono::seconds idle_limit = std::chrono::hours(24);
  // The same for those whose last call was broken off by its client, as when it is killed.
  std::chrono::seconds abandoned_limit = std::chrono::minutes(1);
};

// What a server does, apart from the network: sessions by handle, and the state that they share.
// One function a method of TensorFlow's master service, from request (proto/master.proto) to
// response. Thread-safe; a call that takes long can be ended by `cancellation`.
//
// A session's state is that of all sessions, by container and name, unless its ConfigProto has
// `isolate_session_state`; then it goes with the session. RunStep and RunCallable take the values
// fed out of their requests: large ones are not copied.
//
// clang-format off
//   ABORTED             no session has that handle (any more); an ExtendSession for another version
//                       of the graph; a request_id that has come before
//   INVALID_ARGUMENT    a malformed request; a node that the graph has already
//   RESOURCE_EXHAUSTED  too many sessions, too large a response
// clang-format on
//
// besides the errors of importing a graph and of running it.
class Master {
 public:
  static absl::StatusOr<std::unique_ptr<Master>> Create(MasterOptions options);
  ~Master();

  absl::Status CreateSession(const proto::CreateSessionRequest& request, Cancellation& cancellation,
                             proto::CreateSessionResponse* response);
  absl::Status ExtendSession(const proto::ExtendSessionRequest& request, Cancellation& cancellation,
                             proto::ExtendSessionResponse* response);
  absl::Status PartialRunSetup(const proto::PartialRunSetupRequest& request,
                               Cancellation& cancellation,
                               proto::PartialRunSetupResponse* response);
  // With `store_errors_in_response_body` the error of a step stands in the response.
  absl::Status RunStep(proto::RunStepRequest& request, Cancellation& cancellation,
                       proto::RunStepResponse* response);
  absl::Status CloseSession(const proto::CloseSessionRequest& request, Cancellation& cancellation,
                            proto::CloseSessionResponse* response);
  absl::Status ListDevices(const proto::ListDevicesRequest& request, Cancellation& cancellation,
                           proto::ListDevicesResponse* response);
  // Closes all sessions, and drops what is in the containers (none named: in the default one).
  absl::Status Reset(const proto::ResetRequest& request, Cancellation& cancellation,
                     proto::ResetResponse* response);
  absl::Status MakeCallable(const proto::MakeCallableRequest& request, Cancellation& cancellation,
                            proto::MakeCallableResponse* response);
  absl::Status RunCallable(proto::RunCallableRequest& request, Cancellation& cancellation,
                           proto::RunCallableResponse* response);
  absl::Status ReleaseCallable(const proto::ReleaseCallableRequest& request,
                               Cancellation& cancellation,
                               proto::ReleaseCallableResponse* response);

  // Closes sessions that have been idle or abandoned for too long; to be called now and then.
  void CloseIdleSessions();
  // Ends every step; later calls find no session.
  void CloseAll();
  int num_sessions() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::shared_ptr<MasterSession> session;
    int calls = 0;  // in progress
    Clock::time_point idle_since;
    bool client_disconnected = false;  // the last call
  };
  class ActiveSession;
  struct DeviceInfo {
    std::string name, type, description;
    int64_t memory_limit;
    uint64_t incarnation;
  };

  explicit Master(MasterOptions options);
  std::string NewHandle();
  absl::Status CheckUnique(int64_t request_id, const char* method);
  std::vector<std::shared_ptr<MasterSession>> TakeSessions(
      const std::function<bool(const Entry&)>& which);
  void Close(const std::shared_ptr<MasterSession>& session);

  const MasterOptions options_;
  const std::shared_ptr<ResourceMap> resources_;
  std::vector<DeviceInfo> devices_;

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, Entry> sessions_;
  // Closed ones that may be called, and from which containers.
  std::vector<std::pair<std::shared_ptr<MasterSession>, std::set<std::string>>> closed_sessions_;
  absl::flat_hash_set<int64_t> recent_requests_;
  std::deque<int64_t> request_order_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_MASTER_H_
