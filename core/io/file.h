#ifndef WEIR_CORE_IO_FILE_H_
#define WEIR_CORE_IO_FILE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/status.h"

// Files: a thin layer over the operating system. Tests replace it to truncate writes, drop unsynced
// data, or stop the process. Errors contain the path and have the code that corresponds to errno:
// NOT_FOUND, PERMISSION_DENIED, ALREADY_EXISTS, RESOURCE_EXHAUSTED (disk full), FAILED_PRECONDITION
// (a directory instead of a file, or vice versa).
namespace WEIR_API weir {

// Whether written data survives a power failure once the call returns. In both modes, a file
// visible to other processes is complete, and survives the termination of this process.
enum class Durability { kSynced, kUnsynced };

// A file open for writing, from its start or (OpenAtEnd) its end. Not thread-safe. Each Append is
// one system call: see BufferedFile.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Appends all of `data`. After an error the file's end is unspecified.
  virtual absl::Status Append(absl::string_view data) = 0;
  // Hints that the file, still empty, will have `size` bytes. Preallocates them if there is room,
  // which makes writing large files take two thirds of the time. Close releases what is unused.
  virtual void Reserve(uint64_t size) { (void)size; }
  // Starts writing the appended data to disk, so that Sync has less to wait for.
  virtual void StartSync() {}
  // Returns when the appended data would survive a power failure (provided that the directory entry
  // does: see SyncDirectory).
  virtual absl::Status Sync() = 0;
  // Must be called exactly once. Destroying an open file discards its errors.
  virtual absl::Status Close() = 0;
};

// A file open for reading at any offset. Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // The path that it was opened with.
  const std::string& path() const { return path_; }
  // The size when the file was opened; 0 for files without a size (pipes, /proc).
  uint64_t size() const { return size_; }
  // Reads exactly `size` bytes at `offset`. Returns DATA_LOSS if the file ends earlier.
  absl::Status Read(uint64_t offset, size_t size, char* out) const;
  // Reads up to `size` bytes, and fewer only at the end of the file. Returns the number read.
  virtual absl::StatusOr<size_t> ReadSome(uint64_t offset, size_t size, char* out) const = 0;

 protected:
  // For the classes of a file system: see `path` and `size`.
  ReadableFile(std::string path, uint64_t size) : path_(std::move(path)), size_(size) {}

 private:
  const std::string path_;
  const uint64_t size_;
};

// A file lock, held while this object lives. The operating system releases it when the process
// ends, however it ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// The file system operations that Weir uses. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Creates the file, or truncates an existing one.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Opens an existing file.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) = 0;
  // Opens the file for appending, also while others append; creates it if it does not exist.
  // Returns UNIMPLEMENTED if the file system cannot append.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path) {
    return absl::UnimplementedError(absl::StrCat("cannot append to ", path));
  }
  // Replaces `to` atomically.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Creates a hard link. Returns ALREADY_EXISTS if `to` exists.
  virtual absl::Status Link(const std::string& from, const std::string& to) = 0;
  // Removes a file.
  virtual absl::Status Remove(const std::string& path) = 0;
  // Makes the creations, removals and renames in a directory durable.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
  // Creates a directory whose parent exists.
  virtual absl::Status MakeDirectory(const std::string& path) = 0;
  // Removes an empty directory.
  virtual absl::Status RemoveDirectory(const std::string& path) = 0;
  // Locks the file against other lockers, in this process and in other processes of this machine;
  // creates it if it does not exist. The lock is advisory. Returns ABORTED if the file is locked,
  // UNIMPLEMENTED if the file system has no locks.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) {
    return absl::UnimplementedError(absl::StrCat("file locks are not supported for ", path));
  }
  // Returns the names in a directory, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  // Whether a path exists, and whether it is a directory. False if it cannot be read.
  virtual bool Exists(const std::string& path) = 0;
  virtual bool IsDirectory(const std::string& path) = 0;
};

// The file system that Weir uses: the operating system's, unless replaced.
FileSystem& Files();
// Replaces the process's file system while in scope. For tests; nothing may be reading or writing
// when the scope begins or ends.
class ScopedFileSystem {
 public:
  // `files` outlives this object, which restores the file system that was there.
  explicit ScopedFileSystem(FileSystem* files);
  ~ScopedFileSystem();
  ScopedFileSystem(const ScopedFileSystem&) = delete;
  ScopedFileSystem& operator=(const ScopedFileSystem&) = delete;

 private:
  FileSystem* saved_;
};

