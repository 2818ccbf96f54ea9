#include "weir/core/io/file_posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/escaping.h"
#include "weir/core/io/memory_folder.h"

namespace weir {
namespace {

absl::Status Failed(absl::string_view what, absl::string_view path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
}

// Repeats a call that a signal interrupts.
template <class F>
auto Retry(F&& call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PosixWritableFile() override {
    if (fd_ >= 0) close(fd_);
  }

  absl::Status Append(absl::string_view data) override {
    while (!data.empty()) {
      const ssize_t n = Retry([&] { return write(fd_, data.data(), data.size()); });
      if (n < 0) return Failed("cannot write", path_);
      data.remove_prefix(static_cast<size_t>(n));
      size_ += n;
    }
    return absl::OkStatus();
  }

  void Reserve(uint64_t size) override {
    struct statvfs disk;
    if (size == 0 || fstatvfs(fd_, &disk) != 0 || size / disk.f_frsize >= disk.f_bavail) return;
    const auto bytes = static_cast<off_t>(size);
    if (Retry([&] { return fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, bytes); }) == 0) {
      reserved_ = bytes;
    } else {
      // Others filled the disk meanwhile: the blocks that were free are allocated.
      ReleasePreallocated();
    }
  }

  void StartSync() override {
    sync_file_range(fd_, started_, size_ - started_, SYNC_FILE_RANGE_WRITE);
    started_ = size_;
  }

  absl::Status Sync() override {
    return Retry([&] { return fdatasync(fd_); }) == 0 ? absl::OkStatus()
                                                      : Failed("cannot sync", path_);
  }

  absl::Status Close() override {
    if (reserved_ > size_) ReleasePreallocated();
    const int result = close(fd_);
    fd_ = -1;
    return result == 0 ? absl::OkStatus() : Failed("cannot close", path_);
  }

 private:
  // Releases the blocks beyond the end of the file. A failure leaves them allocated, which is not
  // an error.
  void ReleasePreallocated() {
    if (ftruncate(fd_, size_) != 0) return;
  }

  const std::string path_;
  int fd_;
  off_t size_ = 0, reserved_ = 0;
  off_t started_ = 0;  // offset up to which writeback has started
};

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(const std::string& path, uint64_t size, int fd)
      : ReadableFile(path, size), fd_(fd) {}
  ~PosixReadableFile() override { close(fd_); }

  absl::StatusOr<size_t> ReadSome(uint64_t offset, size_t size, char* out) const override {
    size_t got = 0;
    if (offset > static_cast<uint64_t>(INT64_MAX) - size) return got;
    while (got < size) {
      const ssize_t n = Retry(
          [&] { return pread(fd_, out + got, size - got, static_cast<off_t>(offset + got)); });
      if (n < 0) return Failed("cannot read", path());
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    return got;
  }

 private:
  const int fd_;
};

// An flock lock belongs to the open file description, so two threads of a process exclude each
// other just as two processes do. A forked child shares the lock until it is released.
class PosixFileLock : public FileLock {
 public:
  explicit PosixFileLock(int fd) : fd_(fd) {}
  ~PosixFileLock() override {
    flock(fd_, LOCK_UN);
    close(fd_);
  }

 private:
  const int fd_;
};

}  // namespace

int PosixFileSystem::Place::Open(int flags) const {
  const int no_follow = follows_links ? 0 : O_NOFOLLOW;
  return Retry(
      [&] { return openat(directory.fd(), name.c_str(), flags | no_follow | O_CLOEXEC, 0666); });
}

bool PosixFileSystem::Place::Stat(struct stat* info) const {
  const int flags = follows_links ? 0 : AT_SYMLINK_NOFOLLOW;
  return fstatat(directory.fd(), name.c_str(), info, flags) == 0;
}

// A path with a NUL would be truncated by the system.
absl::StatusOr<PosixFileSystem::Place> PosixFileSystem::Find(const std::string& path,
                                                             Meaning) const {
  if (path.find('\0') != std::string::npos)
    return InvalidArgument("the path '", absl::CHexEscape(path), "' contains a zero byte");
  Place place;
  place.name = path;
  return place;
}

absl::StatusOr<std::unique_ptr<WritableFile>> PosixFileSystem::OpenToWrite(const std::string& path,
                                                                           int flags,
                                                                           const char* error) {
  WEIR_ASSIGN_OR_RETURN(const Place place, Find(path, Meaning::kFile));
  // O_NONBLOCK: opening a pipe would block until it has a reader; without a reader it is an error.
  const int fd = place.Open(O_WRONLY | O_CREAT | O_NONBLOCK | flags);
  if (fd < 0) return Failed(error, path);
  auto file = std::make_unique<PosixWritableFile>(path, fd);
  if (fcntl(fd, F_SETFL, flags & O_APPEND) != 0) return Failed(error, path);
  return file;
}

absl::StatusOr<std::unique_ptr<WritableFile>> PosixFileSystem::Create(const std::string& path) {
  return OpenToWrite(path, O_TRUNC, "cannot create");
}

absl::StatusOr<std::unique_ptr<WritableFile>> PosixFileSystem::OpenAtEnd(const std::string& path) {
  return OpenToWrite(path, O_APPEND, "cannot open");
}

absl::StatusOr<std::unique_ptr<ReadableFile>> PosixFileSystem::Open(const std::string& path) {
  if (internal::IsInMemory(path)) return internal::OpenInMemory(path);
  WEIR_ASSIGN_OR_RETURN(const Place place, Find(path, Meaning::kFile));
  // O_NONBLOCK: opening a pipe would block until it has a writer.
  const int fd = place.Open(O_RDONLY | O_NONBLOCK);
  if (fd < 0) return Failed("cannot open", path);
  struct stat info;
  if (fstat(fd, &info) != 0 || S_ISDIR(info.st_mode) || S_ISFIFO(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) errno = EISDIR;
    if (S_ISFIFO(info.st_mode)) errno = ESPIPE;
    const absl::Status status = Failed("cannot open", path);
    close(fd);
    return status;
  }
  const uint64_t size = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  return std::make_unique<PosixReadableFile>(path, size, fd);
}

