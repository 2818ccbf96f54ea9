#ifndef WEIR_TOOLS_SERVE_MODELS_H_
#define WEIR_TOOLS_SERVE_MODELS_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/rpc/lib/server_log.h"
#include "weir/rpc/models/request_log.h"
#include "weir/serving/model_manager.h"
#include "weir/tools/serve/options.h"

namespace weir::tools {

// The models of weir serve and their log of requests: loads them, and follows their configuration.
// Thread-safe.
class Models {
 public:
  // `log` receives the changes of versions, and errors. It must outlive the models.
  static absl::StatusOr<std::unique_ptr<Models>> Create(const ServeOptions& options,
                                                        rpc::ServerLog& log);
  // Stops serving the models.
  ~Models();

  serving::ModelManager& manager() { return *manager_; }
  rpc::RequestLog& request_log() { return *request_log_; }

  // Starts a thread that calls `on_loaded` once, with OK when every model has a version that is
  // available, or with the first error; afterwards it reads --model_config_file again as often as
  // the options say.
  void Start(std::function<void(const absl::Status&)> on_loaded);
  // Ends that thread. Before what `on_loaded` uses is destroyed.
  void Stop();
  // Makes the thread serve the models of --model_config_file now, even if it has not changed: a
  // client may have replaced them, or the last attempt may have failed.
  void ReadConfigFile();

  // Serves other models, as a client asks. Only directories that the server was started with, and
  // those of --allow-path, may be named: others are PERMISSION_DENIED.
  absl::Status ReloadForClient(std::vector<serving::ModelConfig> models);

 private:
  Models(const ServeOptions& options, rpc::ServerLog& log) : options_(options), log_(log) {}
  void Run(const std::function<void(const absl::Status&)>& on_loaded);
  // Waits for the time of the next look at the configuration file, or until someone asks for one.
  // Returns false if the thread shall end.
  bool WaitForNextLook(bool* is_asked);
  void LookAtConfigFile(bool is_asked);
  absl::Status Reload(const std::vector<serving::ModelConfig>& models);

  const ServeOptions options_;
  rpc::ServerLog& log_;
  std::vector<std::string> directories_;  // that clients may name
  std::unique_ptr<rpc::RequestLog> request_log_;
  std::unique_ptr<serving::ModelManager> manager_;

  Mutex reload_mutex_;       // one reload at a time
  std::string config_text_;  // the last that was applied; used by the thread, as the next one
  std::string last_error_;   // of the configuration file, or empty
  Mutex mutex_;
  CondVar wake_;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  bool looks_now_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_SERVE_MODELS_H_
