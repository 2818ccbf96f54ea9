#include "weir/core/io/file.h"

#include <fnmatch.h>
#include <limits.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace weir {

absl::Status ReadableFile::Read(uint64_t offset, size_t size, char* out) const {
  WEIR_ASSIGN_OR_RETURN(const size_t got, ReadSome(offset, size, out));
  if (got == size) return absl::OkStatus();
  return DataLoss(path_, ": the file is truncated: it ends at offset ", offset + got, ", ",
                  size - got, " bytes before the requested range at offset ", offset, " ends");
}

BufferedFile::~BufferedFile() {
  if (file_ != nullptr) Close().IgnoreError();
}

absl::Status BufferedFile::Append(absl::string_view data) {
  if (!status_.ok()) return status_;
  size_ += data.size();
  if (buffer_.size() + data.size() < kCapacity) {
    buffer_.append(data.data(), data.size());
    return absl::OkStatus();
  }
  WEIR_RETURN_IF_ERROR(Flush());
  if (data.size() >= kCapacity) return status_ = file_->Append(data);
  buffer_.append(data.data(), data.size());
  return absl::OkStatus();
}

void BufferedFile::Reserve(uint64_t size) {
  if (status_.ok()) file_->Reserve(size);
}

void BufferedFile::StartSync() {
  if (status_.ok()) file_->StartSync();
}

absl::Status BufferedFile::Flush() {
  if (status_.ok() && !buffer_.empty()) status_ = file_->Append(buffer_);
  buffer_.clear();
  return status_;
}

absl::Status BufferedFile::Sync() {
  WEIR_RETURN_IF_ERROR(Flush());
  return status_ = file_->Sync();
}

absl::Status BufferedFile::Close() {
  if (file_ == nullptr) return status_;
  Flush().IgnoreError();
  const absl::Status closed = file_->Close();
  file_ = nullptr;
  if (status_.ok()) status_ = closed;
  const absl::Status result = status_;
  if (status_.ok()) status_ = FailedPrecondition("the file is closed");
  return result;
}

std::string DirectoryOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(path.substr(0, std::max<size_t>(slash, 1)));
}

absl::string_view BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

std::string JoinPath(absl::string_view directory, absl::string_view path) {
  if (directory.empty() || (!path.empty() && path[0] == '/')) return std::string(path);
  return absl::StrCat(directory, directory.back() == '/' ? "" : "/", path);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, Files().Open(path));
  std::string contents;
  constexpr size_t kChunk = size_t{1} << 16, kMaxUnsizedBytes = size_t{1} << 31;
  // The size is only a hint: pipes have none, and a file may grow.
  for (size_t want = std::max<size_t>(file->size() + 1, kChunk);; want = kChunk) {
    const size_t have = contents.size();
    contents.resize(have + want);
    WEIR_ASSIGN_OR_RETURN(const size_t got, file->ReadSome(have, want, contents.data() + have));
    contents.resize(have + got);
    if (got < want) return contents;
    if (file->size() == 0 && contents.size() >= kMaxUnsizedBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, " has no size, and does not end within 2 GiB"));
    }
  }
}

absl::Status MakeDirectories(const std::string& path) {
  if (path.empty() || Files().IsDirectory(path)) return absl::OkStatus();
  if (path.size() >= PATH_MAX)
    return absl::ErrnoToStatus(ENAMETOOLONG, absl::StrCat("cannot make directory ", path));
  for (size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string part = path.substr(0, end);
    if (Files().IsDirectory(part)) continue;
    const absl::Status made = Files().MakeDirectory(part);
    if (made.ok() || (absl::IsAlreadyExists(made) && Files().IsDirectory(part))) continue;
    if (absl::IsAlreadyExists(made))
      return FailedPrecondition("cannot make directory ", path, ": ", part, " is not a directory");
    return made;
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents,
                                 Durability durability) {
  return WriteFileAtomically(
      path, [&](BufferedFile* file) { return file->Append(contents); }, durability);
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::FunctionRef<absl::Status(BufferedFile*)> write,
                                 Durability durability) {
  const bool synced = durability == Durability::kSynced;
  TemporaryFile temporary(path);
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> created, Files().Create(temporary.path()));
  BufferedFile file(std::move(created));
  absl::Status status = write(&file);
  if (status.ok() && synced) status = file.Sync();
  const absl::Status closed = file.Close();
  if (status.ok()) status = closed;
  if (status.ok()) status = Files().Rename(temporary.path(), path);
  if (!status.ok()) return status;
  temporary.SetRenamed();
  return synced ? Files().SyncDirectory(DirectoryOf(path)) : absl::OkStatus();
}

namespace {

// Returns the place of the first wildcard, or npos. A backslash, which quotes one, counts too.
size_t FindWildcard(absl::string_view text) { return text.find_first_of("*?[\\"); }

bool HasWildcard(absl::string_view text) { return FindWildcard(text) != absl::string_view::npos; }

}  // namespace

