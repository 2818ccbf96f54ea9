#ifndef WEIR_CORE_FILE_H_
#define WEIR_CORE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/status.h"

// Files: a thin layer over the operating system that tests replace to cut writes short, drop what
// was not synced, or stop the process. Errors carry the path, and the code that fits errno:
// NOT_FOUND, PERMISSION_DENIED, ALREADY_EXISTS, RESOURCE_EXHAUSTED (disk full), FAILED_PRECONDITION
// (a directory where a file is wanted, or the other way round).
namespace weir {

// Whether what was written survives a power failure once the call returns. Either way a file that
// another process sees is complete, and stays if this process ends.
enum class Durability { kSynced, kUnsynced };

// A file being written, from its start or (OpenAtEnd) its end. For one thread at a time. Every
// Append is one system call: see BufferedFile.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual absl::Status Append(absl::string_view data) = 0;
  // A hint that the file, empty so far, will have `size` bytes: where there is room for them it is
  // set aside, and large files are written in two thirds of the time. What is not used is given
  // back by Close.
  virtual void Reserve(uint64_t size) { (void)size; }
  // Starts to bring what was appended to the disk, so that Sync has less to wait for.
  virtual void StartSync() {}
  // Returns when what was appended would survive a power failure (if the directory entry does:
  // SyncDirectory).
  virtual absl::Status Sync() = 0;
  // Must be called, and once; destroying an open file gives up its errors.
  virtual absl::Status Close() = 0;
};

// A file open for reading at any place. Safe to use from many threads.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  const std::string& path() const { return path_; }
  // When it was opened. 0 for things without a size (pipes, /proc).
  uint64_t size() const { return size_; }
  // Exactly `size` bytes from `offset` on; DATA_LOSS if the file ends before.
  absl::Status Read(uint64_t offset, size_t size, char* out) const;
  // Up to `size` bytes; fewer only at the end of the file.
  virtual absl::StatusOr<size_t> ReadSome(uint64_t offset, size_t size, char* out) const = 0;

 protected:
  ReadableFile(std::string path, uint64_t size) : path_(std::move(path)), size_(size) {}

 private:
  const std::string path_;
  const uint64_t size_;
};

// A lock on a file, held while this lives. It ends with its process, however that ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// What Weir asks of a file system. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Makes the file, or empties the one there is.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) = 0;
  // To write at the end, also while others do; makes the file if there is none. UNIMPLEMENTED if
  // the file system cannot.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path) {
    return absl::UnimplementedError(absl::StrCat("cannot append to ", path));
  }
  // Replaces `to` in one step.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // A second name for the same file. ALREADY_EXISTS if `to` is taken.
  virtual absl::Status Link(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // Makes names made, removed or renamed in a directory durable.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
  virtual absl::Status MakeDirectory(const std::string& path) = 0;
  // An empty one.
  virtual absl::Status RemoveDirectory(const std::string& path) = 0;
  // Keeps others from locking the file, in this process and in others on this machine; makes the
  // file if there is none. Nothing else heeds the lock. ABORTED if somebody else has it,
  // UNIMPLEMENTED if the file system has no locks.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) {
    return absl::UnimplementedError(absl::StrCat("no locks for ", path));
  }
  // Names in a directory, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  virtual bool IsDirectory(const std::string& path) = 0;
};

// The file system everything goes through: the operating system's, unless replaced.
FileSystem& Files();
// Replaces it while in scope, for the whole process. For tests; nothing may be reading or writing
// when it starts or ends.
class ScopedFileSystem {
 public:
  explicit ScopedFileSystem(FileSystem* files);
  ~ScopedFileSystem();
  ScopedFileSystem(const ScopedFileSystem&) = delete;
  ScopedFileSystem& operator=(const ScopedFileSystem&) = delete;

 private:
  FileSystem* saved_;
};

// Collects small pieces into large writes; large pieces go straight through. An error sticks: every
// later call returns it. Closes without syncing when destroyed.
class BufferedFile {
 public:
  static constexpr size_t kCapacity = size_t{1} << 18;
  explicit BufferedFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  ~BufferedFile();
  BufferedFile(const BufferedFile&) = delete;
  BufferedFile& operator=(const BufferedFile&) = delete;

  absl::Status Append(absl::string_view data);
  void Reserve(uint64_t size);
  // Of what has been handed to the operating system.
  void StartSync();
  // Hands everything to the operating system.
  absl::Status Flush();
  absl::Status Sync();
  absl::Status Close();
  // Bytes appended so far.
  uint64_t size() const { return size_; }

 private:
  std::unique_ptr<WritableFile> file_;
  std::string buffer_;
  uint64_t size_ = 0;
  absl::Status status_;
};

// "a/b" for "a/b/c", "." for "c", "/" for "/c".
std::string DirectoryOf(absl::string_view path);
// "c" for "a/b/c".
absl::string_view BaseName(absl::string_view path);
// With one '/' between; an absolute `path` is returned as it is.
std::string JoinPath(absl::string_view directory, absl::string_view path);

// RESOURCE_EXHAUSTED for what has no size, as a device, and does not end within 2 GiB.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// Makes missing parents too.
absl::Status MakeDirectories(const std::string& path);
// Replaces the file's contents so that after a crash there are the old or the new ones: writes
// aside, syncs, renames, syncs the directory. Unsynced, a power failure may leave neither.
// INVALID_ARGUMENT where a device, a pipe or a socket is.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents,
                                 Durability durability = Durability::kSynced);
// The same for contents that `write` appends.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::FunctionRef<absl::Status(BufferedFile*)> write,
                                 Durability durability = Durability::kSynced);
// Paths that match a pattern with *, ?, and [...] in any component (none of them matches a '/'),
// sorted. A pattern without them gives itself if it exists.
absl::StatusOr<std::vector<std::string>> MatchFiles(const std::string& pattern);
// A name for what is renamed to `path` when complete, which nobody else has: `path` and a random
// suffix, ".weir-temp<number>".
std::string TemporaryName(absl::string_view path);

// A file with such a name. Where the file system has locks, it is locked while this lives, so that
// RemoveAbandoned leaves it.
class TemporaryFile {
 public:
  explicit TemporaryFile(absl::string_view path);
  // Removes it, unless it was renamed.
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }
  void SetRenamed() { renamed_ = true; }

 private:
  const std::string path_;
  std::unique_ptr<FileLock> lock_;
  bool renamed_ = false;
};

// The right to write what is at `path`, a checkpoint's prefix, say: a lock on `path`.weir-lock,
// which is there as long as this lives. Where the file system has no locks everybody gets it, and a
// warning says so once.
class WriteLock {
 public:
  // ABORTED if another writer, of this process or another one, has it.
  static absl::StatusOr<std::unique_ptr<WriteLock>> Acquire(absl::string_view path);
  ~WriteLock();
  // False where the file system has no locks.
  bool excludes_others() const { return lock_ != nullptr; }
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

 private:
  WriteLock(std::string path, std::unique_ptr<FileLock> lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  const std::string path_;
  const std::unique_ptr<FileLock> lock_;  // null: there are no locks
};

// Removes temporary files and locks that writers have left in a directory when they were killed:
// only what has a name of the two kinds above, and what no living writer has locked.
void RemoveAbandoned(const std::string& directory);

}  // namespace weir

#endif  // WEIR_CORE_FILE_H_
