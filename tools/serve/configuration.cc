#include "weir/tools/serve/configuration.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weir/core/io/file_posix.h"
#include "weir/proto/monitoring_config.pb.h"
#include "weir/serving/text_config.h"

namespace weir::tools {

namespace {

constexpr char kServingMetricsPath[] = "/monitoring/prometheus/metrics";

std::string Absolute(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).lexically_normal().string();
}

// Returns the path without links, or "" if there is no such file.
std::string Resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real == nullptr ? "" : real.get();
}

absl::StatusOr<serving::ModelConfig> ParseModelFlag(const std::string& flag) {
  const size_t equals = flag.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == flag.size())
    return InvalidArgument("--model ", flag, ": expected NAME=DIR");
  return serving::ModelConfig{.name = flag.substr(0, equals),
                              .base_path = Absolute(flag.substr(equals + 1))};
}

// "FILE: line 3: Model m", or without the line if that is 0.
std::string NameOf(const serving::ModelConfig& model, const std::string& file, int line) {
  const std::string where = line > 0 ? absl::StrCat(file, ": line ", line, ": ") : "";
  return absl::StrCat(where, "Model ", model.name);
}

// `file` is the one that the lines of the models are in.
absl::Status CheckDirectories(const std::vector<serving::ModelConfig>& models,
                              const std::string& file) {
  PosixFileSystem files;
  for (const serving::ModelConfig& model : models) {
    if (!files.IsDirectory(model.base_path)) {
      return InvalidArgument(NameOf(model, file, model.line), ": ", model.base_path,
                             " is not a directory; expected one with a sub-directory for each "
                             "version");
    }
    if (!model.logging) continue;
    const std::string directory = DirectoryOf(model.logging->filename_prefix);
    if (!files.IsDirectory(directory)) {
      return InvalidArgument(NameOf(model, file, model.logging->line),
                             ": the log of requests cannot be written: ", directory,
                             " is not a directory; expected a prefix in one that exists");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadIfGiven(const std::string& path) {
  if (path.empty()) return std::string();
  // The process's file system may be restricted to what clients may access.
  PosixFileSystem files;
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(path));
  std::string contents(file->size(), 0);
  WEIR_RETURN_IF_ERROR(file->Read(0, contents.size(), contents.data()));
  return contents;
}

absl::StatusOr<std::string> ReadToken(const ServeOptions& options) {
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadIfGiven(options.token_file));
  return std::string(absl::StripAsciiWhitespace(text));
}

absl::StatusOr<rpc::TlsFiles> ReadTlsFiles(const ServeOptions& options) {
  rpc::TlsFiles files;
  WEIR_ASSIGN_OR_RETURN(files.certificate, ReadIfGiven(options.certificate_file));
  WEIR_ASSIGN_OR_RETURN(files.key, ReadIfGiven(options.key_file));
  WEIR_ASSIGN_OR_RETURN(files.client_authority, ReadIfGiven(options.client_authority_file));
  return files;
}

absl::Status CompleteModelConfigs(const ModelOptions& options,
                                  std::vector<serving::ModelConfig>* models) {
  std::optional<serving::BatchingOptions> batching;
  if (options.enable_batching) {
    WEIR_ASSIGN_OR_RETURN(const std::string text, ReadIfGiven(options.batching_file));
    absl::StatusOr<serving::BatchingOptions> parsed = serving::ParseBatchingOptions(text);
    if (!parsed.ok()) return Annotate(parsed.status(), options.batching_file);
    batching = *std::move(parsed);
  }
  for (serving::ModelConfig& model : *models) {
    model.batching = batching;
    model.max_memory_bytes = options.memory_mb << 20;
  }
  WEIR_RETURN_IF_ERROR(serving::CheckModelConfigs(*models));
  return CheckDirectories(*models, options.config_file);
}

absl::StatusOr<std::vector<serving::ModelConfig>> ReadModelConfigs(const ModelOptions& options) {
  std::vector<serving::ModelConfig> models;
  if (!options.config_file.empty()) {
    WEIR_ASSIGN_OR_RETURN(const std::string text, ReadIfGiven(options.config_file));
    absl::StatusOr<std::vector<serving::ModelConfig>> parsed = serving::ParseModelConfigs(text);
    if (!parsed.ok()) return Annotate(parsed.status(), options.config_file);
    models = *std::move(parsed);
  }
  for (const std::string& flag : options.models) {
    WEIR_ASSIGN_OR_RETURN(models.emplace_back(), ParseModelFlag(flag));
  }
  if (!options.base_path.empty())
    models.push_back({.name = options.name, .base_path = Absolute(options.base_path)});
  WEIR_RETURN_IF_ERROR(CompleteModelConfigs(options, &models));
  return models;
}

absl::StatusOr<std::string> ReadMetricsPath(const ServeOptions& options) {
  if (options.monitoring_file.empty()) return std::string("/metrics");
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadIfGiven(options.monitoring_file));
  proto::serving::MonitoringConfig config;
  const absl::StatusOr<serving::TextConfig> source = serving::TextConfig::Parse(text, &config);
  if (!source.ok()) return Annotate(source.status(), options.monitoring_file);
  if (!config.prometheus_config().enable()) return std::string("/metrics");
  const std::string& path = config.prometheus_config().path();
  if (path.empty()) return std::string(kServingMetricsPath);
  if (absl::StartsWith(path, "/") && path.find_first_of(" ?#") == std::string::npos) return path;
  const int line = source->Line({{"prometheus_config"}, {"path"}});
  return InvalidArgument(options.monitoring_file, ": line ", line, ": path '", path,
                         "'; expected an absolute path, such as ", kServingMetricsPath);
}

