#ifndef WEIR_SERVING_MODEL_CONFIG_H_
#define WEIR_SERVING_MODEL_CONFIG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weir/serving/batching.h"

namespace weir::proto::serving {
class ModelServerConfig;
}  // namespace weir::proto::serving

// Which models a server serves. The terms and defaults are TensorFlow Serving's
// (model_server_config.proto, file_system_storage_path_source.proto).
namespace weir::serving {

// Which of the versions in a model's directory are served.
struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  int num_versions = 1;                // kLatest: so many, the largest numbers
  std::vector<int64_t> versions = {};  // kSpecific

  friend bool operator==(const VersionPolicy& a, const VersionPolicy& b) {
    return a.kind == b.kind && a.num_versions == b.num_versions && a.versions == b.versions;
  }
};

// Which requests of a model are logged, as TFRecords of PredictionLogs.
struct RequestLogging {
  std::string filename_prefix;  // absolute
  double sampling_rate = 0;     // of the requests: 0 none, 1 all
  int line = 0;                 // of the prefix in the file that it is from; 0: from none
};

// One model of a server.
struct ModelConfig {
  // What clients call it: printable ASCII without space, '/' or ':', which separate the parts of a
  // URL.
  std::string name;
  // Absolute. Holds a sub-directory for each version, named by its number ("1", "0002"); others are
  // ignored.
  std::string base_path;
  VersionPolicy versions = {};
  std::map<std::string, int64_t> labels = {};  // "stable" -> 3
  int64_t max_memory_bytes = 0;                // of all loaded versions; 0: no limit
  std::optional<BatchingOptions> batching = {};
  std::optional<RequestLogging> logging = {};
  int line = 0;  // of the base path in the file that it is from; 0: from none
};

// Parses a file for --model_config_file: a ModelServerConfig in text format. Returns
// INVALID_ARGUMENT with the line, what was found and what was expected: for the mistakes of the
// next function, too.
absl::StatusOr<std::vector<ModelConfig>> ParseModelConfigs(absl::string_view text);

// Converts a message, from a request to reload the configuration. Returns INVALID_ARGUMENT for the
// mistakes of the next function, a platform other than "tensorflow", and what Weir does not
// support: a custom configuration, and sampling rates for single tasks.
absl::StatusOr<std::vector<ModelConfig>> ModelConfigsFromProto(
    const proto::serving::ModelServerConfig& config);

// Returns INVALID_ARGUMENT, with the name of the model, for a name that is empty, malformed or that
// two models have; a base path that is not absolute; a policy without versions, or with a negative
// one or one twice; a label that is empty, or for a version that the policy never serves; a
// negative memory limit; batching options as CheckBatchingOptions; a rate outside [0, 1].
absl::Status CheckModelConfigs(const std::vector<ModelConfig>& models);

}  // namespace weir::serving

#endif  // WEIR_SERVING_MODEL_CONFIG_H_
