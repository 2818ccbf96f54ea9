#include "weir/tools/serve/access.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "weir/rpc/cluster_server.h"
#include "weir/rpc/file_access.h"
#include "weir/rpc/lib/listener.h"
#include "weir/tools/serve/configuration.h"
#include "weir/tools/serve/process.h"

namespace weir::tools {

namespace {

std::chrono::milliseconds Seconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// Other machines' clients are trusted with large messages only if they have certificates.
bool TrustsClients(const ServeOptions& options) {
  return !options.safety.untrusted &&
         (rpc::IsLoopback(options.server.address) || !options.client_authority_file.empty());
}
int MaxMessageMb(const ServeOptions& options) {
  if (options.max_message_mb > 0) return options.max_message_mb;
  return options.serves_sessions() && TrustsClients(options) ? 2047 : 64;
}
uint64_t MaxRequestMb(const ServeOptions& options) {
  if (options.max_request_mb > 0) return options.max_request_mb;
  return TrustsClients(options) ? 256 : 64;
}

}  // namespace

absl::Status CompleteServerOptions(ServeOptions* options) {
  WEIR_RETURN_IF_ERROR(CheckOptions(*options));
  WEIR_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, ReadTlsFiles(*options));
  rpc::ServerOptions& server = options->server;
  if (!options->cluster.cluster.empty() && options->safety.untrusted)
    return InvalidArgument("A task of a cluster (--cluster) cannot face strangers (--untrusted)");
  WEIR_RETURN_IF_ERROR(ApplyCluster(options->cluster, &server));
  if (server.cluster) {
    WEIR_ASSIGN_OR_RETURN(server.cluster->authority, ReadIfGiven(options->server_authority_file));
    WEIR_ASSIGN_OR_RETURN(server.cluster->token, ReadToken(*options));
  }
  server.certificate = tls.certificate;
  server.key = tls.key;
  server.client_authority = tls.client_authority;
  server.max_message_bytes = MaxMessageMb(*options) << 20;
  server.max_request_bytes = MaxRequestMb(*options) << 20;
  server.master.max_response = rpc::ResponseLimit(options->max_response_mb << 20);
  server.max_calls = AffordableThreads(server.max_calls);
  server.min_receiving_calls = AffordableThreads(server.min_receiving_calls);
  options->rest_threads = AffordableThreads(options->rest_threads);
  server.transfer_limit = Seconds(options->transfer_seconds);
  server.keepalive = std::chrono::seconds(options->keepalive_seconds);
  server.sessions = options->serves_sessions();
  server.master.idle_limit = Seconds(60 * options->idle_minutes);
  server.master.orphan_limit = Seconds(60 * options->orphan_minutes);
  server.master.default_step_limit = Seconds(options->step_seconds);
  server.master.max_step_limit = Seconds(options->max_step_seconds);
  return ApplySafety(options->safety, options->allowed, &server);
}

absl::StatusOr<std::unique_ptr<FileSystem>> RestrictedFiles(const ServeOptions& options) {
  if (!options.serves_sessions()) return nullptr;
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<FileSystem> files, rpc::RestrictFiles(options.allowed));
  if (!options.models.any()) return files;
  WEIR_ASSIGN_OR_RETURN(const std::vector<serving::ModelConfig> models,
                        ReadModelConfigs(options.models));
  for (const serving::ModelConfig& model : models) {
    if (IsWithin(model.base_path, options.allowed)) continue;
    return InvalidArgument("Model ", model.name, ": with --sessions, ", model.base_path,
                           " must be within an --allow-path, whose files clients can change; or "
                           "serve sessions by another process");
  }
  return files;
}

void WarnIfExposed(const ServeOptions& options, Console& console) {
  const auto warn = [&](absl::string_view text) {
    console.err << "weir: warning: " << text << std::endl;
  };
  const absl::string_view can =
      options.serves_sessions() ? " can run graphs here" : " can call and replace the models";
  if (!rpc::IsLoopback(options.server.address)) {
    if (!options.safety.clients_file.empty()) {
      if (options.certificate_file.empty()) {
        warn(absl::StrCat("whoever can reach ", options.server.address,
                          " can read what clients send, tokens too: see --tls-cert"));
      }
    } else if (options.certificate_file.empty()) {
      warn(absl::StrCat("whoever can reach ", options.server.address, can,
                        " and read what others send: see --tls-cert and --tls-client-ca"));
    } else if (options.client_authority_file.empty()) {
      warn(
          absl::StrCat("whoever can reach ", options.server.address, can, ": see --tls-client-ca"));
    }
  }
  if (options.server.cluster && options.certificate_file.empty()) {
    const std::vector<std::string> tasks = rpc::RemoteTasks(options.server.cluster->cluster);
    if (!tasks.empty()) {
      warn(absl::StrCat("whoever is on the way to ", absl::StrJoin(tasks, ", "),
                        " can read and change what the tasks send each other: see --tls-cert"));
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

}  // namespace weir::tools
