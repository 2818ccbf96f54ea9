#ifndef WEIR_SERVING_MODEL_MANAGER_H_
#define WEIR_SERVING_MODEL_MANAGER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/serving/model_config.h"
#include "weir/serving/servable.h"

// The models of a server: which versions are wanted, which are loaded, and which one a request
// gets. The terms, states and defaults are TensorFlow Serving's (model_server_config.proto,
// get_model_status.proto).
namespace weir::serving {

enum class VersionState { kUnknown, kStart, kLoading, kAvailable, kUnloading, kEnd };
struct VersionStatus {
  int64_t version;
  VersionState state;
  absl::Status error;  // why a load failed, or OK
};

// Which model, and which version of it, a request wants.
struct ModelSpec {
  std::string name;
  std::optional<int64_t> version = {};  // unset, and no label: the largest available
  std::string label = {};
  std::string signature = {};  // "": "serving_default"
};

struct ModelManagerOptions {
  ServableOptions servable = {};
  // How often the directories are looked at for new versions; zero: only until each model has one.
  // A version is complete when nothing in its directory has changed for as long (a second, if
  // zero).
  std::chrono::milliseconds poll = std::chrono::seconds(1);
  // How often, and after how long, a load that failed is tried again. A change of the directory
  // starts anew. Errors that will not pass (INVALID_ARGUMENT, FAILED_PRECONDITION, UNIMPLEMENTED)
  // are final.
  int max_load_retries = 5;
  std::chrono::milliseconds load_retry_interval = std::chrono::minutes(1);
  // Labels may name versions that are not available yet.
  bool allow_labels_of_unavailable_versions = false;
  // If set, called when a version changes its state, on the thread of the manager.
  std::function<void(const std::string& model, const VersionStatus&)> on_change = {};
};

// Loads, swaps and unloads versions on a thread of its own. A new version is loaded and warmed up
// before the old one is unloaded, and requests that hold the old one finish on it: a swap fails no
// request. If a new version does not load, the old one stays. A directory whose contents still
// change (a copy in progress) is not loaded yet; one that has been removed is unloaded. A version
// is freed on a thread of its own too, not by the last request that held it. Thread-safe.
class ModelManager {
 public:
  // Returns the errors of CheckModelConfigs. Begins to load.
  static absl::StatusOr<std::unique_ptr<ModelManager>> Create(
      const std::vector<ModelConfig>& models, const ModelManagerOptions& options = {});
  ~ModelManager();

  // Waits until each model has a version that is available, or one whose load has failed for good.
  // Returns the first such failure; FAILED_PRECONDITION for a label of a version that is not
  // available; DEADLINE_EXCEEDED with the models that have not been loaded, and why.
  absl::Status WaitUntilLoaded(std::chrono::milliseconds limit);

  // Returns the version that the request wants.
  //
  //   NOT_FOUND          "Servable not found for request: Specific(name, 3)", with the versions
  //                      that are available
  //   INVALID_ARGUMENT   no name; an unknown label; both a version and a label
  absl::StatusOr<std::shared_ptr<const Servable>> Find(const ModelSpec& spec) const;

  // Calls a signature of a version that Find has returned: in a batch with others' requests, if the
  // model has batching options and all tensors of the signature have an unknown first dimension.
  absl::StatusOr<NamedTensors> Run(const Servable& servable, const std::string& signature,
                                   const NamedTensors& inputs,
                                   const std::vector<std::string>& outputs = {},
                                   const RunOptions& options = {},
                                   Priority priority = Priority::kHigh);

  // The states of the versions that the manager has seen, the largest number first. NOT_FOUND for
  // an unknown model or version.
  absl::StatusOr<std::vector<VersionStatus>> Status(const ModelSpec& spec) const;
  // The names of all models, in order.
  std::vector<std::string> models() const;

  // Serves these models from now on, and unloads others. Returns when the new versions are
  // available. Changes nothing if a configuration is invalid, if a new or changed model does not
  // load, or if a label is for a version that is not available. Models that stay the same keep the
  // versions that they have, and their batching options.
  absl::Status Reload(const std::vector<ModelConfig>& models);

 private:
  struct Impl;
  explicit ModelManager(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::serving

#endif  // WEIR_SERVING_MODEL_MANAGER_H_
