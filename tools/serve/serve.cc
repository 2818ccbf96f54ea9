#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/core/io/file.h"
#include "weir/core/tensor/allocator.h"
#include "weir/core/tensor/system_memory.h"
#include "weir/rpc/client.h"
#include "weir/rpc/http/http_server.h"
#include "weir/rpc/metrics.h"
#include "weir/rpc/models/rest_api.h"
#include "weir/rpc/server.h"
#include "weir/tools/lib/command.h"
#include "weir/tools/serve/access.h"
#include "weir/tools/serve/configuration.h"
#include "weir/tools/serve/models.h"
#include "weir/tools/serve/options.h"
#include "weir/tools/serve/process.h"

// weir serve: serves sessions and models over gRPC, and models over REST.
namespace weir::tools {

namespace {

// Cancelled steps may take so long to end.
constexpr std::chrono::seconds kTimeToCancel{1};

// `http` may be null.
void ReloadTlsFiles(const ServeOptions& options, rpc::Server& server, rpc::HttpServer* http,
                    Console& console) {
  if (options.certificate_file.empty()) return;
  const absl::StatusOr<rpc::TlsFiles> files = ReadTlsFiles(options);
  absl::Status status = files.ok() ? server.ReplaceTlsFiles(*files) : files.status();
  if (status.ok() && http != nullptr) {
    status = http->ReplaceTlsFiles(files->certificate, files->key, files->client_authority);
  }
  if (status.ok()) {
    console.out << "Reloaded the certificates" << std::endl;
  } else {
    console.err << "weir: warning: the certificates are not reloaded: " << status << std::endl;
  }
}

// A server, what it serves and where it logs.
class RunningServer {
 public:
  RunningServer(const ServeOptions& options, Console& console)
      : options_(options), console_(console) {}

  // Listens on return. Signals must be blocked: this starts threads.
  absl::Status Start(const LogOptions& log, const std::string& metrics_path) {
    log_ = std::make_unique<rpc::ServerLog>(log.format, log.calls, STDERR_FILENO);
    WEIR_RETURN_IF_ERROR(StartMetrics(metrics_path));
    if (options_.models.any()) {
      WEIR_ASSIGN_OR_RETURN(models_, Models::Create(options_, *log_));
    }
    MakeRest(metrics_path);
    WEIR_RETURN_IF_ERROR(StartServer());
    WEIR_RETURN_IF_ERROR(StartRest());
    WarnIfExposed(options_, console_);
    console_.out << "Serving on " << server_->target() << std::endl;
    if (http_ != nullptr) {
      console_.out << "REST on " << (options_.server.certificate.empty() ? "http" : "https")
                   << "://" << options_.server.address << ":" << http_->port() << std::endl;
    }
    if (metrics_ != nullptr) {
      console_.out << "Metrics on http://" << options_.metrics_address << ":" << metrics_->port()
                   << metrics_path << std::endl;
    }
    if (models_ != nullptr)
      models_->Start([this](const absl::Status& loaded) { AfterLoading(loaded); });
    return absl::OkStatus();
  }

  // Reads the certificates and the configuration of the models again.
  void ReadFilesAgain() {
    ReloadTlsFiles(options_, *server_, http_.get(), console_);
    ReloadClients(options_.safety, options_.server.clients.get(), console_);
    if (models_ != nullptr) models_->ReadConfigFile();
  }

  // Returns why the models could not be loaded, or OK.
  absl::Status Stop(StopTimer* timer) {
    console_.out << "Stopping: " << server_->num_calls() << " calls in progress" << std::endl;
    const std::chrono::seconds grace(options_.grace_seconds);
    timer->Start(grace + kTimeToCancel, has_failed_ ? kFailure : kOk);
    std::thread rest([this, grace] { StopRest(grace); });
    server_->Drain(grace);
    rest.join();
    if (models_ != nullptr) models_->Stop();
    if (metrics_ != nullptr) metrics_->SetLoadCallback(nullptr);
    return failure_;
  }

 private:
  absl::Status StartMetrics(const std::string& path) {
    if (options_.metrics_port < 0) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(
        metrics_, rpc::Metrics::Serve(options_.metrics_address, options_.metrics_port, path));
    return absl::OkStatus();
  }

