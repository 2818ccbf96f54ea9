#include "weir/tests/io/test_files.h"

#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weir::testing {

std::string MakeTempDirectory(absl::string_view name) {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string path = absl::StrCat(base != nullptr ? base : "/tmp", "/", name, ".XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    std::perror(path.c_str());
    std::abort();
  }
  return path;
}

std::string CopyOfFolder(const std::string& folder) {
  const std::string copy = MakeTempDirectory("copy");
  std::filesystem::copy(folder, copy, std::filesystem::copy_options::recursive);
  return copy;
}

void WriteBytes(const std::string& path, absl::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) {
    std::perror(path.c_str());
    std::abort();
  }
}

std::string ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::perror(path.c_str());
    std::abort();
  }
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

Tensor PatternTensor(DataType dtype, const Shape& shape, int seed) {
  Tensor tensor(dtype, shape);
  auto* bytes = static_cast<uint8_t*>(tensor.raw());
  for (size_t j = 0; j < tensor.num_bytes(); ++j) {
    if (dtype == DT_BOOL) {
      bytes[j] = j % 2;
    } else if (dtype == DT_INT4 || dtype == DT_UINT4) {
      bytes[j] = static_cast<uint8_t>((j + (dtype == DT_INT4 ? 8 : 0)) %
                                      16);  // -8 is 1000 in binary, and the high bits are 0
    } else {
      bytes[j] = static_cast<uint8_t>((31 * j + 17 * static_cast<size_t>(seed) + 1) % 128);
    }
  }
  return tensor;
}

Tensor PatternStrings(const Shape& shape, int seed) {
  Tensor tensor(DT_STRING, shape);
  const std::string piece = absl::StrCat("s", seed, absl::string_view("\0", 1));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    for (int64_t k = 0; k < (i * 37) % 200; ++k) tensor.data<std::string>()[i] += piece;
  }
  return tensor;
}

class MemoryWritableFile : public WritableFile {
 public:
  MemoryWritableFile(MemoryFileSystem* files, std::shared_ptr<MemoryFileSystem::Inode> inode)
      : files_(files), inode_(std::move(inode)) {}

  absl::Status Append(absl::string_view data) override {
    WEIR_RETURN_IF_ERROR(files_->Begin());
    std::lock_guard<std::mutex> lock(files_->mutex_);
    inode_->contents.append(data.data(), files_->last() ? data.size() / 2 : data.size());
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    WEIR_RETURN_IF_ERROR(files_->Begin());
    std::lock_guard<std::mutex> lock(files_->mutex_);
    inode_->synced = inode_->contents;
    return absl::OkStatus();
  }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  MemoryFileSystem* const files_;
  const std::shared_ptr<MemoryFileSystem::Inode> inode_;
};

namespace {

class MemoryReadableFile : public ReadableFile {
 public:
  MemoryReadableFile(const std::string& path, std::string contents)
      : ReadableFile(path, contents.size()), contents_(std::move(contents)) {}
  absl::StatusOr<size_t> ReadSome(uint64_t offset, size_t size, char* out) const override {
    if (offset >= contents_.size()) return size_t{0};
    const size_t got = std::min<size_t>(size, contents_.size() - offset);
    std::memcpy(out, contents_.data() + offset, got);
    return got;
  }

 private:
  const std::string contents_;
};

bool IsIn(const std::string& path, const std::string& directory) {
  return path != directory && DirectoryOf(path) == directory;
}

}  // namespace

MemoryFileSystem::MemoryFileSystem() {
  names_["/"] = std::make_shared<Inode>();
  names_["/"]->directory = true;
  synced_names_ = names_;
}

std::unique_ptr<MemoryFileSystem> MemoryFileSystem::AfterPowerFailure(Survivors survivors) const {
  std::lock_guard<std::mutex> lock(mutex_);
  Tree tree = survivors == Survivors::kSyncedOnly || survivors == Survivors::kOneNameOfTwo
                  ? synced_names_
                  : names_;
  if (survivors == Survivors::kOneNameOfTwo) {
    bool keep = true;
    std::set<std::string> all;
    for (const auto& [path, inode] : names_) all.insert(path);
    for (const auto& [path, inode] : synced_names_) all.insert(path);
    for (const std::string& path : all) {
      const auto now = names_.find(path), then = synced_names_.find(path);
      const bool changed =
          now == names_.end() || then == synced_names_.end() || now->second != then->second;
      if (changed && std::exchange(keep, !keep)) {
        now == names_.end() ? void(tree.erase(path)) : void(tree[path] = now->second);
      }
    }
  }
  auto after = std::make_unique<MemoryFileSystem>();
  std::map<const Inode*, std::shared_ptr<Inode>> copies;  // hard links stay linked
  for (const auto& [path, inode] : tree) {
    std::shared_ptr<Inode>& copy = copies[inode.get()];
    if (copy == nullptr) {
      copy = std::make_shared<Inode>(*inode);
      if (survivors != Survivors::kEverything) copy->contents = copy->synced;
      copy->synced = copy->contents;
    }
    after->names_[path] = copy;
  }
  after->synced_names_ = after->names_;
  return after;
}

