#include "weir/rpc/file_access.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "weir/core/io/file_posix.h"

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

bool IsWithin(absl::string_view path, absl::string_view directory) {
  return directory == "/" || path == directory ||
         (absl::StartsWith(path, directory) && path[directory.size()] == '/');
}

// Returns whether an open file may be used: a device or a pipe may block or have side effects, and
// the files in /proc and /sys are the system's.
bool IsFileOrDirectory(int fd) {
  struct stat info;
  struct statfs system;
  return fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) &&
         fstatfs(fd, &system) == 0 && system.f_type != PROC_SUPER_MAGIC &&
         system.f_type != SYSFS_MAGIC;
}

// Restricts paths in two steps. Resolve finds the file that a path leads to, through links, and
// where that is decides whether it is allowed. Then Find opens that file, from the root directory,
// component by component and without following a link. In between, another user of the machine may
// replace a directory by a link to elsewhere; opening the component then fails. The result refers
// to the file that was opened, not to its path, so nothing can be replaced afterwards either.
class RestrictedFileSystem final : public PosixFileSystem {
 public:
  explicit RestrictedFileSystem(std::vector<std::string> roots) : roots_(std::move(roots)) {}

  // A parent of an allowed directory shows only the entries that lead to it, since a pattern may
  // have wildcards there.
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    const std::set<std::string> names = EntriesLeadingToRoots(path);
    if (names.empty()) return PosixFileSystem::List(path);
    return std::vector<std::string>(names.begin(), names.end());
  }
  // Creating a path checks every directory on the way.
  bool IsDirectory(const std::string& path) override {
    return !EntriesLeadingToRoots(path).empty() || PosixFileSystem::IsDirectory(path);
  }

 private:
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

  absl::StatusOr<Place> Find(const std::string& path, Meaning meaning) const override {
    const std::string resolved = meaning == Meaning::kFile ? Resolve(path) : ResolveEntry(path);
    bool is_allowed = false;
    for (const std::string& root : roots_)
      is_allowed = is_allowed || (!resolved.empty() && IsWithin(resolved, root));
    if (!is_allowed) return Refused(path);
    WEIR_ASSIGN_OR_RETURN(Place place, OpenDirectory(resolved, path));
    if (meaning == Meaning::kEntry) return place;
    Descriptor file(place.Open(O_PATH));
    if (file.fd() < 0) return place;  // to be created, or replaced by a link and so not opened
    if (!IsFileOrDirectory(file.fd())) return Refused(path);
    const std::string name = absl::StrCat("/proc/self/fd/", file.fd());
    return Place{std::move(file), name, /*follows_links=*/true};
  }

  // Resolves all but the last component.
  static std::string ResolveEntry(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    const absl::string_view name = BaseName(path);
    const std::string directory = Resolve(DirectoryOf(path));
    if (directory.empty() || name.empty() || name == "." || name == "..") return "";
    return JoinPath(directory, name);
  }

  // Opens the directory of a resolved path.
  static absl::StatusOr<Place> OpenDirectory(const std::string& resolved, const std::string& path) {
    constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    Place place{Descriptor(open("/", kFlags)), ".", /*follows_links=*/false};
    for (const absl::string_view name : absl::StrSplit(resolved, '/', absl::SkipEmpty())) {
      if (place.name != ".")
        place.directory = Descriptor(openat(place.directory.fd(), place.name.c_str(), kFlags));
      if (place.directory.fd() < 0)
        return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
      place.name = std::string(name);
    }
    return place;
  }

  static absl::Status Refused(const std::string& path) {
    return absl::PermissionDeniedError(absl::StrCat("This server does not allow clients to access ",
                                                    path, " (weir serve --allow-path)"));
  }

  const std::vector<std::string> roots_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileSystem>> RestrictFiles(
    const std::vector<std::string>& directories) {
  std::vector<std::string> roots;
  for (const std::string& directory : directories) {
    const std::string resolved = Files().IsDirectory(directory) ? Resolve(directory) : "";
    if (resolved.empty()) return NotFound("Directory ", directory, " does not exist");
    roots.push_back(resolved);
  }
  return std::unique_ptr<FileSystem>(new RestrictedFileSystem(std::move(roots)));
}

}  // namespace weir::rpc
