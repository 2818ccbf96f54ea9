#include <malloc.h>
#include <pthread.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

#include "weir/core/io/file_posix.h"
#include "weir/core/tensor/allocator.h"
#include "weir/rpc/client.h"
#include "weir/rpc/file_access.h"
#include "weir/rpc/listener.h"
#include "weir/rpc/metrics.h"
#include "weir/rpc/server.h"
#include "weir/tools/lib/command.h"

// weir serve: serves sessions to TensorFlow and Weir clients over gRPC.
namespace weir::tools {

namespace {

struct ServeOptions {
  rpc::ServerOptions server;
  std::vector<std::string> allowed;
  std::string certificate_file, key_file, client_authority_file, server_authority_file;
  std::string status_of;  // print the status of this target instead of serving
  int metrics_port = -1;
  std::string metrics_address = "127.0.0.1";
  int max_message_mb = 0;  // 0: see MaxMessageMb
  int max_request_mb = 0;  // 0: see MaxRequestMb
  int64_t max_memory_mb = 0;
  double idle_minutes = 24 * 60;
  double orphan_minutes = 10;
  int keepalive_seconds = 60;
  double transfer_seconds = 300;
  int grace_seconds = 30;
  double step_seconds = 0, max_step_seconds = 0;
};

// Blocks SIGTERM, SIGINT and SIGHUP in all threads during its lifetime, so that Wait() can receive
// them.
class Signals {
 public:
  Signals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  int Wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
    return signal;
  }

 private:
  sigset_t signals_, before_;
};

constexpr double kMaxMinutes = 1e6, kMaxSeconds = 60 * kMaxMinutes;

std::chrono::milliseconds Seconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// Ends the process if it has not stopped in time: a kernel in a library (one call of LAPACK) cannot
// be interrupted, and its session cannot be destroyed before it ends.
constexpr std::chrono::seconds kTimeToCancel{1};

class StopTimer {
 public:
  StopTimer() = default;
  ~StopTimer() {
    stopped_.Notify();
    if (thread_.joinable()) thread_.join();
  }
  void Start(std::chrono::seconds limit) {
    thread_ = std::thread([this, limit] {
      if (stopped_.WaitForNotificationWithTimeout(absl::FromChrono(limit))) return;
      std::fprintf(stderr, "weir: warning: ending while steps still run\n");
      std::_Exit(0);
    });
  }

 private:
  absl::Notification stopped_;
  std::thread thread_;
};

absl::StatusOr<std::string> ReadIfGiven(const std::string& path) {
  if (path.empty()) return std::string();
  // The process's file system is restricted to what clients may access.
  PosixFileSystem files;
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(path));
  std::string contents(file->size(), 0);
  WEIR_RETURN_IF_ERROR(file->Read(0, contents.size(), contents.data()));
  return contents;
}

absl::StatusOr<rpc::TlsFiles> ReadTlsFiles(const ServeOptions& options) {
  rpc::TlsFiles files;
  WEIR_ASSIGN_OR_RETURN(files.certificate, ReadIfGiven(options.certificate_file));
  WEIR_ASSIGN_OR_RETURN(files.key, ReadIfGiven(options.key_file));
  WEIR_ASSIGN_OR_RETURN(files.client_authority, ReadIfGiven(options.client_authority_file));
  return files;
}

void ReloadTlsFiles(const ServeOptions& options, rpc::Server& server, Console& console) {
  const absl::StatusOr<rpc::TlsFiles> files = ReadTlsFiles(options);
  const absl::Status status = files.ok() ? server.ReplaceTlsFiles(*files) : files.status();
  if (status.ok()) {
    console.out << "Reloaded the certificates" << std::endl;
  } else {
    console.err << "weir: warning: the certificates are not reloaded: " << status << std::endl;
  }
}

// Other machines' clients are trusted with large messages only if they have certificates.
bool TrustsClients(const ServeOptions& options) {
  return rpc::IsLoopback(options.server.address) || !options.client_authority_file.empty();
}
int MaxMessageMb(const ServeOptions& options) {
  if (options.max_message_mb > 0) return options.max_message_mb;
  return TrustsClients(options) ? 2047 : 64;
}
uint64_t MaxRequestMb(const ServeOptions& options) {
  if (options.max_request_mb > 0) return options.max_request_mb;
  return TrustsClients(options) ? 256 : 64;
}

