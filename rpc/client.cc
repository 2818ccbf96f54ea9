#include "weir/rpc/client.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_method.h>

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/strip.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/tensor/mutex.h"
#include "weir/proto/master.pb.h"
#include "weir/rpc/lib/grpc_status.h"
#include "weir/session/remote_session.h"

namespace weir::rpc {

namespace {

constexpr char kScheme[] = "grpc";

// A connection to a server, and the token that each call on it carries.
struct Connection {
  std::shared_ptr<grpc::Channel> channel;
  std::string token;
};

Connection Connect(const std::string& target, const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A separate connection for each session.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!options.server_authority.empty()) {
    credentials =
        grpc::SslCredentials({options.server_authority, options.key, options.certificate});
  }
  absl::string_view address = target;
  absl::ConsumePrefix(&address, "grpc://");
  return {grpc::CreateCustomChannel(std::string(address), credentials, arguments), options.token};
}

// One call of the master service. Ends early when `cancellation` (may be null) is cancelled.
template <class Request, class Response>
absl::Status Call(const Connection& connection, const char* path, const Request& request,
                  Response* response, grpc::ClientContext& context,
                  Cancellation* cancellation = nullptr) {
  if (!connection.token.empty())
    context.AddMetadata("authorization", absl::StrCat("Bearer ", connection.token));
  int64_t token = 0;
  const bool watched = cancellation != nullptr &&
                       cancellation->OnCancel([&context] { context.TryCancel(); }, &token);
  if (cancellation != nullptr && !watched) return cancellation->status();
  const grpc::internal::RpcMethod method(path, grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Status status = grpc::internal::BlockingUnaryCall(connection.channel.get(), method,
                                                                &context, request, response);
  if (watched) cancellation->Unregister(token);
  if (cancellation != nullptr && cancellation->cancelled()) return cancellation->status();
  return FromGrpc(status);
}

void SetDeadline(std::chrono::milliseconds from_now, grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + from_now);
}

// Sets a deadline for a call whose execution takes the server at most `limit` (zero: any time). The
// deadline detects servers that are down.
void SetLimit(std::chrono::milliseconds limit, grpc::ClientContext* context) {
  constexpr std::chrono::seconds kGrace(5);
  if (limit.count() > 0) SetDeadline(limit + kGrace, context);
}

// Exports the nodes of the graph from number `first` on, and all functions.
proto::GraphDef ExportNodesFrom(const Graph& graph, int first) {
  proto::GraphDef def;
  ExportGraphDef(graph, &def);
  def.mutable_node()->DeleteSubrange(0, first);
  return def;
}

class GrpcSession final : public RemoteSession {
 public:
  GrpcSession(const Graph& graph, Connection connection)
      : graph_(graph), connection_(std::move(connection)) {}

  absl::Status Open(const SessionOptions& options, const ClientOptions& client) {
    proto::CreateSessionRequest request;
    const MutexLock lock(mutex_);
    *request.mutable_graph_def() = ExportNodesFrom(graph_, 0);
    nodes_sent_ = graph_.num_nodes();
    limit_ = options.operation_timeout;
    proto::ConfigProto* config = request.mutable_config();
    config->set_allow_soft_placement(options.allow_soft_placement);
    config->set_log_device_placement(options.log_device_placement);
    config->set_operation_timeout_in_ms(options.operation_timeout.count());
    config->set_isolate_session_state(options.isolate_session_state);
    for (const std::string& filter : client.device_filters) config->add_device_filters(filter);
    for (const auto& [job, addresses] : client.cluster) {
      proto::JobDef* const def = config->mutable_cluster_def()->add_job();
      def->set_name(job);
      for (size_t i = 0; i < addresses.size(); ++i)
        (*def->mutable_tasks())[static_cast<int>(i)] = addresses[i];
    }
    request.set_target(options.target);
    proto::CreateSessionResponse response;
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    SetDeadline(client.connect_timeout, &context);
    absl::Status status =
        Call(connection_, "/tensorflow.MasterService/CreateSession", request, &response, context);
    if (absl::IsDeadlineExceeded(status)) {
      status = absl::UnavailableError(
          absl::StrCat("No answer within ", client.connect_timeout.count(), " ms"));
    }
    if (!status.ok()) return Annotate(status, options.target);
    handle_ = response.session_handle();
    version_ = response.graph_version();
    return absl::OkStatus();
  }

