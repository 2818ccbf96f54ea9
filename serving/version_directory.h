#ifndef WEIR_SERVING_VERSION_DIRECTORY_H_
#define WEIR_SERVING_VERSION_DIRECTORY_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "weir/core/tensor/status.h"

// What a model's directory holds: a sub-directory for each version.
namespace weir::serving {

// Returns the directories below `base_path` whose names are numbers, by number. Other names are
// ignored. Of several directories for one number ("1", "001"), the first in the order of names
// counts. Returns NOT_FOUND if the directory does not exist.
absl::StatusOr<std::map<int64_t, std::string>> ListVersions(const std::string& base_path);

// The state of a directory tree at one time.
struct DirectorySnapshot {
  uint64_t digest = 0;  // of the names, sizes and times of the files; differs after a change
  int64_t bytes = 0;    // of all files
  // When a file or directory was last changed, by the file system's clock.
  std::chrono::system_clock::time_point changed = {};
};

// Looks at all files of a directory, without opening them. Links to directories are not followed,
// except that `directory` may be one. Returns RESOURCE_EXHAUSTED for more than 100,000 files.
absl::StatusOr<DirectorySnapshot> TakeSnapshot(const std::string& directory);

}  // namespace weir::serving

#endif  // WEIR_SERVING_VERSION_DIRECTORY_H_