void WarnIfExposed(const ServeOptions& options, Console& console) {
  const auto warn = [&](absl::string_view text) {
    console.err << "weir: warning: " << text << std::endl;
  };
  if (!rpc::IsLoopback(options.server.address)) {
    if (options.certificate_file.empty()) {
      warn(absl::StrCat("whoever can reach ", options.server.address,
                        " can run graphs here and read what others send: see --tls-cert and "
                        "--tls-client-ca"));
    } else if (options.client_authority_file.empty()) {
      warn(absl::StrCat("whoever can reach ", options.server.address,
                        " can run graphs here: see --tls-client-ca"));
    }
  }
  if (options.metrics_port >= 0 && !rpc::IsLoopback(options.metrics_address))
    warn(absl::StrCat("whoever can reach ", options.metrics_address, " can read the metrics"));
  for (const std::string& directory : options.allowed) {
    char* const resolved = realpath(directory.c_str(), nullptr);
    if (resolved != nullptr && absl::string_view(resolved) == "/")
      warn(absl::StrCat("clients may read and write every file (--allow-path ", directory, ")"));
    std::free(resolved);
  }
}

// Messages of several megabytes, and the tensors in them, are read into newly allocated memory. The
// C library would return each freed block to the system, and touching a new page costs more than
// copying into one. These settings keep freed memory for the next message.
void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the maximum value
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

absl::Status Serve(ServeOptions options, Console& console) {
  KeepFreedMemory();
  rpc::ServerOptions& server_options = options.server;
  WEIR_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, ReadTlsFiles(options));
  server_options.certificate = tls.certificate;
  server_options.key = tls.key;
  server_options.client_authority = tls.client_authority;
  server_options.max_message_bytes = MaxMessageMb(options) << 20;
  server_options.max_request_bytes = MaxRequestMb(options) << 20;
  if (options.max_memory_mb > 0) SetHostMemoryLimit(options.max_memory_mb << 20);
  server_options.master.idle_limit = Seconds(60 * options.idle_minutes);
  server_options.master.orphan_limit = Seconds(60 * options.orphan_minutes);
  server_options.keepalive = std::chrono::seconds(options.keepalive_seconds);
  server_options.transfer_limit = Seconds(options.transfer_seconds);
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<FileSystem> files,
                        rpc::RestrictFiles(options.allowed));
  const ScopedFileSystem restricted(files.get());
  server_options.master.default_step_limit = Seconds(options.step_seconds);
  server_options.master.max_step_limit = Seconds(options.max_step_seconds);
  StopTimer timer;
  std::unique_ptr<rpc::Metrics> metrics;
  std::unique_ptr<rpc::Server> server;
  {
    const Signals signals;  // before any thread starts
    if (options.metrics_port >= 0) {
      WEIR_ASSIGN_OR_RETURN(metrics,
                            rpc::Metrics::Serve(options.metrics_address, options.metrics_port));
      server_options.on_call = [&metrics](absl::string_view method, const absl::Status& status,
                                          std::chrono::nanoseconds took) {
        metrics->CountCall(method, status, took);
      };
    }
    WEIR_ASSIGN_OR_RETURN(server, rpc::Server::Start(server_options));
    WarnIfExposed(options, console);
    console.out << "Serving on " << server->target() << std::endl;
    if (metrics != nullptr) {
      metrics->SetLoadCallback([&server] {
        return rpc::Metrics::Load{server->master().num_sessions(), server->num_calls()};
      });
      console.out << "Metrics on http://" << options.metrics_address << ":" << metrics->port()
                  << "/metrics" << std::endl;
    }
    while (signals.Wait() == SIGHUP) ReloadTlsFiles(options, *server, console);
  }
  // A second signal ends the process.
  console.out << "Stopping: " << server->num_calls() << " calls in progress" << std::endl;
  const std::chrono::seconds grace(options.grace_seconds);
  timer.Start(grace + kTimeToCancel);
  server->Drain(grace);
  if (metrics != nullptr) metrics->SetLoadCallback(nullptr);
  return absl::OkStatus();
}

// Prints the status that the server at this target reports.
absl::Status PrintStatus(const ServeOptions& options, Console& console) {
  rpc::ClientOptions client;
  client.connect_timeout = std::chrono::seconds(5);
  WEIR_ASSIGN_OR_RETURN(client.server_authority, ReadIfGiven(options.server_authority_file));
  WEIR_ASSIGN_OR_RETURN(client.certificate, ReadIfGiven(options.certificate_file));
  WEIR_ASSIGN_OR_RETURN(client.key, ReadIfGiven(options.key_file));
  WEIR_ASSIGN_OR_RETURN(const rpc::ServerStatus status,
                        rpc::GetServerStatus(options.status_of, client));
  console.out << options.status_of << (status.serving ? " is serving\n" : " is not serving\n");
  for (const std::string& device : status.devices) console.out << "  " << device << "\n";
  return status.serving ? absl::OkStatus() : absl::UnavailableError("the server is shutting down");
}

}  // namespace

