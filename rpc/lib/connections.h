#ifndef WEIR_RPC_LIB_CONNECTIONS_H_
#define WEIR_RPC_LIB_CONNECTIONS_H_

#include <chrono>
#include <map>
#include <string>

#include "weir/core/tensor/mutex.h"

namespace weir::rpc {

// The open connections of a server, in total and by client (address), with a limit for both. A
// connection has the name that gRPC gives it: "ipv4:127.0.0.1:41234", "ipv6:%5B::1%5D:41234".
//
// gRPC owns the sockets and does not report when it closes one. So this asks the system which peer
// the descriptor has: after the end of the connection it has none, or another one. Thread-safe.
class Connections {
 public:
  Connections(int limit, int limit_per_client)
      : limit_(limit), limit_per_client_(limit_per_client) {}

  // Adds a connection. Returns false if there are as many as allowed.
  bool Add(int fd);
  // Returns whether this is an open connection.
  bool IsOpen(const std::string& name) const;

 private:
  bool HasRoom(const std::string& client) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int limit_, limit_per_client_;
  mutable Mutex mutex_;
  // Includes connections that have ended since RemoveClosed.
  std::map<std::string, int> descriptors_ ABSL_GUARDED_BY(mutex_);  // by name
  std::map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);       // by client
  std::chrono::steady_clock::time_point removed_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_CONNECTIONS_H_
