#ifndef WEIR_RPC_SERVER_H_
#define WEIR_RPC_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/rpc/cluster/cluster_spec.h"
#include "weir/rpc/lib/tls_files.h"
#include "weir/rpc/master.h"

namespace weir::serving {
class ModelManager;
struct ModelConfig;
}  // namespace weir::serving

// Servers: other processes run graphs on them through "grpc://" targets (client.h), or TensorFlow's
// sessions.
namespace weir::rpc {

class Clients;
class ClusterTask;
class IsolatedMaster;
class RequestLog;
class TlsCredentials;

// Returns INVALID_ARGUMENT if these are neither empty nor a certificate, its key and an authority.
absl::Status CheckTlsFiles(const TlsFiles& files);

// How a server runs each session in a process of its own.
struct IsolationOptions {
  // The program that the server starts, which calls RunWorker (worker.h), and its arguments. Empty:
  // sessions run in the server's process.
  std::string program = {};
  std::vector<std::string> arguments = {};
};

// What makes a server a task of a cluster (cluster/cluster_task.h).
struct ClusterOptions {
  ClusterSpec cluster;  // all tasks
  TaskName task;        // this one
  // With the server's certificate, tasks call each other under TLS, and show their certificates:
  // the authority that has signed those of all tasks, for the names or addresses that they have in
  // the cluster. Empty: `client_authority` of the server.
  std::string authority = {};
  // Proves who this task is, to tasks that know their clients by tokens (ServerOptions::clients).
  std::string token = {};
  // A step that waits for another task ends when the task has not answered for so long, although
  // its connection is open: UNAVAILABLE (cluster/peer_watch.h). Zero: it waits forever.
  std::chrono::milliseconds peer_timeout = std::chrono::seconds(60);
};

// Options of a server.
struct ServerOptions {
  std::string address = "127.0.0.1";  // the address to listen on; "0.0.0.0": all
  int port = 0;                       // 0: a free one
  // TLS: see TlsFiles. Without a certificate, connections are not encrypted.
  std::string certificate = {}, key = {}, client_authority = {};
  // Larger requests are RESOURCE_EXHAUSTED.
  int max_message_bytes = 0x7fffffff;
  // The memory that a parsed request may take in any case. Beyond it, a request may take 3 times
  // its bytes; more is RESOURCE_EXHAUSTED.
  uint64_t max_request_bytes = 256 << 20;
  // The number of concurrent calls, each of which has its own thread; more are RESOURCE_EXHAUSTED.
  // Calls that close sessions, or ask for the status, do not count.
  int max_calls = 1000;
  // So many calls may be receiving their requests in any case, and `max_calls` if that is more.
  // Each has its own thread. A client (address) may have half of them.
  int min_receiving_calls = 128;
  // The number of concurrent calls on one connection (0: no limit of its own). gRPC's clients wait
  // before they start more.
  int max_connection_calls = 0;
  // A client must send a request, and read a response, within this time; zero: no limit. Later the
  // call is CANCELLED and its memory is freed.
  std::chrono::milliseconds transfer_limit = std::chrono::minutes(5);
  // The number of connections, in total (0: as many as there are descriptors) and from one address
  // (0: half of these). More are closed at once.
  int max_connections = 0, max_client_connections = 0;
  // Pings clients that often, and closes connections whose client does not answer for as long.
  std::chrono::milliseconds keepalive = std::chrono::minutes(1);
  // If set, called after each call, on its thread.
  OnCall on_call = {};
  // The clients that it admits (clients.h); each has sessions and state of its own, but in a
  // cluster, where all share the state. Null: everyone, as one client.
  std::shared_ptr<Clients> clients = nullptr;
  // Whether sessions run in processes of their own, and how.
  IsolationOptions isolation = {};
  MasterOptions master = {};
  // The cluster that it is a task of, if any: it then runs the parts of steps that masters of other
  // tasks send, with the state of its own sessions, whose graphs run on all tasks
  // (cluster_session.h). Needs sessions in this process. With `clients`, tasks are among them:
  // each must name the others.
  std::optional<ClusterOptions> cluster = {};
  bool sessions = true;  // serve the master service: clients may send graphs and run them
  // The models to serve with TensorFlow Serving's services; null: none. The models, and what is
  // below, must outlive the server.
  serving::ModelManager* models = nullptr;
  // Serves other models, as a client asks (ModelService); null: clients may not ask.
  std::function<absl::Status(std::vector<serving::ModelConfig>)> reload_models = {};
  RequestLog* request_log = nullptr;
};

// A server for TensorFlow's and Weir's clients, on gRPC's threads. Besides the master service and
// the services of models, it implements gRPC's health checks: the service "" is serving until the
// server drains, and "tensorflow.serving.PredictionService" also only after SetModelsReady.
class Server {
 public:
  // Listens on return. Returns INVALID_ARGUMENT for invalid certificates, UNAVAILABLE if the port
  // is in use.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  // Cancels running calls.
  ~Server();

  int port() const { return port_; }  // that it listens on
  // "grpc://127.0.0.1:41234"
  const std::string& target() const { return target_; }
  // The sessions that it runs in its process. Owned by the server.
  Master& master() { return *master_; }
  // The number of open sessions, in whatever process.
  int num_sessions() const;
  // The number of calls in progress.
  int num_calls() const;

  // Reports the models as ready or not, for health checks.
  void SetModelsReady(bool are_ready);

  // Uses these files for later connections, also to other tasks of a cluster, whose authority is
  // then `client_authority` unless ClusterOptions names one. Returns INVALID_ARGUMENT, and keeps
  // the old ones, if they are invalid, or if clients would need certificates and did not before, or
  // vice versa; FAILED_PRECONDITION if the server does not use TLS.
  absl::Status ReplaceTlsFiles(const TlsFiles& files);

  // Returns when the server stops accepting calls, by Drain on another thread: at the end of the
  // process, for most.
  void Join();

  // Stops accepting calls, reports itself as not serving, and returns when the calls in progress
  // have ended. Calls that take longer than `grace` end with UNAVAILABLE.
  void Drain(std::chrono::milliseconds grace);

 private:
  struct Transport;
  Server();
  absl::Status JoinCluster(const ServerOptions& options);

  std::unique_ptr<ClusterTask> task_;            // null outside of clusters
  std::unique_ptr<Master> master_;               // its sessions use the task
  std::unique_ptr<IsolatedMaster> isolated_;     // null if sessions run in this process
  std::shared_ptr<TlsCredentials> credentials_;  // null without TLS
  std::string cluster_authority_;                // ClusterOptions::authority
  std::unique_ptr<Transport> transport_;
  int port_ = 0;
  std::string target_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_SERVER_H_
