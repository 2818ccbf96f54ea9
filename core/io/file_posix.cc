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
#include "weir/core/io/file.h"

// The file system of the operating system.
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

bool IsSameFile(int fd, const std::string& path) {
  struct stat opened, named;
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Returns INVALID_ARGUMENT for a path that the system would truncate (one that contains a NUL).
absl::Status CheckPath(const std::string& path) {
  if (path.find('\0') == std::string::npos) return absl::OkStatus();
  return InvalidArgument("the path '", absl::CHexEscape(path), "' contains a zero byte");
}

// Returns INVALID_ARGUMENT if the path is a device, a pipe or a socket, or a link to one.
absl::Status CheckReplaceable(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode))
    return absl::OkStatus();
  return InvalidArgument(path, " is not a regular file and cannot be replaced by one");
}

class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return OpenToWrite(path, O_TRUNC, "cannot create");
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path) override {
    return OpenToWrite(path, O_APPEND, "cannot open");
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(CheckPath(path));
    // O_NONBLOCK: opening a pipe would block until it has a writer.
    const int fd = Retry([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
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

  absl::Status Rename(const std::string& from, const std::string& to) override {
    WEIR_RETURN_IF_ERROR(CheckPath(from));
    WEIR_RETURN_IF_ERROR(CheckPath(to));
    WEIR_RETURN_IF_ERROR(CheckReplaceable(to));
    return rename(from.c_str(), to.c_str()) == 0
               ? absl::OkStatus()
               : Failed(absl::StrCat("cannot rename ", from, " to"), to);
  }

  absl::Status Link(const std::string& from, const std::string& to) override {
    WEIR_RETURN_IF_ERROR(CheckPath(from));
    WEIR_RETURN_IF_ERROR(CheckPath(to));
    return link(from.c_str(), to.c_str()) == 0
               ? absl::OkStatus()
               : Failed(absl::StrCat("cannot link ", from, " as"), to);
  }

  absl::Status Remove(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(CheckPath(path));
    return unlink(path.c_str()) == 0 ? absl::OkStatus() : Failed("cannot remove", path);
  }

  absl::Status SyncDirectory(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(CheckPath(path));
    const int fd = Retry([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) return Failed("cannot open directory", path);
    const int result = Retry([&] { return fsync(fd); });
    // Some file systems cannot sync a directory and return EINVAL.
    const absl::Status status =
        result == 0 || errno == EINVAL ? absl::OkStatus() : Failed("cannot sync", path);
    close(fd);
    return status;
  }

  absl::Status MakeDirectory(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(CheckPath(path));
    return mkdir(path.c_str(), 0777) == 0 ? absl::OkStatus()
                                          : Failed("cannot make directory", path);
  }

  absl::Status RemoveDirectory(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(CheckPath(path));
    return rmdir(path.c_str()) == 0 ? absl::OkStatus() : Failed("cannot remove directory", path);
  }

  // If the last holder has removed the file's name, the lock is useless: by now the name may belong
  // to another file.
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(CheckPath(path));
    for (;;) {
      const int fd = Retry(
          [&] { return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666); });
      if (fd < 0) return Failed("cannot create", path);
      const bool is_locked = Retry([&] { return flock(fd, LOCK_EX | LOCK_NB); }) == 0;
      if (is_locked && IsSameFile(fd, path)) return std::make_unique<PosixFileLock>(fd);
      const int why = errno;
      close(fd);
      if (is_locked) continue;
      if (why == EWOULDBLOCK) return absl::AbortedError(absl::StrCat(path, " is locked"));
      return absl::UnimplementedError(absl::StrCat("cannot lock ", path));
    }
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    WEIR_RETURN_IF_ERROR(CheckPath(path));
    DIR* directory = opendir(path.c_str());
    if (directory == nullptr) return Failed("cannot list", path);
    std::vector<std::string> names;
    while (const dirent* entry = readdir(directory)) {
      const absl::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    closedir(directory);
    std::sort(names.begin(), names.end());
    return names;
  }

  bool Exists(const std::string& path) override {
    return CheckPath(path).ok() && access(path.c_str(), F_OK) == 0;
  }

  bool IsDirectory(const std::string& path) override {
    struct stat info;
    return CheckPath(path).ok() && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  }

 private:
  static absl::StatusOr<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path,
                                                                   int flags, const char* error) {
    WEIR_RETURN_IF_ERROR(CheckPath(path));
    // O_NONBLOCK: opening a pipe would block until it has a reader; without a reader it is an
    // error.
    constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK;
    const int fd = Retry([&] { return open(path.c_str(), kFlags | flags, 0666); });
    if (fd < 0) return Failed(error, path);
    auto file = std::make_unique<PosixWritableFile>(path, fd);
    if (fcntl(fd, F_SETFL, flags & O_APPEND) != 0) return Failed(error, path);
    return file;
  }
};

}  // namespace

FileSystem& PosixFiles();
FileSystem& PosixFiles() {
  static PosixFileSystem* const files = new PosixFileSystem;
  return *files;
}

}  // namespace weir