  absl::Status Run(const Request& request, absl::Span<const Tensor> values, Tensors* fetches,
                   const RunOptions& options) override {
    WEIR_RETURN_IF_ERROR(SendNewNodes());
    proto::RunStepRequest message;
    message.set_session_handle(handle_);
    message.set_partial_run_handle(request.partial_run);
    message.set_store_errors_in_response_body(true);
    for (size_t i = 0; i < values.size(); ++i) {
      proto::NamedTensorProto* feed = message.add_feed();
      feed->set_name(request.feeds[i].name());
      TensorToProto(values[i], feed->mutable_tensor());
    }
    for (const Output& fetch : request.fetches) message.add_fetch(fetch.name());
    for (const Operation& target : request.targets) message.add_target(target.name());
    proto::RunStepResponse response;
    grpc::ClientContext context;
    if (options.timeout.count() > 0)
      message.mutable_options()->set_timeout_in_ms(options.timeout.count());
    SetLimit(options.timeout, &context);
    if (options.trace != nullptr)
      message.mutable_options()->set_trace_level(proto::RunOptions::FULL_TRACE);
    WEIR_RETURN_IF_ERROR(Call(connection_, "/tensorflow.MasterService/RunStep", message, &response,
                              context, options.cancellation));
    if (response.status_code() != proto::error::OK) {
      return absl::Status(static_cast<absl::StatusCode>(response.status_code()),
                          response.status_error_message());
    }
    if (options.trace != nullptr) ReadTrace(response.metadata(), options.trace);
    return ReadFetches(request, response, fetches);
  }

  absl::StatusOr<std::string> SetUpPartialRun(const Request& whole) override {
    WEIR_RETURN_IF_ERROR(SendNewNodes());
    proto::PartialRunSetupRequest message;
    message.set_session_handle(handle_);
    for (const Output& feed : whole.feeds) message.add_feed(feed.name());
    for (const Output& fetch : whole.fetches) message.add_fetch(fetch.name());
    for (const Operation& target : whole.targets) message.add_target(target.name());
    proto::PartialRunSetupResponse response;
    grpc::ClientContext context;
    SetLimit(limit_, &context);
    WEIR_RETURN_IF_ERROR(Call(connection_, "/tensorflow.MasterService/PartialRunSetup", message,
                              &response, context));
    return response.partial_run_handle();
  }

  absl::Status Reset(const std::vector<std::string>& containers) override {
    proto::ResetRequest request;
    for (const std::string& container : containers) request.add_container(container);
    proto::ResetResponse response;
    grpc::ClientContext context;
    SetLimit(limit_, &context);
    return Call(connection_, "/tensorflow.MasterService/Reset", request, &response, context);
  }

  void Close() override {
    proto::CloseSessionRequest request;
    request.set_session_handle(handle_);
    proto::CloseSessionResponse response;
    grpc::ClientContext context;
    SetDeadline(std::chrono::seconds(5), &context);
    Call(connection_, "/tensorflow.MasterService/CloseSession", request, &response, context)
        .IgnoreError();
  }

 private:
  // No deadline: an extension that arrives after it would change only the server's graph.
  absl::Status SendNewNodes() {
    const MutexLock lock(mutex_);
    if (graph_.num_nodes() == nodes_sent_) return absl::OkStatus();
    proto::ExtendSessionRequest request;
    request.set_session_handle(handle_);
    request.set_current_graph_version(version_);
    const int count = graph_.num_nodes();
    *request.mutable_graph_def() = ExportNodesFrom(graph_, nodes_sent_);
    proto::ExtendSessionResponse response;
    grpc::ClientContext context;
    WEIR_RETURN_IF_ERROR(
        Call(connection_, "/tensorflow.MasterService/ExtendSession", request, &response, context));
    nodes_sent_ = count;
    version_ = response.new_graph_version();
    return absl::OkStatus();
  }

