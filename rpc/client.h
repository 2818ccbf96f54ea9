#ifndef WEIR_RPC_CLIENT_H_
#define WEIR_RPC_CLIENT_H_

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

// Remote sessions, on Weir's or TensorFlow's servers:
//
//   rpc::EnableGrpcTargets();
//   WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g, {.target = "grpc://host:8500"}));
//
// The session then works like any other. The graph is sent when the session is created; later
// additions are sent with the next step. Errors of steps are the server's, with its messages;
// UNAVAILABLE means that the server is down. Destroying the Session closes the remote session.
namespace weir::rpc {

// Options of connections to servers.
struct ClientOptions {
  // TLS, in PEM format: the authorities that sign the servers' certificates, and (for mutual TLS)
  // the client's own certificate and key. Without authorities, connections are not encrypted.
  std::string server_authority = {}, certificate = {}, key = {};
  // Proves who the client is, on servers that ask for a token. Whoever reads it can act as this
  // client, so without TLS it belongs on this machine only.
  std::string token = {};
  // The time limit for opening a session.
  std::chrono::milliseconds connect_timeout{20'000};
  // On a task of a cluster: the tasks that sessions use besides it ("/job:ps",
  // "/job:worker/task:1"); empty: all. A session waits for all its tasks when it is opened, and
  // nodes on other tasks are INVALID_ARGUMENT. A worker that uses only the parameter servers goes
  // on without the other workers.
  std::vector<std::string> device_filters = {};
  // The cluster of the sessions, in place of that of the server: the addresses ("host:port") of the
  // tasks of each job, in order. The tasks are servers that are tasks of some cluster, and one of
  // them has the address of the session's target. Such sessions have variables of their own.
  std::map<std::string, std::vector<std::string>> cluster = {};
};

// Registers "grpc://" targets with Session::Create, process-wide. Another call changes the options
// of sessions opened later.
void EnableGrpcTargets(const ClientOptions& options = {});

// The result of `weir serve --status`.
struct ServerStatus {
  bool serving = false;              // whether it accepts calls
  std::vector<std::string> devices;  // by name
};
// Returns UNAVAILABLE if no server answers.
absl::StatusOr<ServerStatus> GetServerStatus(const std::string& target,
                                             const ClientOptions& options = {});
[[deprecated("use GetServerStatus")]] inline absl::StatusOr<ServerStatus> AskServer(
    const std::string& target, const ClientOptions& options = {}) {
  return GetServerStatus(target, options);
}

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLIENT_H_
