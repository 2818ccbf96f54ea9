#include "weir/tools/serve/safety.h"

#include "weir/rpc/worker.h"
#include "weir/tools/serve/configuration.h"

namespace weir::tools {

namespace {

// The limits of untrusted clients, unless other options set them.
constexpr int64_t kUntrustedNodes = 200'000, kUntrustedMb = 64;
constexpr int kUntrustedCallDepth = 32;
constexpr int64_t kUntrustedThreadNodes = 4;  // of up to 16 threads
constexpr std::chrono::seconds kUntrustedStep{60};

absl::Status ApplyIsolation(const SafetyOptions& options, const std::vector<std::string>& allowed,
                            rpc::ServerOptions* server) {
  if (!options.isolate_sessions) {
    server->master.session_memory_bytes = options.session_memory_mb << 20;
    if (options.session_cpu_seconds == 0) return absl::OkStatus();
    return InvalidArgument("--session-cpu-seconds needs --isolate-sessions");
  }
  if (!allowed.empty())
    return InvalidArgument(
        "sessions in processes of their own access no files, so --allow-path has no effect with "
        "--isolate-sessions; omit one");
  rpc::WorkerOptions worker;
  worker.master = server->master;
  worker.memory_bytes = options.session_memory_mb << 20;
  worker.cpu_seconds = options.session_cpu_seconds;
  worker.max_message_bytes = server->max_message_bytes;
  worker.max_request_bytes = static_cast<int64_t>(server->max_request_bytes);
  // This program, even if its file is replaced meanwhile.
  server->isolation.program = "/proc/self/exe";
  server->isolation.arguments = worker.ToArguments();
  server->isolation.arguments.insert(server->isolation.arguments.begin(), rpc::kWorkerCommand);
  return absl::OkStatus();
}

// Refuses quotas that the server would not hold.
absl::Status CheckQuotas(const SafetyOptions& options, const rpc::Clients& clients) {
  if (clients.HaveCpuQuotas() && !options.isolate_sessions)
    return InvalidArgument(options.clients_file, ": quotas of cpu-seconds need --isolate-sessions");
  if (clients.HaveMemoryQuotas() && options.isolate_sessions) {
    return InvalidArgument(options.clients_file,
                           ": quotas of memory-mb have no effect with --isolate-sessions; expected "
                           "sessions=N, each of which has --session-memory-mb");
  }
  return absl::OkStatus();
}

// Reads the file of clients again. What it had stays where the new text has an error.
absl::Status ReadClients(const SafetyOptions& options, rpc::Clients* clients) {
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadIfGiven(options.clients_file));
  WEIR_ASSIGN_OR_RETURN(const auto read, rpc::Clients::Parse(options.clients_file, text));
  WEIR_RETURN_IF_ERROR(CheckQuotas(options, *read));
  return clients->Replace(options.clients_file, text);
}

}  // namespace

void AddSafetyOptions(Command& serve, SafetyOptions* options) {
  serve.Flag("--untrusted", &options->untrusted,
             "refuse graphs that access files or print, and recursion; limit graphs, and steps to "
             "60 seconds (--max-step-seconds). Excludes --allow-path");
  serve
      .Value("--max-graph-nodes", &options->max_graph_nodes,
             "maximum number of nodes of a session's graph and its functions; default: 0: any "
             "number, or 200000 with --untrusted")
      .AtLeast(0);
  serve
      .Value("--max-graph-mb", &options->max_graph_mb,
             "maximum size of a session's graph in MB; default: 0: any size, or 64 with "
             "--untrusted")
      .Range(0, 1e9);
  serve
      .Value("--max-call-depth", &options->max_call_depth,
             "maximum number of nested calls of functions; a limit excludes recursion; default: 0: "
             "any number, or 32 with --untrusted")
      .AtLeast(0);
  serve.Flag("--isolate-sessions", &options->isolate_sessions,
             "run each session in a process of its own that can do nothing but compute; sessions "
             "share no variables. Excludes --allow-path");
  serve
      .Value("--session-memory-mb", &options->session_memory_mb,
             "maximum memory in MB that a session holds: tensors, strings and responses, in steps "
             "and in variables, queues and tables; default: 0: what the system has")
      .Range(0, 1e9);
  serve
      .Value("--step-memory-mb", &options->step_memory_mb,
             "maximum memory in MB that a step takes of it; default: 0: that of its session")
      .Range(0, 1e9);
  serve
      .Value("--session-cpu-seconds", &options->session_cpu_seconds,
             "with --isolate-sessions: maximum CPU time of a session, after which it ends; "
             "default: 0: any")
      .Range(0, 1e9);
  serve
      .Value("--clients", &options->clients_file,
             "serve only the clients in this file, each with sessions, variables and quotas of its "
             "own; SIGHUP reads it again")
      .Word("FILE");
}

absl::Status ApplySafety(const SafetyOptions& options, const std::vector<std::string>& allowed,
                         rpc::ServerOptions* server) {
  if (options.untrusted && !allowed.empty())
    return InvalidArgument(
        "--untrusted refuses all files, so --allow-path has no effect; omit one");
  const auto limit = [&](int64_t given, int64_t untrusted) {
    return given > 0 || !options.untrusted ? given : untrusted;
  };
  rpc::GraphLimits& graph = server->master.graph_limits;
  graph.allow_external_access = !options.untrusted;
  graph.max_nodes = limit(options.max_graph_nodes, kUntrustedNodes);
  graph.max_bytes = limit(options.max_graph_mb, kUntrustedMb) << 20;
  graph.max_call_depth = static_cast<int>(limit(options.max_call_depth, kUntrustedCallDepth));
  graph.max_thread_nodes = limit(0, kUntrustedThreadNodes);
  server->master.step_memory_bytes = options.step_memory_mb << 20;
  if (options.untrusted && server->master.max_step_limit.count() == 0)
    server->master.max_step_limit = kUntrustedStep;
  WEIR_RETURN_IF_ERROR(ApplyIsolation(options, allowed, server));
  if (options.clients_file.empty()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadIfGiven(options.clients_file));
  WEIR_ASSIGN_OR_RETURN(server->clients, rpc::Clients::Parse(options.clients_file, text));
  return CheckQuotas(options, *server->clients);
}

void ReloadClients(const SafetyOptions& options, rpc::Clients* clients, Console& console) {
  if (clients == nullptr) return;
  const absl::Status status = ReadClients(options, clients);
  if (status.ok()) {
    console.out << "Reloaded the clients" << std::endl;
  } else {
    console.err << "weir: warning: the clients are not reloaded: " << status << std::endl;
  }
}

}  // namespace weir::tools