  static absl::Status ReadFetches(const Request& request, proto::RunStepResponse& response,
                                  Tensors* fetches) {
    absl::flat_hash_map<std::string, Tensor> by_name;
    for (proto::NamedTensorProto& named : *response.mutable_tensor()) {
      WEIR_ASSIGN_OR_RETURN(by_name[named.name()],
                            TensorFromProto(std::move(*named.mutable_tensor())));
    }
    fetches->clear();
    for (const Output& fetch : request.fetches) {
      const auto it = by_name.find(fetch.name());
      if (it == by_name.end()) return Internal("The server sent no value for ", fetch.name());
      fetches->push_back(it->second);
    }
    return absl::OkStatus();
  }

  static void ReadTrace(const proto::RunMetadata& metadata, std::vector<NodeTrace>* trace) {
    for (const proto::DeviceStepStats& device : metadata.step_stats().dev_stats()) {
      for (const proto::NodeExecStats& stats : device.node_stats()) {
        NodeTrace node;
        node.node = stats.node_name();
        node.device = device.device();
        node.start_ns = stats.all_start_micros() * 1000;
        node.end_ns = node.start_ns + stats.all_end_rel_micros() * 1000;
        node.thread = static_cast<int>(stats.thread_id());
        trace->push_back(std::move(node));
      }
    }
  }

  const Graph& graph_;
  const Connection connection_;
  std::string handle_;
  std::chrono::milliseconds limit_{0};  // for calls without a limit of their own
  Mutex mutex_;
  // What the server knows about the graph.
  int nodes_sent_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

void EnableGrpcTargets(const ClientOptions& options) {
  SetSessionConnector(
      kScheme,
      [options](const Graph& graph,
                const SessionOptions& session) -> absl::StatusOr<std::unique_ptr<RemoteSession>> {
        auto remote = std::make_unique<GrpcSession>(graph, Connect(session.target, options));
        WEIR_RETURN_IF_ERROR(remote->Open(session, options));
        return remote;
      });
}

absl::StatusOr<ServerStatus> GetServerStatus(const std::string& target,
                                             const ClientOptions& options) {
  const Connection connection = Connect(target, options);
  ServerStatus status;
  proto::ListDevicesResponse devices;
  grpc::ClientContext context;
  SetDeadline(options.connect_timeout, &context);
  const absl::Status listed = Call(connection, "/tensorflow.MasterService/ListDevices",
                                   proto::ListDevicesRequest(), &devices, context);
  // A server of models alone has no sessions.
  if (!listed.ok() && !absl::IsUnimplemented(listed)) return listed;
  for (const proto::DeviceAttributes& device : devices.local_device())
    status.devices.push_back(device.name());
  // grpc.health.v1: an empty request, and a response whose field 1 is 1.
  grpc::ClientContext health_context;
  SetDeadline(options.connect_timeout, &health_context);
  const grpc::internal::RpcMethod check("/grpc.health.v1.Health/Check",
                                        grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Slice nothing;
  const grpc::ByteBuffer empty(&nothing, 1);
  grpc::ByteBuffer answer;
  const grpc::Status asked = grpc::internal::BlockingUnaryCall(connection.channel.get(), check,
                                                               &health_context, empty, &answer);
  grpc::Slice bytes;
  status.serving = asked.ok() && answer.DumpToSingleSlice(&bytes).ok() && bytes.size() == 2 &&
                   bytes.begin()[0] == 0x08 && bytes.begin()[1] == 1;
  return status;
}

}  // namespace weir::rpc
