#include "weir/tools/serve/models.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weir/core/io/file.h"
#include "weir/tools/serve/configuration.h"

namespace weir::tools {

namespace {

using Level = rpc::ServerLog::Level;
constexpr std::chrono::milliseconds kLoadLook{200};

absl::string_view StateName(serving::VersionState state) {
  switch (state) {
    case serving::VersionState::kUnknown:
      return "UNKNOWN";
    case serving::VersionState::kStart:
      return "START";
    case serving::VersionState::kLoading:
      return "LOADING";
    case serving::VersionState::kAvailable:
      return "AVAILABLE";
    case serving::VersionState::kUnloading:
      return "UNLOADING";
    case serving::VersionState::kEnd:
      return "END";
  }
  return "UNKNOWN";
}

serving::ModelManagerOptions ManagerOptions(const ServeOptions& options, rpc::ServerLog& log) {
  const ModelOptions& models = options.models;
  serving::ModelManagerOptions out;
  out.servable.session = options.server.master.session;
  out.poll = std::chrono::seconds(models.file_system_poll_seconds);
  out.max_load_retries = models.max_load_retries;
  out.load_retry_interval = std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::microseconds(models.load_retry_micros));
  out.allow_labels_of_unavailable_versions = models.allow_labels_of_unavailable_versions;
  out.on_change = [&log](const std::string& model, const serving::VersionStatus& version) {
    log.LogEvent(version.error.ok() ? Level::kInfo : Level::kError, "model",
                 absl::StrCat(model, " version ", version.version, " ", StateName(version.state),
                              version.error.ok() ? "" : ": ", version.error.message()));
  };
  return out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Models>> Models::Create(const ServeOptions& options,
                                                       rpc::ServerLog& log) {
  std::unique_ptr<Models> models(new Models(options, log));
  WEIR_ASSIGN_OR_RETURN(models->config_text_, ReadIfGiven(options.models.config_file));
  WEIR_ASSIGN_OR_RETURN(const std::vector<serving::ModelConfig> configs,
                        ReadModelConfigs(options.models));
  models->directories_ = options.allowed;
  for (const serving::ModelConfig& config : configs) {
    models->directories_.push_back(config.base_path);
    if (config.logging)
      models->directories_.push_back(DirectoryOf(config.logging->filename_prefix));
  }
  models->request_log_ = std::make_unique<rpc::RequestLog>(
      rpc::RequestLogOptions{.on_error = [&log](const absl::Status& status) {
        log.LogEvent(Level::kError, "request_log", status.ToString());
      }});
  models->request_log_->Configure(configs);
  WEIR_ASSIGN_OR_RETURN(models->manager_,
                        serving::ModelManager::Create(configs, ManagerOptions(options, log)));
  return models;
}

Models::~Models() { Stop(); }

void Models::Start(std::function<void(const absl::Status&)> on_loaded) {
  thread_ = std::thread([this, on_loaded = std::move(on_loaded)] { Run(on_loaded); });
}

void Models::Stop() {
  {
    const MutexLock lock(mutex_);
    stops_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void Models::ReadConfigFile() {
  const MutexLock lock(mutex_);
  looks_now_ = true;
  wake_.NotifyAll();
}

void Models::Run(const std::function<void(const absl::Status&)>& on_loaded) {
  absl::Status loaded;
  do {
    const MutexLock lock(mutex_);
    if (stops_) return;
    mutex_.unlock();
    loaded = manager_->WaitUntilLoaded(kLoadLook);
    mutex_.lock();
  } while (absl::IsDeadlineExceeded(loaded));
  on_loaded(loaded);
  for (bool is_asked = false; WaitForNextLook(&is_asked);) LookAtConfigFile(is_asked);
}

bool Models::WaitForNextLook(bool* is_asked) {
  const std::chrono::seconds period(options_.models.config_file_poll_seconds);
  const auto until = std::chrono::steady_clock::now() + period;
  const MutexLock lock(mutex_);
  while (!stops_ && !looks_now_) {
    if (period.count() == 0) {
      wake_.Wait(mutex_);
    } else if (!wake_.WaitUntil(mutex_, until)) {
      break;
    }
  }
  *is_asked = std::exchange(looks_now_, false);
  return !stops_;
}

// A file that cannot be applied is tried again at the next look: the directory that it names may
// have appeared meanwhile. The same error is reported once, or to whoever asks.
void Models::LookAtConfigFile(bool is_asked) {
  if (options_.models.config_file.empty()) return;
  const absl::Status status = [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(std::string text, ReadIfGiven(options_.models.config_file));
    if (!is_asked && text == config_text_) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(const std::vector<serving::ModelConfig> models,
                          ReadModelConfigs(options_.models));
    WEIR_RETURN_IF_ERROR(Reload(models));
    config_text_ = std::move(text);
    log_.LogEvent(Level::kInfo, "config",
                  absl::StrCat("serving the models of ", options_.models.config_file));
    return absl::OkStatus();
  }();
  const std::string error = status.ok() ? "" : status.ToString();
  if (!error.empty() && (is_asked || error != last_error_)) {
    log_.LogEvent(Level::kError, "config",
                  absl::StrCat("the models are served as before: ", error));
  }
  last_error_ = error;
}

absl::Status Models::ReloadForClient(std::vector<serving::ModelConfig> models) {
  WEIR_RETURN_IF_ERROR(CompleteModelConfigs(options_.models, &models));
  const auto check = [this](const std::string& directory) -> absl::Status {
    if (IsWithin(directory, directories_)) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat("This server does not let clients name ",
                                                    directory,
                                                    " (weir serve "
                                                    "--allow-path)"));
  };
  for (const serving::ModelConfig& model : models) {
    WEIR_RETURN_IF_ERROR(check(model.base_path));
    if (model.logging) WEIR_RETURN_IF_ERROR(check(DirectoryOf(model.logging->filename_prefix)));
  }
  return Reload(models);
}

absl::Status Models::Reload(const std::vector<serving::ModelConfig>& models) {
  const MutexLock lock(reload_mutex_);
  WEIR_RETURN_IF_ERROR(manager_->Reload(models));
  request_log_->Configure(models);
  return absl::OkStatus();
}

}  // namespace weir::tools
