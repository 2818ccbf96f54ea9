#include "weir/rpc/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "weir/core/tensor/system_memory.h"
#include "weir/rpc/cluster/cluster_task.h"
#include "weir/rpc/cluster/receive_service.h"
#include "weir/rpc/cluster_session.h"
#include "weir/rpc/isolated_master.h"
#include "weir/rpc/lib/call_watch.h"
#include "weir/rpc/lib/connections.h"
#include "weir/rpc/lib/credentials.h"
#include "weir/rpc/lib/listener.h"
#include "weir/rpc/lib/memory_trimmer.h"
#include "weir/rpc/lib/run_metadata.h"
#include "weir/rpc/models/model_service.h"
#include "weir/rpc/models/prediction_service.h"
#include "weir/rpc/service.h"

namespace weir::rpc {

namespace {

// Closes connections that have not completed the handshake by then.
constexpr int kHandshakeMs = 20'000;
// The name under which health checks report whether the models are ready.
constexpr char kPredictionService[] = "tensorflow.serving.PredictionService";
// gRPC's threads, besides those of CallWatch: a few wait for calls, and the others serve
// administrative calls and refuse the rest.
constexpr int kReservedThreads = 16;

// The requests that are being received may together take half of the memory that is free at the
// start, or as much as one of the default size for strangers. Beyond it, gRPC cancels some of them.
size_t MaxReceivingBytes() {
  constexpr int64_t kLeast = int64_t{64} << 20;
  return static_cast<size_t>(std::max(kLeast, SystemBytesFree() / 2));
}

// Returns "[::1]:80" for an IPv6 address.
std::string WithPort(const std::string& address, int port) {
  const bool bare_ipv6 = absl::StrContains(address, ":") && !absl::StartsWith(address, "[");
  return bare_ipv6 ? absl::StrCat("[", address, "]:", port) : absl::StrCat(address, ":", port);
}

bool IsEmpty(const TlsFiles& files) {
  return files.certificate.empty() && files.key.empty() && files.client_authority.empty();
}

}  // namespace

absl::Status CheckTlsFiles(const TlsFiles& files) {
  return IsEmpty(files) ? absl::OkStatus() : TlsCredentials::Create(files).status();
}

struct Server::Transport {
  // `isolated` and `task` may be null.
  Transport(Master& master, IsolatedMaster* isolated, ClusterTask* task,
            const ServerOptions& options, std::unique_ptr<Listener> bound)
      : listener(std::move(bound)),
        connections(options.max_connections > 0 ? options.max_connections : listener->capacity(),
                    options.max_client_connections > 0 ? options.max_client_connections
                                                       : std::max(1, listener->capacity() / 2)),
        watch(options.max_calls, std::max(options.max_calls, options.min_receiving_calls),
              options.transfer_limit,
              [this, &master, isolated, task] {
                const auto is_open = [this](const std::string& name) {
                  return connections.IsOpen(name);
                };
                trimmer.Trim();
                master.CloseIdleSessions(is_open);
                if (isolated != nullptr) isolated->CloseIdleSessions(is_open);
                if (task != nullptr) task->CloseIdleSessions();
              }),
        service(watch, options.max_request_bytes, options.clients, options.on_call) {
    if (options.sessions && isolated == nullptr) service.Add(master);
    if (options.sessions && isolated != nullptr) service.Add(*isolated);
    if (task != nullptr) {
      service.Add(*task);
      receive = std::make_unique<ReceiveService>(*task, options.clients);
    }
    if (options.models == nullptr) return;
    predictions = std::make_unique<PredictionService>(
        *options.models, PredictionOptions{options.request_log,
                                           ShorterLimit(options.master.default_step_limit,
                                                        options.master.max_step_limit),
                                           options.master.max_response});
    models = std::make_unique<ModelService>(*options.models, options.reload_models);
    service.Add(*predictions);
    service.Add(*models);
  }