// A device, a pipe or a socket, or a link to one, is INVALID_ARGUMENT.
absl::Status PosixFileSystem::Rename(const std::string& from, const std::string& to) {
  WEIR_ASSIGN_OR_RETURN(const Place source, Find(from, Meaning::kEntry));
  WEIR_ASSIGN_OR_RETURN(const Place target, Find(to, Meaning::kEntry));
  struct stat info;
  const bool is_replaceable = !target.Stat(&info) || S_ISREG(info.st_mode) ||
                              S_ISDIR(info.st_mode) || S_ISLNK(info.st_mode);
  if (!is_replaceable)
    return InvalidArgument(to, " is not a regular file and cannot be replaced by one");
  return renameat(source.directory.fd(), source.name.c_str(), target.directory.fd(),
                  target.name.c_str()) == 0
             ? absl::OkStatus()
             : Failed(absl::StrCat("cannot rename ", from, " to"), to);
}

absl::Status PosixFileSystem::Link(const std::string& from, const std::string& to) {
  WEIR_ASSIGN_OR_RETURN(const Place source, Find(from, Meaning::kEntry));
  WEIR_ASSIGN_OR_RETURN(const Place target, Find(to, Meaning::kEntry));
  return linkat(source.directory.fd(), source.name.c_str(), target.directory.fd(),
                target.name.c_str(), 0) == 0
             ? absl::OkStatus()
             : Failed(absl::StrCat("cannot link ", from, " as"), to);
}

absl::Status PosixFileSystem::Remove(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const Place place, Find(path, Meaning::kEntry));
  return unlinkat(place.directory.fd(), place.name.c_str(), 0) == 0 ? absl::OkStatus()
                                                                    : Failed("cannot remove", path);
}

absl::Status PosixFileSystem::SyncDirectory(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const Place place, Find(path, Meaning::kFile));
  const int fd = place.Open(O_RDONLY | O_DIRECTORY);
  if (fd < 0) return Failed("cannot open directory", path);
  const int result = Retry([&] { return fsync(fd); });
  // Some file systems cannot sync a directory and return EINVAL.
  const absl::Status status =
      result == 0 || errno == EINVAL ? absl::OkStatus() : Failed("cannot sync", path);
  close(fd);
  return status;
}

absl::Status PosixFileSystem::MakeDirectory(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const Place place, Find(path, Meaning::kEntry));
  return mkdirat(place.directory.fd(), place.name.c_str(), 0777) == 0
             ? absl::OkStatus()
             : Failed("cannot make directory", path);
}

absl::Status PosixFileSystem::RemoveDirectory(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const Place place, Find(path, Meaning::kEntry));
  return unlinkat(place.directory.fd(), place.name.c_str(), AT_REMOVEDIR) == 0
             ? absl::OkStatus()
             : Failed("cannot remove directory", path);
}

// If the last holder has removed the file's name, the lock is useless: by now the name may belong
// to another file.
absl::StatusOr<std::unique_ptr<FileLock>> PosixFileSystem::Lock(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const Place place, Find(path, Meaning::kEntry));
  for (;;) {
    const int fd = place.Open(O_RDWR | O_CREAT | O_NOFOLLOW);
    if (fd < 0) return Failed("cannot create", path);
    const bool is_locked = Retry([&] { return flock(fd, LOCK_EX | LOCK_NB); }) == 0;
    const int why = errno;
    struct stat opened, named;
    const bool is_same = fstat(fd, &opened) == 0 && place.Stat(&named) &&
                         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
    if (is_locked && is_same) return std::make_unique<PosixFileLock>(fd);
    close(fd);
    if (is_locked) continue;
    if (why == EWOULDBLOCK) return absl::AbortedError(absl::StrCat(path, " is locked"));
    return absl::UnimplementedError(absl::StrCat("cannot lock ", path));
  }
}

absl::StatusOr<std::vector<std::string>> PosixFileSystem::List(const std::string& path) {
  if (auto names = internal::ListInMemory(path)) return *std::move(names);
  WEIR_ASSIGN_OR_RETURN(const Place place, Find(path, Meaning::kFile));
  const int fd = place.Open(O_RDONLY | O_DIRECTORY);
  DIR* const directory = fd < 0 ? nullptr : fdopendir(fd);
  if (directory == nullptr) {
    const absl::Status status = Failed("cannot list", path);
    if (fd >= 0) close(fd);
    return status;
  }
  std::vector<std::string> names;
  while (const dirent* entry = readdir(directory)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

bool PosixFileSystem::Exists(const std::string& path) {
  if (internal::IsInMemory(path))
    return internal::IsFileInMemory(path) || internal::ListInMemory(path).has_value();
  const auto place = Find(path, Meaning::kFile);
  struct stat info;
  return place.ok() && place->Stat(&info);
}

bool PosixFileSystem::IsDirectory(const std::string& path) {
  if (internal::IsInMemory(path)) return internal::ListInMemory(path).has_value();
  const auto place = Find(path, Meaning::kFile);
  struct stat info;
  return place.ok() && place->Stat(&info) && S_ISDIR(info.st_mode);
}

FileSystem& PosixFiles();
FileSystem& PosixFiles() {
  static PosixFileSystem* const files = new PosixFileSystem;
  return *files;
}

}  // namespace weir