void AddServeCommand(Command& weir) {
  auto options = std::make_shared<ServeOptions>();
  Command serve = weir.Add("serve", "Serve sessions to TensorFlow and Weir clients over gRPC",
                           "  weir serve --port 8500 --allow-path runs\n"
                           "  (then, in Python: tf.compat.v1.Session('grpc://localhost:8500'))\n"
                           "After SIGTERM, calls in progress may finish.");
  rpc::ServerOptions& server = options->server;
  Command what = serve.OneOf();
  what.Value("--port", &server.port, "port to listen on; 0: any free port (it is printed)")
      .Range(0, 65535);
  what.Value("--status", &options->status_of,
             "do not serve; print the status of the server at grpc://HOST:PORT")
      .Word("TARGET");
  serve
      .Value("--bind", &server.address,
             "address to listen on; default: 127.0.0.1 (this machine only)")
      .Word("ADDRESS");
  serve
      .Repeated("--allow-path", &options->allowed,
                "a directory that clients may read and write; repeatable; default: no file access")
      .Word("DIR");
  serve
      .Value("--max-sessions", &server.master.max_sessions,
             "maximum number of sessions; default: 1000")
      .AtLeast(1);
  serve
      .Value(
          "--max-calls", &server.max_calls,
          "maximum number of concurrent calls; default: 1000. Closing sessions and --status work "
          "beyond it")
      .AtLeast(1);
  serve
      .Value("--max-connections", &server.max_connections,
             "maximum number of connections; default: 0: as many as file descriptors allow")
      .AtLeast(0);
  serve
      .Value("--max-client-connections", &server.max_client_connections,
             "maximum number of connections from one address; default: 0: half of all")
      .AtLeast(0);
  serve
      .Value(
          "--max-connection-calls", &server.max_connection_calls,
          "maximum number of concurrent calls on one connection; default: 0: no limit of its own")
      .AtLeast(0);
  serve
      .Value("--transfer-seconds", &options->transfer_seconds,
             "cancel calls whose request does not arrive, or whose response is not read, within N "
             "seconds; default: 300; 0: never")
      .Range(0, kMaxSeconds);
  serve
      .Value("--max-message-mb", &options->max_message_mb,
             "maximum size of a request in MB; default: 2047, or 64 if other machines can connect "
             "without a certificate")
      .Range(1, 2047);
  serve
      .Value("--max-request-mb", &options->max_request_mb,
             "memory in MB that a request may take when it is parsed, if that is more than 3 times "
             "its size; default: 256, or 64 if other machines can connect without a certificate")
      .Range(1, 1e6);
  serve
      .Value("--max-memory-mb", &options->max_memory_mb,
             "maximum memory of all tensors in MB; default: 0: what the system and its container "
             "have")
      .Range(0, 1e9);
  serve
      .Value("--idle-minutes", &options->idle_minutes,
             "close sessions that have been idle for N minutes; default: 1440; 0: never")
      .Range(0, kMaxMinutes);
  serve
      .Value("--orphan-minutes", &options->orphan_minutes,
             "close sessions whose connections have all been closed for N minutes; default: 10; 0: "
             "never")
      .Range(0, kMaxMinutes);
  serve
      .Value("--keepalive-seconds", &options->keepalive_seconds,
             "ping clients every N seconds, and close connections that do not answer for as long; "
             "default: 60")
      .Range(1, 3600);
  serve
      .Value("--grace-seconds", &options->grace_seconds,
             "seconds that calls may take to finish after SIGTERM; default: 30")
      .AtLeast(0);
  serve
      .Value("--step-seconds", &options->step_seconds,
             "time limit of steps for which the client sets none; default: 0: none")
      .Range(0, kMaxSeconds);
  serve
      .Value("--max-step-seconds", &options->max_step_seconds,
             "the longest time limit of a step; default: 0: any")
      .Range(0, kMaxSeconds);
  serve
      .Value("--device-name", &server.master.session.task,
             "the server's task, such as '/job:worker/replica:0/task:1', for graphs that name a "
             "task; default: /job:localhost/replica:0/task:0")
      .Word("TASK");
  serve
      .Value("--threads", &server.master.session.num_threads,
             "number of threads; default: one per processor")
      .AtLeast(0);
  serve.Value("--tls-cert", &options->certificate_file, "use TLS with this certificate")
      .Word("FILE");
  serve.Value("--tls-key", &options->key_file, "the private key of the certificate").Word("FILE");
  serve
      .Value("--tls-client-ca", &options->client_authority_file,
             "accept only clients with a certificate from this authority")
      .Word("FILE");
  serve
      .Value("--tls-server-ca", &options->server_authority_file,
             "with --status: the authority that signed the server's certificate")
      .Word("FILE");
  serve
      .Value("--metrics-port", &options->metrics_port,
             "export Prometheus metrics at /metrics on this port")
      .Range(0, 65535);
  serve
      .Value("--metrics-bind", &options->metrics_address,
             "address to export metrics on, without TLS; default: 127.0.0.1 (this machine only)")
      .Word("ADDRESS");
  serve.Do([options](Console& console) {
    const absl::Status status =
        options->status_of.empty() ? Serve(*options, console) : PrintStatus(*options, console);
    return Finish(console, status);
  });
}

}  // namespace weir::tools