  // Passes a connection to gRPC, or closes it if there are too many.
  void Take(int connection) {
    if (!connections.Add(connection)) {
      close(connection);
      return;
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection;
    acceptor->HandleNewConnection(&parameters);
  }

  std::unique_ptr<Listener> listener;
  Connections connections;
  MemoryTrimmer trimmer;
  CallWatch watch;
  std::unique_ptr<PredictionService> predictions;  // null without models
  std::unique_ptr<ModelService> models;
  GrpcService service;
  std::unique_ptr<ReceiveService> receive;  // null outside of clusters
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
};

Server::Server() = default;

Server::~Server() {
  if (transport_ != nullptr) Drain(std::chrono::milliseconds(0));
}

absl::Status Server::JoinCluster(const ServerOptions& options) {
  const ClusterOptions& cluster = *options.cluster;
  if (isolated_ != nullptr || !options.sessions) {
    return InvalidArgument(
        "A task of a cluster runs sessions in its own process: sessions cannot be isolated or off");
  }
  PeerOptions peers = {.token = cluster.token, .timeout = cluster.peer_timeout};
  if (!options.certificate.empty()) {
    cluster_authority_ = cluster.authority;
    peers.authority = cluster.authority.empty() ? options.client_authority : cluster.authority;
    peers.certificate = options.certificate;
    peers.key = options.key;
    if (peers.authority.empty()) {
      return InvalidArgument(
          "A task of a cluster with a certificate calls the others under TLS, and needs the "
          "authority that signed theirs (weir serve --tls-server-ca or --tls-client-ca)");
    }
  }
  MasterOptions master = options.master;
  master.session.resources = master_->resources();
  WEIR_ASSIGN_OR_RETURN(task_, ClusterTask::Create(cluster.cluster, cluster.task,
                                                   master_->devices(), master, std::move(peers)));
  master_->JoinCluster(NewClusterSessionFactory(*task_, std::move(master)));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  std::unique_ptr<Server> server(new Server);
  MasterOptions master = options.master;
  if (options.cluster) master.session.task = options.cluster->task.ToString();
  WEIR_ASSIGN_OR_RETURN(server->master_, Master::Create(std::move(master)));
  if (!options.isolation.program.empty()) {
    WEIR_ASSIGN_OR_RETURN(server->isolated_,
                          IsolatedMaster::Create(options.master, {options.isolation.program,
                                                                  options.isolation.arguments}));
  }
  if (options.cluster) WEIR_RETURN_IF_ERROR(server->JoinCluster(options));
  const TlsFiles tls = {options.certificate, options.key, options.client_authority};
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (!IsEmpty(tls)) {
    WEIR_ASSIGN_OR_RETURN(server->credentials_, TlsCredentials::Create(tls));
    credentials = server->credentials_;
  }
  WEIR_ASSIGN_OR_RETURN(auto listener, Listener::Bind(options.address, options.port));
  auto net = std::make_unique<Transport>(*server->master_, server->isolated_.get(),
                                         server->task_.get(), options, std::move(listener));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  net->acceptor = builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, credentials);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  // Statistics of each connection and call that nothing reads.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  // Closes connections whose peers have vanished without closing them.
  const auto keepalive_ms = static_cast<int>(options.keepalive.count());
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // any number
  // Rejects compressed messages: a few bytes of compressed zeros expand to gigabytes.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP})
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  const int max_streams =
      options.max_connection_calls > 0 ? options.max_connection_calls : net->watch.num_threads();
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, max_streams);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(-1);
  grpc::ResourceQuota quota("calls");
  quota.SetMaxThreads(net->watch.num_threads() + kReservedThreads);
  quota.Resize(MaxReceivingBytes());
  builder.SetResourceQuota(quota);
  builder.RegisterService(&net->service);
  if (net->receive != nullptr) builder.RegisterService(net->receive.get());
  net->server = builder.BuildAndStart();
  if (net->server == nullptr) return absl::UnavailableError("Cannot start the server");
  server->port_ = net->listener->port();
  net->listener->Start([transport = net.get()](int connection) { transport->Take(connection); });
  server->transport_ = std::move(net);
  if (options.models != nullptr) server->SetModelsReady(false);
  server->target_ = absl::StrCat("grpc://", WithPort(options.address, server->port_));
  return server;
}

void Server::SetModelsReady(bool are_ready) {
  if (auto* health = transport_->server->GetHealthCheckService())
    health->SetServingStatus(kPredictionService, are_ready);
}

absl::Status Server::ReplaceTlsFiles(const TlsFiles& files) {
  if (credentials_ == nullptr) return FailedPrecondition("The server does not use TLS");
  WEIR_RETURN_IF_ERROR(credentials_->Replace(files));
  if (task_ != nullptr) {
    task_->peers().ReplaceTlsFiles(
        cluster_authority_.empty() ? files.client_authority : cluster_authority_, files.certificate,
        files.key);
  }
  return absl::OkStatus();
}

int Server::num_calls() const { return transport_->watch.num_calls(); }

void Server::Join() { transport_->server->Wait(); }

void Server::Drain(std::chrono::milliseconds grace) {
  // Also for models that become ready later.
  if (auto* health = transport_->server->GetHealthCheckService()) health->Shutdown();
  transport_->listener = nullptr;
  // Clients recover from UNAVAILABLE, but not from gRPC's cancellation, which ends what is left
  // then.
  constexpr std::chrono::milliseconds kTimeToAnswer(500);
  transport_->watch.EndCallsAt(std::chrono::steady_clock::now() + grace,
                               absl::UnavailableError("The server is shutting down"));
  transport_->server->Shutdown(std::chrono::system_clock::now() + grace + kTimeToAnswer);
  transport_->server->Wait();
  if (task_ != nullptr) task_->CloseAll();
  master_->CloseAll();
  if (isolated_ != nullptr) isolated_->CloseAll();
}

int Server::num_sessions() const {
  return master_->num_sessions() + (isolated_ == nullptr ? 0 : isolated_->num_sessions());
}

}  // namespace weir::rpc