std::string* MemoryFileSystem::Contents(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = names_.find(path);
  return found == names_.end() ? nullptr : &found->second->contents;
}

std::vector<std::string> MemoryFileSystem::Names() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [path, inode] : names_) names.push_back(path);
  return names;
}

absl::Status MemoryFileSystem::Begin() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stop_after_ >= 0 && operations_ >= stop_after_)
    return absl::AbortedError("the process is gone");
  ++operations_;
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::CheckParent(const std::string& path) const {
  const auto found = names_.find(DirectoryOf(path));
  return found != names_.end() && found->second->directory
             ? absl::OkStatus()
             : NotFound("no such directory: ", DirectoryOf(path));
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::Create(const std::string& path) {
  WEIR_RETURN_IF_ERROR(Begin());
  std::lock_guard<std::mutex> lock(mutex_);
  WEIR_RETURN_IF_ERROR(CheckParent(path));
  std::shared_ptr<Inode>& inode = names_[path];
  if (inode == nullptr) inode = std::make_shared<Inode>();
  inode->contents.clear();
  return std::make_unique<MemoryWritableFile>(this, inode);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> MemoryFileSystem::Open(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = names_.find(path);
  if (found == names_.end()) return NotFound("no such file: ", path);
  if (found->second->directory) return FailedPrecondition("a directory: ", path);
  return std::make_unique<MemoryReadableFile>(path, found->second->contents);
}

absl::Status MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  WEIR_RETURN_IF_ERROR(Begin());
  std::lock_guard<std::mutex> lock(mutex_);
  WEIR_RETURN_IF_ERROR(CheckParent(to));
  const auto found = names_.find(from);
  if (found == names_.end()) return NotFound("no such file: ", from);
  const std::shared_ptr<Inode> inode = found->second;
  names_.erase(found);
  names_[to] = inode;
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Link(const std::string& from, const std::string& to) {
  WEIR_RETURN_IF_ERROR(Begin());
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = names_.find(from);
  if (found == names_.end()) return NotFound("no such file: ", from);
  return names_.emplace(to, found->second).second ? absl::OkStatus() : AlreadyExists("taken: ", to);
}

absl::Status MemoryFileSystem::Remove(const std::string& path) {
  WEIR_RETURN_IF_ERROR(Begin());
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = names_.find(path);
  if (found == names_.end() || found->second->directory) return NotFound("no such file: ", path);
  names_.erase(found);
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::SyncDirectory(const std::string& path) {
  WEIR_RETURN_IF_ERROR(Begin());
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(synced_names_, [&](const auto& entry) { return IsIn(entry.first, path); });
  for (const auto& [name, inode] : names_) {
    if (IsIn(name, path)) synced_names_[name] = inode;
  }
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::MakeDirectory(const std::string& path) {
  WEIR_RETURN_IF_ERROR(Begin());
  std::lock_guard<std::mutex> lock(mutex_);
  WEIR_RETURN_IF_ERROR(CheckParent(path));
  if (names_.count(path) != 0) return AlreadyExists("taken: ", path);
  names_[path] = std::make_shared<Inode>();
  names_[path]->directory = true;
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::RemoveDirectory(const std::string& path) {
  WEIR_RETURN_IF_ERROR(Begin());
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, inode] : names_) {
    if (IsIn(name, path)) return FailedPrecondition("not empty: ", path);
  }
  return names_.erase(path) != 0 ? absl::OkStatus() : NotFound("no such directory: ", path);
}

absl::StatusOr<std::vector<std::string>> MemoryFileSystem::List(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, inode] : names_) {
    if (IsIn(name, path)) names.emplace_back(BaseName(name));
  }
  return names;
}

bool MemoryFileSystem::Exists(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  return names_.count(path) != 0;
}

bool MemoryFileSystem::IsDirectory(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = names_.find(path);
  return found != names_.end() && found->second->directory;
}

}  // namespace weir::testing
