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
  // How often the directories are looked at for new versions; zero: once.
  std::chrono::milliseconds poll = std::chrono::seconds(1);
  int max_load_retries = 5;
  std::chrono::milliseconds load_retry_interval = std::chrono::minutes(1);
  // Labels may name versions that are not available yet.
  bool allow_labels_of_unavailable_versions = false;
  // If set, called when a version changes its state, on the thread of the manager.
  std::function<void(const std::string& model, const VersionStatus&)> on_change = {};
};

// Loads, swaps and unloads versions on a thread of its own. A new version is loaded and warmed up
// before the old one is unloaded, and requests that hold the old one finish on it: a swap fails no
// request. A directory whose contents still change between two looks (a copy in progress) is not
// loaded yet. Thread-safe.
class ModelManager {
 public:
  static absl::StatusOr<std::unique_ptr<ModelManager>> Create(
      const std::vector<ModelConfig>& models, const ModelManagerOptions& options = {});
  ~ModelManager();

  // Waits until each model has a version that is available, or one whose load has failed for good.
  // Returns the first such failure, or DEADLINE_EXCEEDED.
  absl::Status WaitUntilLoaded(std::chrono::milliseconds limit);

  // Returns the version that the request wants.
  //
  // clang-format off
  //   NOT_FOUND            "Servable not found for request: Specific(name, 3)", with what exists
  //   INVALID_ARGUMENT     no name; an unknown label; both a version and a label
  // clang-format on
  absl::StatusOr<std::shared_ptr<const Servable>> Find(const ModelSpec& spec) const;

  // Finds the version, and calls its signature: in a batch with others' requests, if the model has
  // batching options and the signature can be batched.
  absl::StatusOr<NamedTensors> Run(const Servable& servable, const std::string& signature,
                                   const NamedTensors& inputs,
                                   const std::vector<std::string>& outputs = {},
                                   const RunOptions& options = {});

  // The states of the versions that the manager has seen, the largest number first. NOT_FOUND for
  // an unknown model or version.
  absl::StatusOr<std::vector<VersionStatus>> Status(const ModelSpec& spec) const;
  // The names of all models, in order.
  std::vector<std::string> models() const;

  // Serves these models from now on, and unloads others. Changes nothing if a config is invalid.
  // Returns when the new versions are available, or with the first error of a load.
  absl::Status Reload(const std::vector<ModelConfig>& models);

 private:
  struct Impl;
  explicit ModelManager(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::serving

#endif  // WEIR_SERVING_MODEL_MANAGER_H_