  absl::Status StartServer() {
    rpc::ServerOptions server = options_.server;
    server.on_call = [this](const rpc::CallRecord& call) {
      RecordCall(call);
      if (rest_ != nullptr && !call.call.model.empty()) {
        rest_->statistics().Record(call.call.model, std::string(call.method), call.status,
                                   call.took);
      }
    };
    if (models_ != nullptr) {
      server.models = &models_->manager();
      server.request_log = &models_->request_log();
      server.reload_models = [this](std::vector<serving::ModelConfig> models) {
        return models_->ReloadForClient(std::move(models));
      };
    }
    WEIR_ASSIGN_OR_RETURN(server_, rpc::Server::Start(server));
    if (metrics_ == nullptr) return absl::OkStatus();
    metrics_->SetLoadCallback([this] {
      return rpc::Metrics::Load{server_->num_sessions(), server_->num_calls(),
                                models_ == nullptr ? 0 : models_->request_log().dropped()};
    });
    return absl::OkStatus();
  }

  // Must precede the gRPC server, whose calls the status page shows.
  void MakeRest(const std::string& metrics_path) {
    if (options_.rest_port == 0) return;
    rpc::RestOptions rest;
    rest.max_response = options_.server.master.max_response;
    rest.timeout = std::chrono::milliseconds(options_.rest_timeout_ms);
    rest.clients = options_.server.clients;
    rest.log = &models_->request_log();
    rest.on_call = [this](const rpc::CallRecord& call) { RecordCall(call); };
    if (metrics_ != nullptr) {
      rest.metrics = [this] { return metrics_->Page(); };
      rest.metrics_path = metrics_path;
    }
    rest_ = std::make_unique<rpc::RestApi>(models_->manager(), std::move(rest));
  }

  absl::Status StartRest() {
    if (rest_ == nullptr) return absl::OkStatus();
    rpc::HttpServerOptions http;
    http.address = options_.server.address;
    http.port = options_.rest_port;
    http.certificate = options_.server.certificate;
    http.key = options_.server.key;
    http.client_authority = options_.server.client_authority;
    http.num_threads = options_.rest_threads;
    http.admit = [this](const rpc::HttpRequest& request) { return rest_->Admit(request); };
    if (options_.max_message_mb > 0) {
      http.max_body_bytes = static_cast<size_t>(options_.max_message_mb) << 20;
      http.max_buffered_bytes = std::max(http.max_buffered_bytes, 2 * http.max_body_bytes);
    }
    WEIR_ASSIGN_OR_RETURN(http_,
                          rpc::HttpServer::Start(http, [this](const rpc::HttpRequest& request) {
                            return rest_->Handle(request);
                          }));
    return absl::OkStatus();
  }

  void StopRest(std::chrono::seconds grace) {
    if (http_ == nullptr) return;
    http_->Drain(grace);
    rest_->Cancel();
    http_ = nullptr;
  }

  void RecordCall(const rpc::CallRecord& call) {
    log_->LogCall(call);
    if (metrics_ != nullptr) metrics_->CountCall(call);
  }

  // Nothing is served half configured: a model that cannot be loaded ends the server.
  void AfterLoading(const absl::Status& loaded) {
    if (loaded.ok()) {
      server_->SetModelsReady(true);
      log_->LogEvent(rpc::ServerLog::Level::kInfo, "ready", "all models are loaded");
      return;
    }
    failure_ = Annotate(loaded, "The models cannot be loaded");
    has_failed_ = true;
    kill(getpid(), SIGTERM);
  }

