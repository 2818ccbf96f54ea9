#include "weir/core/io/memory_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "weir/core/tensor/mutex.h"

namespace weir {
namespace {

constexpr absl::string_view kScheme = "memory:";

// The live folders and their files, by path. It is one for the process, like its files.
struct MemoryFiles {
  Mutex mutex;
  std::set<std::string, std::less<>> folders ABSL_GUARDED_BY(mutex);
  std::map<std::string, absl::string_view, std::less<>> files ABSL_GUARDED_BY(mutex);

  static MemoryFiles& Of() {
    static auto* const all = new MemoryFiles;
    return *all;
  }
};

class MemoryFile : public ReadableFile {
 public:
  MemoryFile(const std::string& path, absl::string_view contents)
      : ReadableFile(path, contents.size()), contents_(contents) {}
  absl::StatusOr<size_t> ReadSome(uint64_t offset, size_t size, char* out) const override {
    if (offset >= contents_.size()) return 0;
    const size_t count = std::min<size_t>(size, contents_.size() - offset);
    std::memcpy(out, contents_.data() + offset, count);
    return count;
  }

 private:
  const absl::string_view contents_;
};

std::string RandomPath() {
  unsigned char random[16] = {};
  if (getentropy(random, sizeof random) != 0) std::abort();  // it has no error for so few bytes
  return absl::StrCat(
      kScheme, absl::BytesToHexString({reinterpret_cast<const char*>(random), sizeof random}));
}

}  // namespace

MemoryFolder::MemoryFolder(const std::map<std::string, absl::string_view>& files)
    : path_(RandomPath()) {
  MemoryFiles& all = MemoryFiles::Of();
  const MutexLock lock(all.mutex);
  all.folders.insert(path_);
  for (const auto& [name, contents] : files) all.files[Path(name)] = contents;
}

MemoryFolder::~MemoryFolder() {
  MemoryFiles& all = MemoryFiles::Of();
  const MutexLock lock(all.mutex);
  all.folders.erase(path_);
  const std::string inside = path_ + "/";
  auto file = all.files.lower_bound(inside);
  while (file != all.files.end() && absl::StartsWith(file->first, inside))
    file = all.files.erase(file);
}

std::unique_ptr<ReadableFile> FileOfBytes(const std::string& path, absl::string_view contents) {
  return std::make_unique<MemoryFile>(path, contents);
}

namespace internal {

bool IsInMemory(absl::string_view path) {
  if (!absl::StartsWith(path, kScheme)) return false;
  MemoryFiles& all = MemoryFiles::Of();
  const MutexLock lock(all.mutex);
  return all.folders.contains(path.substr(0, path.find('/')));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> OpenInMemory(const std::string& path) {
  MemoryFiles& all = MemoryFiles::Of();
  const MutexLock lock(all.mutex);
  const auto file = all.files.find(path);
  if (file == all.files.end()) return NotFound("no file ", path, " in memory");
  return FileOfBytes(path, file->second);
}

bool IsFileInMemory(const std::string& path) {
  MemoryFiles& all = MemoryFiles::Of();
  const MutexLock lock(all.mutex);
  return all.files.contains(path);
}

std::optional<std::vector<std::string>> ListInMemory(const std::string& path) {
  if (!absl::StartsWith(path, kScheme)) return std::nullopt;
  MemoryFiles& all = MemoryFiles::Of();
  const MutexLock lock(all.mutex);
  const std::string inside = path + "/";
  std::set<std::string> names;
  for (auto file = all.files.lower_bound(inside);
       file != all.files.end() && absl::StartsWith(file->first, inside); ++file) {
    const absl::string_view rest = absl::string_view(file->first).substr(inside.size());
    names.emplace(rest.substr(0, rest.find('/')));
  }
  if (names.empty() && all.folders.count(path) == 0) return std::nullopt;
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace internal
}  // namespace weir
