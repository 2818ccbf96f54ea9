#include "weir/rpc/file_access.h"

#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <set>

#include "absl/strings/match.h"

namespace weir::rpc {

namespace {

// Returns the path of an existing file without links, "." and "..", or "" with errno.
std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real == nullptr ? "" : real.get();
}

// Resolves a path, whose end need not exist yet, without links, "." and "..". Returns "" if that is
// impossible, as for a dangling link: creating its target would create a file elsewhere.
std::string Resolve(const std::string& path) {
  if (path.empty() || path.size() >= PATH_MAX || path.find('\0') != std::string::npos) return "";
  std::string above = path, missing;  // the part that may exist, and the rest
  for (;;) {
    const std::string real = RealPath(above);
    if (!real.empty())
      return missing.empty() ? real : absl::StrCat(real == "/" ? "" : real, missing);
    struct stat info;
    if ((errno != ENOENT && errno != ENOTDIR) || lstat(above.c_str(), &info) == 0) return "";
    while (above.size() > 1 && above.back() == '/') above.pop_back();
    const std::string name(BaseName(above)), parent = DirectoryOf(above);
    if (name.empty() || name == "." || name == ".." || parent == above) return "";
    missing.insert(0, absl::StrCat("/", name));
    above = parent;
  }
}

class RestrictedFileSystem final : public FileSystem {
 public:
  RestrictedFileSystem(std::vector<std::string> roots, FileSystem* files)
      : roots_(std::move(roots)), files_(*files) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(Check(path));
    return files_.Create(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(Check(path));
    return files_.OpenAtEnd(path);
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
  // A parent of an allowed directory shows only the entries that lead to it, since a pattern may
  // have wildcards there.
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    const absl::Status status = Check(path);
    if (status.ok()) return files_.List(path);
    const std::set<std::string> names = EntriesLeadingToRoots(path);
    if (names.empty()) return status;
    return std::vector<std::string>(names.begin(), names.end());
  }
  bool Exists(const std::string& path) override { return Check(path).ok() && files_.Exists(path); }
  // Creating a path checks every directory on the way.
  bool IsDirectory(const std::string& path) override {
    return (Check(path).ok() || !EntriesLeadingToRoots(path).empty()) && files_.IsDirectory(path);
  }

 private:
  static bool IsWithin(absl::string_view path, absl::string_view directory) {
    return directory == "/" || path == directory ||
           (absl::StartsWith(path, directory) && path[directory.size()] == '/');
  }

  // Returns the entries of this directory that lead to allowed directories.
  std::set<std::string> EntriesLeadingToRoots(const std::string& path) const {
    std::set<std::string> names;
    const std::string resolved = Resolve(path);
    for (const std::string& root : roots_) {
      if (resolved.empty() || root == resolved || !IsWithin(root, resolved)) continue;
      const size_t begin = resolved == "/" ? 1 : resolved.size() + 1;
      names.insert(root.substr(begin, root.find('/', begin) - begin));
    }
    return names;
  }

  absl::Status Check(const std::string& path) const {
    const std::string resolved = Resolve(path);
    for (const std::string& root : roots_) {
      if (!resolved.empty() && IsWithin(resolved, root)) return absl::OkStatus();
    }
    return absl::PermissionDeniedError(absl::StrCat("This server does not allow clients to access ",
                                                    path, " (weir serve --allow-path)"));
  }

  const std::vector<std::string> roots_;
  FileSystem& files_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileSystem>> RestrictFiles(
    const std::vector<std::string>& directories, FileSystem* files) {
  std::vector<std::string> roots;
  for (const std::string& directory : directories) {
    const std::string resolved = files->IsDirectory(directory) ? Resolve(directory) : "";
    if (resolved.empty()) return NotFound("Directory ", directory, " does not exist");
    roots.push_back(resolved);
  }
  return std::unique_ptr<FileSystem>(new RestrictedFileSystem(std::move(roots), files));
}

}  // namespace weir::rpc
