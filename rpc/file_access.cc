#include "weir/rpc/file_access.h"

#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "absl/strings/match.h"

namespace weir::rpc {

namespace {

// The path without links, "." and "..", of which the end need not exist yet; "" if there is none,
// as for a link to what does not exist: to make it there would be to make it elsewhere.
std::string Resolve(const std::string& path) {
  char resolved[PATH_MAX];
  if (path.find('\0') != std::string::npos) return "";
  if (realpath(path.c_str(), resolved) != nullptr) return resolved;
  struct stat info;
  if ((errno != ENOENT && errno != ENOTDIR) || lstat(path.c_str(), &info) == 0) return "";
  absl::string_view trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.remove_suffix(1);
  const absl::string_view name = BaseName(trimmed);
  const std::string parent = DirectoryOf(trimmed);
  if (name.empty() || name == "." || name == ".." || parent == trimmed) return "";
  const std::string above = Resolve(parent);
  if (above.empty()) return "";
  return absl::StrCat(above == "/" ? "" : above, "/", name);
}

class RestrictedFiles final : public FileSystem {
 public:
  RestrictedFiles(std::vector<std::string> roots, FileSystem* files)
      : roots_(std::move(roots)), files_(*files) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(Check(path));
    return files_.Create(path);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(Check(path));
    return files_.Open(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    WEIR_RETURN_IF_ERROR(Check(from));
    WEIR_RETURN_IF_ERROR(Check(to));
    return files_.Rename(from, to);
  }
  absl::Status Link(const std::string& from, const std::string& to) override {
    WEIR_RETURN_IF_ERROR(Check(from));
    WEIR_RETURN_IF_ERROR(Check(to));
    return files_.Link(from, to);
  }
  absl::Status Remove(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(Check(path));
    return files_.Remove(path);
  }
  absl::Status SyncDirectory(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(Check(path));
    return files_.SyncDirectory(path);
  }
  absl::Status MakeDirectory(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(Check(path));
    return files_.MakeDirectory(path);
  }
  absl::Status RemoveDirectory(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(Check(path));
    return files_.RemoveDirectory(path);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(Check(path));
    return files_.Lock(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(Check(path));
    return files_.List(path);
  }
  bool Exists(const std::string& path) override { return Check(path).ok() && files_.Exists(path); }
  // Whoever makes a path looks at every directory on the way.
  bool IsDirectory(const std::string& path) override {
    return (Check(path).ok() || LeadsToRoot(path)) && files_.IsDirectory(path);
  }

 private:
  static bool IsWithin(absl::string_view path, absl::string_view directory) {
    return directory == "/" || path == directory ||
           (absl::StartsWith(path, directory) && path[directory.size()] == '/');
  }

  bool LeadsToRoot(const std::string& path) const {
    const std::string resolved = Resolve(path);
    if (resolved.empty()) return false;
    for (const std::string& root : roots_) {
      if (IsWithin(root, resolved)) return true;
    }
    return false;
  }

  absl::Status Check(const std::string& path) const {
    const std::string resolved = Resolve(path);
    for (const std::string& root : roots_) {
      if (!resolved.empty() && IsWithin(resolved, root)) return absl::OkStatus();
    }
    return absl::PermissionDeniedError(absl::StrCat("The server gives its clients no access to ",
                                                    path, " (weir serve --allow-path)"));
  }

  const std::vector<std::string> roots_;
  FileSystem& files_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileSystem>> OnlyWithin(const std::vector<std::string>& directories,
                                                       FileSystem* files) {
  std::vector<std::string> roots;
  for (const std::string& directory : directories) {
    const std::string resolved = files->IsDirectory(directory) ? Resolve(directory) : "";
    if (resolved.empty()) return NotFound("There is no directory ", directory);
    roots.push_back(resolved);
  }
  return std::unique_ptr<FileSystem>(new RestrictedFiles(std::move(roots), files));
}

}  // namespace weir::rpc
