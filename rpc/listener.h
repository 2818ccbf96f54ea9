#ifndef WEIR_RPC_LISTENER_H_
#define WEIR_RPC_LISTENER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/core/status.h"

namespace weir::rpc {

// Accepts connections on a thread of its own. gRPC's own listener stops for good when the process
// has no file descriptor left for a connection; this one closes what it cannot serve, and goes on.
//
// Some descriptors are kept for files and for the process itself. A connection that would take one
// of these is closed at once: its client sees UNAVAILABLE.
class Listener {
 public:
  // Listens when it returns: at all addresses that the name has, on one port (0: a free one).
  // UNAVAILABLE if the port is taken, or the address is none of this machine's.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(const std::string& address, int port);
  // Closes the port. Connections stay.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }
  // Hands out each connection: a descriptor, which belongs to `take` from then on. To be called
  // once.
  void Start(std::function<void(int connection)> take);

 private:
  Listener() = default;
  void Accept();
  void TakeConnection(int socket);

  int port_ = 0;
  std::vector<int> sockets_;
  int stop_ = -1;   // an eventfd
  int spare_ = -1;  // given up to accept, and close, a connection when there is no other descriptor
  int limit_ = 0;   // connections have descriptors below it
  std::function<void(int)> take_;
  std::thread thread_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LISTENER_H_
