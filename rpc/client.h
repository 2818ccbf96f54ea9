#ifndef WEIR_RPC_CLIENT_H_
#define WEIR_RPC_CLIENT_H_

#include <chrono>
#include <string>
#include <vector>

#include "weir/core/status.h"

// Sessions on servers, Weir's or TensorFlow's:
//
//   rpc::EnableGrpcTargets();
//   WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g, {.target = "grpc://host:8500"}));
//
// and from there on as any session. The graph is sent when the session is created, and what it gets
// later with the first step after it. Errors of steps are the server's, with its words; UNAVAILABLE
// says that the server has gone. A session is closed with its Session.
namespace weir::rpc {

struct ClientOptions {
  // TLS, in PEM format: the authorities that vouch for servers, and (mutual TLS) the client's own
  // certificate and key. Without authorities the client speaks in the clear.
  std::string server_authority = {}, certificate = {}, key = {};
  // How long a server may take to answer when a session is opened.
  std::chrono::milliseconds connect_timeout{20'000};
};

// Makes targets of "grpc://" known to Session::Create, in all of the process; again: with other
// options, for sessions opened from then on.
void EnableGrpcTargets(const ClientOptions& options = {});

// What `weir serve --status` tells of a server.
struct ServerStatus {
  bool serving = false;
  std::vector<std::string> devices;
};
// UNAVAILABLE if nobody answers.
absl::StatusOr<ServerStatus> GetServerStatus(const std::string& target,
                                             const ClientOptions& options = {});

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLIENT_H_
