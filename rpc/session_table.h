#ifndef WEIR_RPC_SESSION_TABLE_H_
#define WEIR_RPC_SESSION_TABLE_H_

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/status.h"
#include "weir/rpc/lib/clients.h"

namespace weir::rpc {

// Returns 32 hexadecimal digits of the system's random numbers: nobody can guess them.
std::string NewSessionHandle();

// How many sessions there may be, and how long they live without their clients.
struct SessionTableLimits {
  int max_sessions = 0;                 // at a time
  std::chrono::milliseconds idle{0};    // without a call; zero: forever
  std::chrono::milliseconds orphan{0};  // without an open connection; zero: forever
};

// The open sessions of a server, by handle. A session belongs to the client that created it: for
// others it does not exist. `Session` is any type. Thread-safe.
template <class Session>
class SessionTable {
 public:
  // Null: the client of all calls, where the server does not know its clients.
  using ClientPtr = std::shared_ptr<Client>;

  // Creates an empty table.
  explicit SessionTable(const SessionTableLimits& limits) : limits_(limits) {}

  // Returns RESOURCE_EXHAUSTED if the server has as many sessions as allowed, `others` of which are
  // not in the table, or if the client has.
  absl::Status CheckRoom(const ClientPtr& client, size_t others = 0) const {
    const MutexLock lock(mutex_);
    return CheckRoomLocked(client, others);
  }

  // Adds a session, used by a call on this connection. Returns its handle, or the error of
  // CheckRoom.
  absl::StatusOr<std::string> Add(std::shared_ptr<Session> session, const ClientPtr& client,
                                  const std::string& connection, size_t others = 0) {
    const std::string handle = NewSessionHandle();
    const MutexLock lock(mutex_);
    WEIR_RETURN_IF_ERROR(CheckRoomLocked(client, others));
    const Clock::time_point now = Clock::now();
    entries_[handle] = Entry{std::move(session), client, 0, now, {connection}, now};
    return handle;
  }

  // A session in use by one call: it does not become idle.
  class Use {
   public:
    // Finds the session of this handle; false if the client has none.
    Use(SessionTable& table, const std::string& handle, const ClientPtr& client,
        const std::string& connection)
        : table_(table), handle_(handle) {
      const MutexLock lock(table_.mutex_);
      Entry* const entry = table_.Find(handle, client);
      if (entry == nullptr) return;
      ++entry->calls;
      entry->connections.insert(connection);
      entry->connected_at = Clock::now();
      session_ = entry->session;
    }
    ~Use() {
      if (session_ == nullptr) return;
      const MutexLock lock(table_.mutex_);
      const auto it = table_.entries_.find(handle_);
      if (it == table_.entries_.end()) return;
      --it->second.calls;
      it->second.idle_since = Clock::now();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    explicit operator bool() const { return session_ != nullptr; }
    Session* operator->() const { return session_.get(); }
    Session& operator*() const { return *session_; }

   private:
    SessionTable& table_;
    const std::string handle_;
    std::shared_ptr<Session> session_;
  };

  // A session that is no longer in the table, and its client.
  struct Removed {
    std::shared_ptr<Session> session;
    ClientPtr client;
  };
  // Removes a session; returns null if the client has none of this handle.
  Removed Remove(const std::string& handle, const ClientPtr& client) {
    const MutexLock lock(mutex_);
    Entry* const entry = Find(handle, client);
    if (entry == nullptr) return {};
    const Removed removed = {std::move(entry->session), client};
    entries_.erase(handle);
    return removed;
  }
  // Remove all sessions, or all of a client.
  std::vector<Removed> RemoveAll() {
    return RemoveIf([](const Entry&) { return true; });
  }
  std::vector<Removed> RemoveAllOf(const ClientPtr& client) {
    return RemoveIf([&](const Entry& entry) { return entry.client == client; });
  }
  // Removes those that have been idle or orphaned for too long. `is_open` returns whether a
  // connection still exists.
  std::vector<Removed> RemoveIdle(absl::FunctionRef<bool(const std::string& connection)> is_open) {
    const Clock::time_point now = Clock::now();
    {
      const MutexLock lock(mutex_);
      for (auto& [handle, entry] : entries_) {
        std::erase_if(entry.connections, [&](const std::string& connection) {
          return !connection.empty() && !is_open(connection);
        });
        if (!entry.connections.empty()) entry.connected_at = now;
      }
    }
    const auto is_over = [now](std::chrono::milliseconds limit, Clock::time_point since) {
      return limit.count() > 0 && now - since > limit;
    };
    return RemoveIf([&](const Entry& entry) {
      return entry.calls == 0 && (is_over(limits_.idle, entry.idle_since) ||
                                  is_over(limits_.orphan, entry.connected_at));
    });
  }

  // Returns all sessions.
  std::vector<std::shared_ptr<Session>> All() const {
    std::vector<std::shared_ptr<Session>> all;
    const MutexLock lock(mutex_);
    for (const auto& [handle, entry] : entries_) all.push_back(entry.session);
    return all;
  }

  int size() const {
    const MutexLock lock(mutex_);
    return static_cast<int>(entries_.size());
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::shared_ptr<Session> session;
    ClientPtr client;
    int calls = 0;  // calls in progress
    Clock::time_point idle_since;
    // The connections that have called it, and when one of them was last seen open.
    std::set<std::string> connections;
    Clock::time_point connected_at;
  };

  Entry* Find(const std::string& handle, const ClientPtr& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto it = entries_.find(handle);
    return it == entries_.end() || it->second.client != client ? nullptr : &it->second;
  }

  absl::Status CheckRoomLocked(const ClientPtr& client, size_t others) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (entries_.size() + others >= static_cast<size_t>(limits_.max_sessions)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("The server has reached its limit of ", limits_.max_sessions, " sessions"));
    }
    const int64_t quota = client == nullptr ? 0 : client->quotas().sessions;
    if (quota == 0) return absl::OkStatus();
    int64_t count = 0;
    for (const auto& [handle, entry] : entries_) count += entry.client == client ? 1 : 0;
    return count < quota ? absl::OkStatus() : OverQuota(*client, "sessions", quota);
  }

  std::vector<Removed> RemoveIf(absl::FunctionRef<bool(const Entry&)> which) {
    std::vector<Removed> taken;
    const MutexLock lock(mutex_);
    std::erase_if(entries_, [&](const auto& named) {
      if (!which(named.second)) return false;
      taken.push_back({named.second.session, named.second.client});
      return true;
    });
    return taken;
  }

  const SessionTableLimits limits_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_SESSION_TABLE_H_
