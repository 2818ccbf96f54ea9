#ifndef WEIR_SERVING_MODEL_VERSIONS_H_
#define WEIR_SERVING_MODEL_VERSIONS_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/serving/loaded_version.h"
#include "weir/serving/model_config.h"
#include "weir/serving/model_manager.h"
#include "weir/serving/version_directory.h"

// The versions of one model, as the thread of a manager sees them: which are in the directory,
// which are wanted, which are loaded.
namespace weir::serving {

using Clock = std::chrono::steady_clock;

// One version. Copyable; copies share what is loaded.
struct Version {
  VersionState state = VersionState::kStart;
  absl::Status error = {};  // of the last attempt to load it
  std::shared_ptr<const LoadedVersion> loaded = {};
  std::weak_ptr<const LoadedVersion> unloading = {};  // until no request holds it
  int64_t memory_bytes = 0;                           // while it is loaded

  std::string directory = {};  // empty: it is not there any more
  DirectorySnapshot snapshot = {};
  Clock::time_point seen = {};  // when the snapshot was first taken
  bool is_settled = false;      // nothing has changed for a while: it is complete
  int attempts = 0;             // to load this snapshot
  Clock::time_point next_attempt = {};
};

// Not thread-safe; copyable.
class ModelVersions {
 public:
  explicit ModelVersions(ModelConfig config) : config_(std::move(config)) {}
  const ModelConfig& config() const { return config_; }
  // Serves other versions of the same directory from the next Look on.
  void set_config(ModelConfig config) { config_ = std::move(config); }
  // By number, the largest first.
  const std::map<int64_t, Version, std::greater<>>& versions() const { return versions_; }
  // Why the directory cannot be read, or OK.
  const absl::Status& error() const { return error_; }

  // Looks at the directory. If it cannot be read, what was seen before stays. A version that has
  // not changed for `settle` is complete.
  void Look(std::chrono::milliseconds settle);

  // Returns the wanted versions that the directory has and that are complete.
  std::vector<int64_t> Wanted() const;
  // Returns the next version to load now, the largest first; -1 if there is none.
  int64_t NextToLoad(Clock::time_point now) const;
  // Loads the version, and records the result.
  void Load(int64_t version, const ModelManagerOptions& options,
            const std::shared_ptr<VersionPool>& pool);
  // Records that an attempt to load the version begins.
  void BeginLoad(int64_t version) { versions_[version].state = VersionState::kLoading; }
  // Lets go of versions that are not wanted. As many of them stay as wanted ones are not available,
  // so that a new version that does not load leaves the old one in service.
  void Unload();
  // Records which versions have been freed, and forgets old ones.
  void Sweep();

  bool HasAvailable() const;
  // Whether a wanted version may still become available without a change of the directory.
  bool IsPending() const;
  // Returns the error of the largest wanted version that failed, or of the directory; OK if there
  // is none.
  absl::Status Failure() const;

 private:
  // Whether the policy wants the version, if it is complete, beside what is known of the others.
  bool MayBeWanted(int64_t number) const;
  void Merge(const std::map<int64_t, std::string>& directories, std::chrono::milliseconds settle);
  void Update(Version& version, const std::string& directory, std::chrono::milliseconds settle);
  absl::Status CheckMemory(int64_t version, int64_t bytes) const;
  absl::StatusOr<std::shared_ptr<const LoadedVersion>> TryLoad(
      int64_t version, const ModelManagerOptions& options,
      const std::shared_ptr<VersionPool>& pool) const;

  ModelConfig config_;
  std::map<int64_t, Version, std::greater<>> versions_;
  absl::Status error_;
};

}  // namespace weir::serving

#endif  // WEIR_SERVING_MODEL_VERSIONS_H_