absl::StatusOr<std::vector<std::string>> MatchFiles(const std::string& pattern) {
  if (pattern.empty()) return std::vector<std::string>();
  std::vector<std::string> found = {pattern[0] == '/' ? "/" : ""};
  const std::vector<absl::string_view> parts = absl::StrSplit(pattern, '/', absl::SkipEmpty());
  bool is_fixed = true;  // no wildcard yet
  for (size_t i = 0; i < parts.size() && !found.empty(); ++i) {
    const std::string part(parts[i]);
    is_fixed = is_fixed && !HasWildcard(part);
    std::vector<std::string> next;
    for (const std::string& directory : found) {
      if (!HasWildcard(part)) {
        std::string path = JoinPath(directory, part);
        if (path.size() >= PATH_MAX) continue;
        const bool is_on_the_way = is_fixed && i + 1 < parts.size();
        if (is_on_the_way || Files().Exists(path)) next.push_back(std::move(path));
        continue;
      }
      const auto names = Files().List(directory.empty() ? "." : directory);
      if (!names.ok()) continue;  // not a directory, or not readable
      for (const std::string& name : *names) {
        if (fnmatch(part.c_str(), name.c_str(), 0) == 0) next.push_back(JoinPath(directory, name));
      }
    }
    found = std::move(next);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string FixedFolder(absl::string_view pattern) {
  const absl::string_view fixed = pattern.substr(0, FindWildcard(pattern));
  return fixed.find('/') == absl::string_view::npos ? "" : DirectoryOf(fixed);
}

namespace {

constexpr char kTemporary[] = ".weir-temp", kLock[] = ".weir-lock";

}  // namespace

std::string TemporaryName(absl::string_view path) {
  static std::atomic<uint64_t> counter{std::random_device{}()};
  std::random_device random;
  const uint64_t number = (static_cast<uint64_t>(random()) << 32 | random()) + counter.fetch_add(1);
  return absl::StrCat(path, kTemporary, number);
}

bool IsTemporaryOrLockName(absl::string_view name) {
  if (absl::EndsWith(name, kLock)) return true;
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  return digits < name.size() && absl::EndsWith(name.substr(0, digits), kTemporary);
}

namespace {

void WarnNoLocks(absl::string_view path) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  std::fprintf(stderr,
               "weir: warning: the file system of %s has no locks: concurrent writers of one "
               "checkpoint are not detected and may damage it\n",
               std::string(path).c_str());
}

}  // namespace

// Between the creation of the file and its locking, RemoveAbandoned may hold the lock briefly.
TemporaryFile::TemporaryFile(absl::string_view path) : path_(TemporaryName(path)) {
  absl::StatusOr<std::unique_ptr<FileLock>> lock;
  do {
    lock = Files().Lock(path_);
  } while (absl::IsAborted(lock.status()));
  if (lock.ok()) lock_ = *std::move(lock);
}

TemporaryFile::~TemporaryFile() {
  if (!renamed_) Files().Remove(path_).IgnoreError();
}

absl::StatusOr<std::unique_ptr<WriteLock>> WriteLock::Acquire(absl::string_view path,
                                                              std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  std::string lock_path = absl::StrCat(path, kLock);
  absl::StatusOr<std::unique_ptr<FileLock>> lock = Files().Lock(lock_path);
  while (absl::IsAborted(lock.status()) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    lock = Files().Lock(lock_path);
  }
  if (absl::IsUnimplemented(lock.status())) {
    WarnNoLocks(path);
    lock = nullptr;
  }
  if (absl::IsAborted(lock.status())) {
    return absl::AbortedError(
        absl::StrCat(path,
                     " is being written by another saver. Give each its own prefix, or save "
                     "when the other one is done"));
  }
  WEIR_RETURN_IF_ERROR(lock.status());
  return std::unique_ptr<WriteLock>(new WriteLock(std::move(lock_path), *std::move(lock)));
}

// Removes the name while holding the lock, so that the next process that locks the open file
// notices the removal.
WriteLock::~WriteLock() {
  if (lock_ != nullptr) Files().Remove(path_).IgnoreError();
}

void RemoveAbandoned(const std::string& directory) {
  const absl::StatusOr<std::vector<std::string>> names = Files().List(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!IsTemporaryOrLockName(name)) continue;
    const std::string path = JoinPath(directory, name);
    if (Files().IsDirectory(path)) continue;
    const absl::StatusOr<std::unique_ptr<FileLock>> lock = Files().Lock(path);
    if (lock.ok()) Files().Remove(path).IgnoreError();
  }
}

namespace {

std::atomic<FileSystem*> replaced_files{nullptr};

}  // namespace

FileSystem& PosixFiles();  // defined in file_posix.cc

FileSystem& Files() {
  FileSystem* replaced = replaced_files.load(std::memory_order_acquire);
  return replaced != nullptr ? *replaced : PosixFiles();
}

ScopedFileSystem::ScopedFileSystem(FileSystem* files) : saved_(replaced_files.exchange(files)) {}
ScopedFileSystem::~ScopedFileSystem() { replaced_files.store(saved_); }

}  // namespace weir
