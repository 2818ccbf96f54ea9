#ifndef WEIR_RPC_LIB_LISTENER_H_
#define WEIR_RPC_LIB_LISTENER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/core/tensor/status.h"

namespace weir::rpc {

// Returns whether only this machine can reach an address or a name to listen on, such as
// "127.0.0.1".
bool IsLoopback(const std::string& address);

// Accepts connections on its own thread. gRPC's own listener stops permanently when the process has
// no file descriptor left for a connection; this one closes the connections that it cannot serve,
// and continues.
//
// Some descriptors are reserved for files and for the process itself. A connection that would use
// one of these is closed at once, and its client gets UNAVAILABLE.
class Listener {
 public:
  // Listens on return: on all addresses of the name, on one port (0: a free one). Returns
  // UNAVAILABLE if the port is in use, or the address does not belong to this machine.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(const std::string& address, int port);
  // Closes the port. Connections stay open.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }
  // The number of connections for which there are descriptors.
  int capacity() const { return limit_; }
  // Passes each connection to `take`, which takes ownership of the descriptor. Call once.
  void Start(std::function<void(int connection)> take);

 private:
  Listener() = default;
  void Accept();
  void AcceptConnection(int socket);

  int port_ = 0;
  std::vector<int> sockets_;
  int stop_ = -1;  // an eventfd
  // Closed in order to accept, and close, a connection when no other descriptor is free.
  int spare_ = -1;
  int limit_ = 0;  // connections must have descriptors below it
  std::function<void(int)> take_;
  std::thread thread_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_LISTENER_H_
