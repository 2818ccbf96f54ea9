#ifndef WEIR_CORE_IO_FILE_POSIX_H_
#define WEIR_CORE_IO_FILE_POSIX_H_

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/io/file.h"

namespace weir {

// The file system of the operating system. Every system call that takes a path takes what Find
// returns for it, so a derived class that overrides Find decides which files exist.
class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Link(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::Status RemoveDirectory(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  bool Exists(const std::string& path) override;
  bool IsDirectory(const std::string& path) override;

 protected:
  // A descriptor that is closed at the end, or AT_FDCWD.
  class Descriptor {
   public:
    explicit Descriptor(int fd = AT_FDCWD) : fd_(fd) {}
    Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, AT_FDCWD)) {}
    Descriptor& operator=(Descriptor&& o) noexcept {
      std::swap(fd_, o.fd_);
      return *this;
    }
    ~Descriptor() {
      if (fd_ >= 0) close(fd_);
    }
    int fd() const { return fd_; }

   private:
    int fd_;
  };

  // A path as system calls take it: a name, relative to an open directory.
  struct Place {
    Descriptor directory;
    std::string name;
    bool follows_links = true;  // whether `name` may be a symbolic link

    // Returns a descriptor, which the caller closes, or -1 with errno.
    int Open(int flags) const;
    // Returns false with errno if there is no such file.
    bool Stat(struct stat* info) const;
  };

  // What a path means: the file it leads to, or the entry of its directory, which may be a link.
  enum class Meaning { kFile, kEntry };

  // Returns the place of a path, whose last component need not exist. Returns INVALID_ARGUMENT for
  // a path that contains a NUL.
  virtual absl::StatusOr<Place> Find(const std::string& path, Meaning meaning) const;

 private:
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path, int flags,
                                                            const char* error);
};

}  // namespace weir

#endif  // WEIR_CORE_IO_FILE_POSIX_H_
