#include "weir/core/file.h"

#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "absl/strings/str_split.h"

namespace weir {

absl::Status ReadableFile::Read(uint64_t offset, size_t size, char* out) const {
  WEIR_ASSIGN_OR_RETURN(const size_t got, ReadSome(offset, size, out));
  if (got == size) return absl::OkStatus();
  return DataLoss(path_, ": the file is truncated: it ends at offset ", offset + got, ", ",
                  size - got, " bytes before what is to be read at offset ", offset, " ends");
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
  constexpr size_t kPiece = size_t{1} << 16;
  // The size is a hint only: pipes have none, and a file may grow.
  for (size_t want = std::max<size_t>(file->size() + 1, kPiece);; want = kPiece) {
    const size_t have = contents.size();
    contents.resize(have + want);
    WEIR_ASSIGN_OR_RETURN(const size_t got, file->ReadSome(have, want, contents.data() + have));
    contents.resize(have + got);
    if (got < want) return contents;
  }
}

absl::Status MakeDirectories(const std::string& path) {
  if (path.empty() || Files().IsDirectory(path)) return absl::OkStatus();
  const std::string parent = DirectoryOf(path);
  if (parent != path && parent != ".") WEIR_RETURN_IF_ERROR(MakeDirectories(parent));
  const absl::Status made = Files().MakeDirectory(path);
  if (absl::IsAlreadyExists(made) && Files().IsDirectory(path)) return absl::OkStatus();
  return made;
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
  const std::string temporary = TemporaryName(path);
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> created, Files().Create(temporary));
  BufferedFile file(std::move(created));
  absl::Status status = write(&file);
  if (status.ok() && synced) status = file.Sync();
  const absl::Status closed = file.Close();
  if (status.ok()) status = closed;
  if (status.ok()) status = Files().Rename(temporary, path);
  if (!status.ok()) {
    Files().Remove(temporary).IgnoreError();
    return status;
  }
  return synced ? Files().SyncDirectory(DirectoryOf(path)) : absl::OkStatus();
}

namespace {

bool HasWildcard(absl::string_view text) {
  return text.find_first_of("*?[\\") != absl::string_view::npos;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> MatchFiles(const std::string& pattern) {
  if (pattern.empty()) return std::vector<std::string>();
  std::vector<std::string> found = {pattern[0] == '/' ? "/" : ""};
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(pattern, '/', absl::SkipEmpty()))) {
    std::vector<std::string> next;
    for (const std::string& directory : found) {
      if (!HasWildcard(part)) {
        std::string path = JoinPath(directory, part);
        if (Files().Exists(path)) next.push_back(std::move(path));
        continue;
      }
      const auto names = Files().List(directory.empty() ? "." : directory);
      if (!names.ok())
        continue;  // a file where the pattern wants a directory, or one that may not be read
      for (const std::string& name : *names) {
        if (fnmatch(part.c_str(), name.c_str(), 0) == 0) next.push_back(JoinPath(directory, name));
      }
    }
    found = std::move(next);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string TemporaryName(absl::string_view path) {
  static std::atomic<uint64_t> counter{std::random_device{}()};
  std::random_device random;
  const uint64_t number = (static_cast<uint64_t>(random()) << 32 | random()) + counter.fetch_add(1);
  return absl::StrCat(path, ".tempstate", number);
}

namespace {

std::atomic<FileSystem*> replaced_files{nullptr};

}  // namespace

FileSystem& PosixFiles();  // file_posix.cc

FileSystem& Files() {
  FileSystem* replaced = replaced_files.load(std::memory_order_acquire);
  return replaced != nullptr ? *replaced : PosixFiles();
}

ScopedFileSystem::ScopedFileSystem(FileSystem* files) : saved_(replaced_files.exchange(files)) {}
ScopedFileSystem::~ScopedFileSystem() { replaced_files.store(saved_); }

}  // namespace weir