  const ServeOptions options_;
  Console& console_;
  absl::Status failure_;  // set by the thread of the models, which Stop ends
  std::atomic<bool> has_failed_ = false;
  std::unique_ptr<rpc::ServerLog> log_;
  std::unique_ptr<rpc::Metrics> metrics_;  // null: not exported
  std::unique_ptr<Models> models_;         // null: sessions only
  std::unique_ptr<rpc::RestApi> rest_;     // null: no REST
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<rpc::HttpServer> http_;  // null: no REST
};

// What tensors and messages may take: --max-memory-mb, and most of what the process may have. The
// allocator asks the system too, but memory that nobody has touched yet does not count toward the
// limit of a cgroup.
int64_t HostMemoryLimit(const ServeOptions& options) {
  const int64_t limit = ProcessMemoryLimit(), most = limit - limit / 8;
  return options.max_memory_mb > 0 ? std::min(options.max_memory_mb << 20, most) : most;
}

absl::Status Serve(ServeOptions options, Console& console) {
  PrepareMemory();
  WEIR_RETURN_IF_ERROR(CompleteServerOptions(&options));
  WEIR_ASSIGN_OR_RETURN(const std::string metrics_path, ReadMetricsPath(options));
  WEIR_ASSIGN_OR_RETURN(const LogOptions log, ReadLogOptions(options));
  SetHostMemoryLimit(HostMemoryLimit(options));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<FileSystem> files, RestrictedFiles(options));
  const ScopedFileSystem restricted(files == nullptr ? &Files() : files.get());
  StopTimer timer;
  RunningServer server(options, console);
  {
    const Signals signals;  // before any thread starts
    WEIR_RETURN_IF_ERROR(server.Start(log, metrics_path));
    while (signals.Wait() == SIGHUP) server.ReadFilesAgain();
  }
  return server.Stop(&timer);  // a second signal ends the process
}

// Checks what Serve would refuse, without listening or loading.
absl::Status Check(ServeOptions options, Console& console) {
  WEIR_RETURN_IF_ERROR(CompleteServerOptions(&options));
  WEIR_RETURN_IF_ERROR(ReadMetricsPath(options).status());
  WEIR_RETURN_IF_ERROR(ReadLogOptions(options).status());
  WEIR_RETURN_IF_ERROR(RestrictedFiles(options).status());
  WEIR_RETURN_IF_ERROR(rpc::CheckTlsFiles(
      {options.server.certificate, options.server.key, options.server.client_authority}));
  WEIR_ASSIGN_OR_RETURN(const std::vector<serving::ModelConfig> models,
                        ReadModelConfigs(options.models));
  for (const serving::ModelConfig& model : models)
    console.out << "Model " << model.name << " in " << model.base_path << "\n";
  console.out << "The configuration is valid" << std::endl;
  return absl::OkStatus();
}

// Prints the status that the server at this target reports.
absl::Status PrintStatus(const ServeOptions& options, Console& console) {
  rpc::ClientOptions client;
  client.connect_timeout = std::chrono::seconds(5);
  WEIR_ASSIGN_OR_RETURN(client.server_authority, ReadIfGiven(options.server_authority_file));
  WEIR_ASSIGN_OR_RETURN(client.certificate, ReadIfGiven(options.certificate_file));
  WEIR_ASSIGN_OR_RETURN(client.key, ReadIfGiven(options.key_file));
  WEIR_ASSIGN_OR_RETURN(client.token, ReadToken(options));
  WEIR_ASSIGN_OR_RETURN(const rpc::ServerStatus status,
                        rpc::GetServerStatus(options.status_of, client));
  console.out << options.status_of << (status.serving ? " is serving\n" : " is not serving\n");
  for (const std::string& device : status.devices) console.out << "  " << device << "\n";
  return status.serving ? absl::OkStatus() : absl::UnavailableError("the server is shutting down");
}

absl::Status Run(const ServeOptions& options, Console& console) {
  if (!options.status_of.empty()) return PrintStatus(options, console);
  return options.check ? Check(options, console) : Serve(options, console);
}

}  // namespace

void AddServeCommand(Command& weir) {
  auto options = std::make_shared<ServeOptions>();
  Command serve = weir.Add("serve", "Serve sessions or models over gRPC, and models over REST",
                           "  weir serve --port 8500 --allow-path runs\n"
                           "  (then, in Python: tf.compat.v1.Session('grpc://localhost:8500'))\n"
                           "  weir serve --port 8500 --model mnist=/models/mnist\n"
                           "  (then, any client of TensorFlow Serving)\n"
                           "  weir serve --cluster 'ps|h1:2222,worker|h2:2222' --job ps\n"
                           "  (then, TensorFlow's server on h2 as worker 0)\n"
                           "After SIGTERM, calls in progress may finish.");
  DeclareServeOptions(serve, *options);
  DeclareModelOptions(serve, options->models);
  serve.Do([options](Console& console) { return Finish(console, Run(*options, console)); });
}

}  // namespace weir::tools
