#ifndef WEIR_TOOLS_SERVE_OPTIONS_H_
#define WEIR_TOOLS_SERVE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "weir/rpc/server.h"
#include "weir/tools/lib/command.h"
#include "weir/tools/serve/cluster.h"
#include "weir/tools/serve/safety.h"

namespace weir::tools {

// The options about models: those with underscores are TensorFlow Serving's.
struct ModelOptions {
  std::vector<std::string> models;  // NAME=DIR
  std::string config_file, name = "default", base_path;
  int config_file_poll_seconds = 0;  // 0: only on SIGHUP
  int file_system_poll_seconds = 1;  // 0: once
  bool allow_labels_of_unavailable_versions = false;
  bool enable_batching = false;
  std::string batching_file;
  int max_load_retries = 5;
  int64_t load_retry_micros = 60'000'000;
  int64_t memory_mb = 0;  // of each model; 0: no limit

  // Whether the server serves models.
  bool any() const { return !models.empty() || !config_file.empty() || !base_path.empty(); }
};

// The options of weir serve.
struct ServeOptions {
  rpc::ServerOptions server;
  ModelOptions models;
  ClusterFlags cluster;
  std::vector<std::string> allowed;
  SafetyOptions safety;
  std::string token_file;  // with status_of, or a cluster
  std::string certificate_file, key_file, client_authority_file, server_authority_file;
  std::string status_of;  // print the status of this target instead of serving
  bool check = false;     // check the configuration instead of serving
  bool sessions = false;  // serve sessions besides models
  int rest_port = 0;      // 0: no REST
  int rest_timeout_ms = 30'000, rest_threads = 64;
  int metrics_port = -1;
  std::string metrics_address = "127.0.0.1";
  std::string monitoring_file;
  std::string log_format;  // "": no log
  std::string logged_calls = "all";
  int max_message_mb = 0;  // 0: see MaxMessageMb
  int max_request_mb = 0;  // 0: see MaxRequestMb
  int64_t max_response_mb = 0;
  int64_t max_memory_mb = 0;
  double idle_minutes = 24 * 60;
  double orphan_minutes = 10;
  int keepalive_seconds = 60;
  double transfer_seconds = 300;
  int grace_seconds = 30;
  double step_seconds = 0, max_step_seconds = 0;

  // Whether clients may send graphs: who serves models does not want strangers' graphs.
  bool serves_sessions() const { return sessions || !models.any(); }
};

// Declares the options on the command.
void DeclareServeOptions(Command& serve, ServeOptions& options);
void DeclareModelOptions(Command& serve, ModelOptions& options);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_SERVE_OPTIONS_H_