absl::StatusOr<LogOptions> ReadLogOptions(const ServeOptions& options) {
  using Calls = rpc::ServerLog::Calls;
  LogOptions log;
  if (options.log_format == "json") {
    log.format = rpc::ServerLog::Format::kJson;
  } else if (!options.log_format.empty() && options.log_format != "text") {
    return InvalidArgument("--log-format ", options.log_format, ": expected text or json");
  }
  const std::string& calls = options.logged_calls;
  if (calls != "all" && calls != "errors" && calls != "none")
    return InvalidArgument("--log-calls ", calls, ": expected all, errors or none");
  if (options.log_format.empty()) return log;
  log.calls = calls == "all" ? Calls::kAll : calls == "errors" ? Calls::kErrors : Calls::kNone;
  return log;
}

bool IsWithin(const std::string& path, const std::vector<std::string>& directories) {
  const std::string resolved = Resolved(path);
  return !resolved.empty() &&
         std::any_of(directories.begin(), directories.end(), [&](const std::string& directory) {
           const std::string root = Resolved(directory);
           return !root.empty() && (root == "/" || resolved == root ||
                                    absl::StartsWith(resolved, absl::StrCat(root, "/")));
         });
}

absl::Status CheckOptions(const ServeOptions& options) {
  const ModelOptions& models = options.models;
  if (!models.batching_file.empty() && !models.enable_batching)
    return InvalidArgument("--batching_parameters_file needs --enable_batching");
  if (!models.config_file.empty() && (!models.models.empty() || !models.base_path.empty()))
    return InvalidArgument(
        "--model_config_file names all models: use either it, or --model and --model_base_path");
  if (models.config_file_poll_seconds > 0 && models.config_file.empty())
    return InvalidArgument("--model_config_file_poll_wait_seconds needs --model_config_file");
  if (models.name != "default" && models.base_path.empty())
    return InvalidArgument("--model_name needs --model_base_path");
  if (!models.any() && (models.enable_batching || options.rest_port > 0 || options.sessions))
    return InvalidArgument(
        "--enable_batching, --rest_api_port and --sessions need models: see --model and "
        "--model_config_file");
  return absl::OkStatus();
}

}  // namespace weir::tools