// Buffers small writes; large ones go straight through. Errors are sticky: every later call returns
// the first error. The destructor closes the file without syncing.
class BufferedFile {
 public:
  static constexpr size_t kCapacity = size_t{1} << 18;  // bytes
  // Takes over an open, empty file.
  explicit BufferedFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  ~BufferedFile();
  BufferedFile(const BufferedFile&) = delete;
  BufferedFile& operator=(const BufferedFile&) = delete;

  // Appends to the buffer, or to the file if the data is large.
  absl::Status Append(absl::string_view data);
  // Hints at the size of the whole file: see WritableFile.
  void Reserve(uint64_t size);
  // Applies to the data that has been handed to the operating system.
  void StartSync();
  // Hands all buffered data to the operating system.
  absl::Status Flush();
  // Flushes, and waits as WritableFile::Sync; flushes, and closes the file. Close is called once.
  absl::Status Sync();
  absl::Status Close();
  // Number of bytes appended so far.
  uint64_t size() const { return size_; }

 private:
  std::unique_ptr<WritableFile> file_;
  std::string buffer_;
  uint64_t size_ = 0;
  absl::Status status_;
};

// Returns "a/b" for "a/b/c", "." for "c", "/" for "/c".
std::string DirectoryOf(absl::string_view path);
// Returns "c" for "a/b/c".
absl::string_view BaseName(absl::string_view path);
// Joins with a single '/'. Returns an absolute `path` unchanged.
std::string JoinPath(absl::string_view directory, absl::string_view path);

// Reads a whole file. Returns RESOURCE_EXHAUSTED for a file without a size, such as a device, that
// has more than 2 GiB.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// Creates a directory and its missing parents.
absl::Status MakeDirectories(const std::string& path);
// Replaces the contents of a file atomically: after a crash, the file has either the old or the new
// contents. Writes a temporary file, syncs it, renames it, and syncs the directory. If unsynced, a
// power failure may leave neither. Returns INVALID_ARGUMENT if `path` is a device, a pipe or a
// socket.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents,
                                 Durability durability = Durability::kSynced);
// Same, for contents appended by `write`.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::FunctionRef<absl::Status(BufferedFile*)> write,
                                 Durability durability = Durability::kSynced);
// Returns the paths that match a pattern with *, ?, and [...] in any component (none of them
// matches a '/'), sorted. A pattern without wildcards returns itself if it exists.
absl::StatusOr<std::vector<std::string>> MatchFiles(const std::string& pattern);
// Returns the folder above the first component of a pattern with wildcards, or above the last one
// if none has them; "" for the working folder.
std::string FixedFolder(absl::string_view pattern);
// Returns a unique name for a file that is renamed to `path` when complete: `path` and a random
// suffix, ".weir-temp<number>".
std::string TemporaryName(absl::string_view path);

// Whether a name is that of a temporary file, or of the lock of a WriteLock.
bool IsTemporaryOrLockName(absl::string_view name);

// A temporary file with such a name. Where the file system has locks, the file is locked while this
// object lives, so that RemoveAbandoned does not remove it.
class TemporaryFile {
 public:
  // Chooses a name beside `path`, and locks it; the caller creates the file.
  explicit TemporaryFile(absl::string_view path);
  // Removes the file, unless it was renamed.
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  // The temporary name.
  const std::string& path() const { return path_; }
  // Keeps the file: it now has its final name.
  void SetRenamed() { renamed_ = true; }

 private:
  const std::string path_;
  std::unique_ptr<FileLock> lock_;
  bool renamed_ = false;
};

// The exclusive right to write `path`, such as the prefix of a checkpoint. It is a lock on the file
// `path`.weir-lock, which exists while this object lives. Where the file system has no locks, every
// writer succeeds, and a warning is printed once.
class WriteLock {
 public:
  // Returns ABORTED if another writer, in this or another process, still holds the lock after
  // `patience`. By default that is how long RemoveAbandoned may hold it.
  static absl::StatusOr<std::unique_ptr<WriteLock>> Acquire(
      absl::string_view path, std::chrono::milliseconds patience = std::chrono::milliseconds(15));
  ~WriteLock();
  // Returns false where the file system has no locks.
  bool excludes_others() const { return lock_ != nullptr; }
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

 private:
  WriteLock(std::string path, std::unique_ptr<FileLock> lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  const std::string path_;
  const std::unique_ptr<FileLock> lock_;  // null if the file system has no locks
};

// Removes the temporary files and locks that killed writers have left in a directory. Removes only
// files with names of the two kinds above that no live writer has locked.
void RemoveAbandoned(const std::string& directory);

}  // namespace weir

#endif  // WEIR_CORE_IO_FILE_H_
