#include "weir/serving/version_directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "weir/core/io/file.h"

namespace weir::serving {
namespace {

constexpr int kMaxFiles = 100'000;

absl::Status Failed(const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot look at ", path));
}

// Adds one file or directory. One that has vanished since it was listed counts as a change.
void Add(const std::string& path, DirectorySnapshot* snapshot) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    snapshot->digest += absl::HashOf(path, errno);
    return;
  }
  using std::chrono::duration_cast, std::chrono::system_clock;
  const std::chrono::nanoseconds changed =
      std::chrono::seconds(info.st_ctim.tv_sec) + std::chrono::nanoseconds(info.st_ctim.tv_nsec);
  snapshot->changed = std::max(
      snapshot->changed, system_clock::time_point(duration_cast<system_clock::duration>(changed)));
  if (S_ISREG(info.st_mode)) snapshot->bytes += info.st_size;
  // A sum does not depend on the order of the files.
  snapshot->digest += absl::HashOf(path, info.st_size, changed.count());
}

}  // namespace

absl::StatusOr<std::map<int64_t, std::string>> ListVersions(const std::string& base_path) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> names, Files().List(base_path));
  std::map<int64_t, std::string> versions;
  for (const std::string& name : names) {
    int64_t version = 0;
    const bool is_number =
        absl::c_all_of(name, [](char c) { return absl::ascii_isdigit(static_cast<uint8_t>(c)); });
    if (!is_number || !absl::SimpleAtoi(name, &version)) continue;
    const std::string path = JoinPath(base_path, name);
    if (Files().IsDirectory(path)) versions.emplace(version, path);
  }
  return versions;
}

absl::StatusOr<DirectorySnapshot> TakeSnapshot(const std::string& directory) {
  namespace fs = std::filesystem;
  DirectorySnapshot snapshot;
  Add(directory, &snapshot);
  std::error_code error;
  fs::recursive_directory_iterator file(directory, error);
  for (int count = 0; !error && file != fs::recursive_directory_iterator();
       file.increment(error), ++count) {
    if (count == kMaxFiles) {
      return absl::ResourceExhaustedError(
          absl::StrCat(directory, " has more than ", kMaxFiles, " files; expected one model"));
    }
    Add(file->path().string(), &snapshot);
  }
  if (error) return Failed(directory, error.value());
  return snapshot;
}

}  // namespace weir::serving
