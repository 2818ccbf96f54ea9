#include "weir/rpc/worker.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "weir/core/tensor/allocator.h"
#include "weir/kernels/lib/backend.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/nn/nn.h"
#include "weir/rpc/lib/call_watch.h"
#include "weir/rpc/sandbox.h"
#include "weir/rpc/service.h"

namespace weir::rpc {

namespace {

// Memory besides that of tensors: of threads, gRPC, graphs, plans and messages.
constexpr int64_t kOtherBytes = int64_t{1} << 30;
// The server limits the calls that it forwards.
constexpr int kMaxCalls = 1 << 20;
constexpr int kReservedThreads = 16;

struct Setting {
  const char* name;
  int64_t value;
};

// Loads the libraries that kernels load on their first call, which is impossible in the sandbox.
absl::Status LoadLibraries(const SessionOptions& options) {
  Graph g;
  const Output image = Const(g, Tensor::Zeros(DT_FLOAT, Shape({1, 8, 8, 8})));
  const Output filter = Const(g, Tensor::Zeros(DT_FLOAT, Shape({3, 3, 8, 8})));
  const Output out = Conv2D(image, filter);
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g, options));
  return session.Run({out}).status();
}

void WaitForEndOfServer(int socket) {
  pollfd end = {socket, POLLRDHUP, 0};
  while (poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::vector<std::string> WorkerOptions::ToArguments() const {
  const Setting settings[] = {
      {"threads", master.session.num_threads},
      {"default-step-ms", master.default_step_limit.count()},
      {"max-step-ms", master.max_step_limit.count()},
      {"max-response-bytes", static_cast<int64_t>(master.max_response.bytes())},
      {"step-memory-bytes", master.step_memory_bytes},
      {"external-access", master.graph_limits.allow_external_access ? 1 : 0},
      {"max-nodes", master.graph_limits.max_nodes},
      {"max-bytes", master.graph_limits.max_bytes},
      {"max-call-depth", master.graph_limits.max_call_depth},
      {"max-thread-nodes", master.graph_limits.max_thread_nodes},
      {"memory-bytes", memory_bytes},
      {"cpu-seconds", cpu_seconds},
      {"max-message-bytes", max_message_bytes},
      {"max-request-bytes", max_request_bytes},
  };
  std::vector<std::string> arguments = {absl::StrCat("task=", master.session.task)};
  for (const Setting& s : settings) arguments.push_back(absl::StrCat(s.name, "=", s.value));
  return arguments;
}

absl::StatusOr<WorkerOptions> WorkerOptions::FromArguments(
    const std::vector<std::string>& arguments) {
  WorkerOptions options;
  MasterOptions& master = options.master;
  for (const std::string& argument : arguments) {
    const std::pair<std::string, std::string> setting =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    const std::string& name = setting.first;
    int64_t n = 0;
    if (name == "task") {
      master.session.task = setting.second;
      continue;
    }
    if (!absl::SimpleAtoi(setting.second, &n))
      return InvalidArgument("expected a number in '", argument, "'");
    if (name == "threads") {
      master.session.num_threads = static_cast<int>(n);
    } else if (name == "default-step-ms") {
      master.default_step_limit = std::chrono::milliseconds(n);
    } else if (name == "max-step-ms") {
      master.max_step_limit = std::chrono::milliseconds(n);
    } else if (name == "max-response-bytes") {
      master.max_response = ResponseLimit(n);
    } else if (name == "step-memory-bytes") {
      master.step_memory_bytes = n;
    } else if (name == "external-access") {
      master.graph_limits.allow_external_access = n != 0;
    } else if (name == "max-nodes") {
      master.graph_limits.max_nodes = n;
    } else if (name == "max-bytes") {
      master.graph_limits.max_bytes = n;
    } else if (name == "max-call-depth") {
      master.graph_limits.max_call_depth = static_cast<int>(n);
    } else if (name == "max-thread-nodes") {
      master.graph_limits.max_thread_nodes = n;
    } else if (name == "memory-bytes") {
      options.memory_bytes = n;
    } else if (name == "cpu-seconds") {
      options.cpu_seconds = n;
    } else if (name == "max-message-bytes") {
      options.max_message_bytes = n;
    } else if (name == "max-request-bytes") {
      options.max_request_bytes = n;
    } else {
      return InvalidArgument("unknown argument '", argument, "'");
    }
  }
  return options;
}

absl::Status RunWorker(WorkerOptions options) {
  // The server ends its workers. Signals to its whole group, as Ctrl-C sends them, must not.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  // A duplicate for this thread, since gRPC closes the socket.
  const int socket = dup(kWorkerSocket);
  if (socket < 0) return absl::ErrnoToStatus(errno, "a worker needs its server's socket");

  options.master.max_sessions = 1;
  options.master.idle_limit = options.master.orphan_limit = std::chrono::milliseconds(0);
  // Devices besides the CPU would need their drivers' files.
  if (options.master.session.backends == nullptr)
    options.master.session.backends = std::make_shared<BackendRegistry>();
  WEIR_RETURN_IF_ERROR(LoadLibraries(options.master.session));
  const int64_t available = HostAllocator().bytes_free();  // reads files
  const int64_t memory = options.memory_bytes > 0 ? options.memory_bytes : available;
  SetHostMemoryLimit(memory);
  WEIR_RETURN_IF_ERROR(EnterSandbox({memory + kOtherBytes, options.cpu_seconds}));

  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<Master> master, Master::Create(options.master));
  CallWatch watch(kMaxCalls, kMaxCalls, std::chrono::milliseconds(0), [] {});
  GrpcService service(watch, static_cast<uint64_t>(options.max_request_bytes), nullptr, nullptr);
  service.Add(*master);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder.SetMaxSendMessageSize(-1);
  grpc::ResourceQuota quota("calls");
  quota.SetMaxThreads(kMaxCalls + kReservedThreads);
  builder.SetResourceQuota(quota);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError("cannot start the session's server");
  grpc::AddInsecureChannelFromFd(server.get(), kWorkerSocket);
  WaitForEndOfServer(socket);
  _exit(0);  // kernels may still run
}

}  // namespace weir::rpc
