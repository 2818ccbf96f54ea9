#ifndef WEIR_TOOLS_SERVE_CONFIGURATION_H_
#define WEIR_TOOLS_SERVE_CONFIGURATION_H_

#include <string>
#include <vector>

#include "weir/rpc/lib/server_log.h"
#include "weir/serving/model_manager.h"
#include "weir/tools/serve/options.h"

// The files that the options of weir serve name, and the checks of both. All errors are
// INVALID_ARGUMENT or those of reading a file, and name the option or the file.
namespace weir::tools {

// Reads a file that the operator names, although clients may not access it; "" if `path` is.
absl::StatusOr<std::string> ReadIfGiven(const std::string& path);

// Reads --token-file; "" if it is not given.
absl::StatusOr<std::string> ReadToken(const ServeOptions& options);

absl::StatusOr<rpc::TlsFiles> ReadTlsFiles(const ServeOptions& options);

// Reads which models are served, with the batching and the memory limit of the options. Paths are
// absolute. The directories must exist.
absl::StatusOr<std::vector<serving::ModelConfig>> ReadModelConfigs(const ModelOptions& options);
// Sets what the options say of all models, and checks the directories.
absl::Status CompleteModelConfigs(const ModelOptions& options,
                                  std::vector<serving::ModelConfig>* models);

// Returns the path of the metrics: that in --monitoring_config_file, or "/metrics" without one.
absl::StatusOr<std::string> ReadMetricsPath(const ServeOptions& options);

struct LogOptions {
  rpc::ServerLog::Format format = rpc::ServerLog::Format::kText;
  rpc::ServerLog::Calls calls = rpc::ServerLog::Calls::kNone;
};
absl::StatusOr<LogOptions> ReadLogOptions(const ServeOptions& options);

// Returns whether a file or directory lies in one of the directories, after resolving links.
bool IsWithin(const std::string& path, const std::vector<std::string>& directories);

// Checks options that exclude or need one another.
absl::Status CheckOptions(const ServeOptions& options);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_SERVE_CONFIGURATION_H_
