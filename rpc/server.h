#ifndef WEIR_RPC_SERVER_H_
#define WEIR_RPC_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "weir/rpc/master.h"

namespace weir::rpc {

struct ServerOptions {
  std::string address = "127.0.0.1";  // where it listens; "0.0.0.0" for all the world
  int port = 0;                       // 0: one that is free
  // TLS, in PEM format. Without a certificate the server speaks in the clear. With
  // `client_authority` only clients whose certificates that authority has signed are let in.
  std::string certificate = {}, key = {}, client_authority = {};
  // Larger requests are RESOURCE_EXHAUSTED.
  int max_message_bytes = 0x7fffffff;
  // Calls at a time, each with a thread of its own; more are RESOURCE_EXHAUSTED.
  int max_calls = 1000;
  // Called after each call, if given: the method ("RunStep"), how it ended, how long it took.
  std::function<void(absl::string_view method, const absl::Status&, std::chrono::nanoseconds)>
      on_call = {};
  MasterOptions master = {};
};

// A server for TensorFlow's clients, and Weir's, on threads of gRPC's. Besides the master service
// it answers gRPC's health checks.
class Server {
 public:
  // Listens when it returns. INVALID_ARGUMENT for certificates that do not fit, UNAVAILABLE if the
  // port is taken.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  // Cancels what is running.
  ~Server();

  int port() const { return port_; }
  // "grpc://127.0.0.1:41234"
  const std::string& target() const { return target_; }
  Master& master() { return *master_; }
  // Calls in progress.
  int num_calls() const;

  // Takes no more calls, reports itself as not serving, and returns when those in progress have
  // ended; those that take longer than `grace` are cancelled.
  void Drain(std::chrono::milliseconds grace);

 private:
  struct Transport;
  Server();

  std::unique_ptr<Master> master_;
  std::unique_ptr<Transport> transport_;
  int port_ = 0;
  std::string target_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_SERVER_H_
