#include "weir/rpc/cluster/worker_sessions.h"

#include <utility>

namespace weir::rpc {

absl::Status WorkerSessions::CheckRoomLocked(const ClientPtr& client) const {
  // Those that have ended, and are kept for their functions, take memory too.
  if (sessions_.size() + ended_.size() >= static_cast<size_t>(max_sessions_)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The task has reached its limit of ", max_sessions_,
                     " worker sessions (weir serve --max-sessions)"));
  }
  const int64_t quota = client == nullptr ? 0 : client->quotas().sessions;
  if (quota == 0) return absl::OkStatus();
  int64_t count = 0;
  for (const auto& [handle, entry] : sessions_)
    count += entry.session->options().client == client ? 1 : 0;
  return count < quota ? absl::OkStatus() : OverQuota(*client, "sessions", quota);
}

absl::Status WorkerSessions::Add(const std::string& handle,
                                 std::shared_ptr<WorkerSession> session) {
  const WorkerSessionOptions& added = session->options();
  RemoveIf([&](const std::string&, const Entry& entry) {
    const WorkerSessionOptions& other = entry.session->options();
    return !added.master_task.empty() && other.master_task == added.master_task &&
           other.master_incarnation != added.master_incarnation && other.client == added.client;
  });
  Remove(handle, added.client);
  const MutexLock lock(mutex_);
  if (sessions_.contains(handle))
    return absl::AlreadyExistsError("Another client has a worker session of this handle");
  WEIR_RETURN_IF_ERROR(CheckRoomLocked(added.client));
  sessions_[handle] = {std::move(session), Clock::now()};
  return absl::OkStatus();
}

std::shared_ptr<WorkerSession> WorkerSessions::Find(const std::string& handle,
                                                    const ClientPtr& client) {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(handle);
  if (found == sessions_.end() || found->second.session->options().client != client) return nullptr;
  found->second.used = Clock::now();
  return found->second.session;
}

void WorkerSessions::Remove(const std::string& handle, const ClientPtr& client) {
  RemoveIf([&](const std::string& name, const Entry& entry) {
    return name == handle && entry.session->options().client == client;
  });
}

void WorkerSessions::RemoveIdle() {
  if (idle_limit_.count() == 0) return;
  const Clock::time_point now = Clock::now();
  RemoveIf([&](const std::string&, const Entry& entry) {
    const bool is_running = entry.session.use_count() > 1;
    return !is_running && now - entry.used > idle_limit_;
  });
}

void WorkerSessions::RemoveAll() {
  RemoveIf([](const std::string&, const Entry&) { return true; });
}

void WorkerSessions::RemoveIf(
    absl::FunctionRef<bool(const std::string& handle, const Entry&)> which) {
  std::map<std::string, std::shared_ptr<WorkerSession>> removed;
  {
    const MutexLock lock(mutex_);
    std::erase_if(sessions_, [&](const auto& named) {
      if (!which(named.first, named.second)) return false;
      removed.emplace(named.first, named.second.session);
      return true;
    });
  }
  for (const auto& [handle, session] : removed) {
    session->Close();
    steps_.RemoveSession(handle);
    std::set<std::string> holders = session->ContainersHoldingFunctions();
    if (holders.empty()) continue;
    const MutexLock lock(mutex_);
    ended_.push_back({session, std::move(holders)});
  }
}

void WorkerSessions::Forget(const std::vector<std::string>& containers) {
  std::vector<Ended> unreferenced;  // destroyed without the lock
  const MutexLock lock(mutex_);
  std::erase_if(ended_, [&](Ended& kept) {
    if (containers.empty()) kept.function_holders.erase("");
    for (const std::string& container : containers) kept.function_holders.erase(container);
    if (!kept.function_holders.empty()) return false;
    unreferenced.push_back(std::move(kept));
    return true;
  });
}

}  // namespace weir::rpc
