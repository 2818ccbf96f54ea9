#ifndef WEIR_RPC_CLUSTER_WORKER_SESSIONS_H_
#define WEIR_RPC_CLUSTER_WORKER_SESSIONS_H_

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/tensor/mutex.h"
#include "weir/rpc/cluster/step_exchange.h"
#include "weir/rpc/cluster/worker_session.h"
#include "weir/rpc/lib/clients.h"

namespace weir::rpc {

// The sessions that masters have on a task, by the handles that the masters give them. A session
// belongs to the client that opened it: for others it does not exist. Thread-safe.
class WorkerSessions {
 public:
  using ClientPtr = std::shared_ptr<Client>;  // null: the client of all calls

  // `steps`, which outlives the object, are those that run in the sessions, and end with them. At
  // most `max_sessions`; one without a call for `idle_limit` ends (zero: never).
  WorkerSessions(StepTable& steps, int max_sessions, std::chrono::milliseconds idle_limit)
      : steps_(steps), max_sessions_(max_sessions), idle_limit_(idle_limit) {}
  ~WorkerSessions() { RemoveAll(); }

  // Adds a session, and ends those that its master left behind before it was restarted.
  // RESOURCE_EXHAUSTED if there are too many, or if the client has too many; ALREADY_EXISTS if
  // another client has this handle.
  absl::Status Add(const std::string& handle, std::shared_ptr<WorkerSession> session);
  // Null if the client has none.
  std::shared_ptr<WorkerSession> Find(const std::string& handle, const ClientPtr& client);
  // End a session, if there is one; those that are idle; all.
  void Remove(const std::string& handle, const ClientPtr& client);
  void RemoveIdle();
  void RemoveAll();
  // These containers have been cleared: sessions that have ended are kept no longer for what was in
  // them and could call their functions.
  void Forget(const std::vector<std::string>& containers);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::shared_ptr<WorkerSession> session;
    Clock::time_point used;
  };
  // A session that has ended, and the containers with resources that may call its functions.
  struct Ended {
    std::shared_ptr<WorkerSession> session;
    std::set<std::string> function_holders;
  };

  absl::Status CheckRoomLocked(const ClientPtr& client) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveIf(absl::FunctionRef<bool(const std::string& handle, const Entry&)> which);

  StepTable& steps_;
  const int max_sessions_;
  const std::chrono::milliseconds idle_limit_;
  Mutex mutex_;
  std::map<std::string, Entry> sessions_ ABSL_GUARDED_BY(mutex_);
  std::vector<Ended> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_WORKER_SESSIONS_H_
