#include "weir/core/io/bundle_commit.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "weir/core/io/bundle_format.h"
#include "weir/core/io/file.h"
#include "weir/core/io/sstable.h"

namespace weir::internal {

// A bundle consists of at least two files, and files are renamed one at a time. For a new prefix
// this is safe: the data files are renamed first, and no reader looks at them before the index
// exists. For an existing prefix, however, the old index would be paired with new data between the
// two renames. So, before the first rename, the old files get second names (hard links, no
// copying):
//
//   1. P.data-... is linked as P.data-....previous, for all data files of the old index;
//      then the directory is synced.
//   2. P.index is linked as P.index.previous; the directory is synced. From here on, a reader that
//      finds P.index.previous equal to P.index reads the data files named .previous.
//   3. The new data files are renamed to their final names; the directory is synced.
//   4. The new index is renamed to P.index; the directory is synced. The indexes differ now, so
//      readers use the new data.
//   5. The .previous names are removed.
//
// A crash before step 4 leaves the old bundle, a crash after it the new one. If both indexes are
// equal byte for byte, so are all checksums, and the data of either bundle is correct. After a
// crash between steps 2 and 4, the next writer finds the .previous names and must keep them,
// because the plain data files may be a mix of both bundles. On a file system without hard links,
// the old files get no second names.
namespace {

constexpr char kPrevious[] = ".previous";

// Returns the data files that an index names, or none if the index cannot be read.
std::vector<std::string> DataFilesOf(const std::string& prefix) {
  std::vector<std::string> names;
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = Files().Open(BundleIndexName(prefix));
  if (!file.ok()) return names;
  const absl::StatusOr<std::unique_ptr<SSTableReader>> table =
      SSTableReader::Open(*std::move(file));
  if (!table.ok()) return names;
  const auto bytes = (*table)->Get("");
  if (!bytes.ok() || !bytes->has_value()) return names;
  const absl::StatusOr<BundleHeader> header = ParseBundleHeader(**bytes, prefix);
  if (!header.ok()) return names;
  for (int i = 0; i < header->num_shards; ++i)
    names.push_back(BundleDataName(prefix, i, header->num_shards));
  return names;
}

absl::Status SyncNames(const std::string& directory, Durability durability) {
  return durability == Durability::kSynced ? Files().SyncDirectory(directory) : absl::OkStatus();
}

// Performs steps 1 and 2. Returns false if there is no old bundle or no way to keep it.
absl::StatusOr<bool> LinkPrevious(const std::string& prefix, Durability durability) {
  const std::string index = BundleIndexName(prefix);
  if (!Files().Exists(index)) return false;
  const std::string directory = DirectoryOf(prefix);
  const std::vector<std::string> names = DataFilesOf(prefix);
  const auto kept = [](const std::string& name) { return Files().Exists(name + kPrevious); };
  if (!LiveDataSuffix(prefix).empty() && std::all_of(names.begin(), names.end(), kept)) return true;
  Files().Remove(index + kPrevious).IgnoreError();
  for (const std::string& name : names) {
    Files().Remove(name + kPrevious).IgnoreError();
    if (!Files().Link(name, name + kPrevious).ok()) return false;
  }
  WEIR_RETURN_IF_ERROR(SyncNames(directory, durability));
  if (!Files().Link(index, index + kPrevious).ok()) return false;
  WEIR_RETURN_IF_ERROR(SyncNames(directory, durability));
  return true;
}

// Performs step 5. A failed removal is not a failed save. Removes the index first: without it the
// other files are ignored.
void RemovePrevious(const std::string& prefix) {
  Files().Remove(BundleIndexName(prefix) + kPrevious).IgnoreError();
  const auto names = Files().List(DirectoryOf(prefix));
  if (!names.ok()) return;
  const std::string start = absl::StrCat(BaseName(prefix), ".data-");
  for (const std::string& name : *names) {
    if (name.compare(0, start.size(), start) != 0 ||
        name.size() < start.size() + sizeof(kPrevious) - 1)
      continue;
    if (name.compare(name.size() - (sizeof(kPrevious) - 1), std::string::npos, kPrevious) != 0)
      continue;
    Files().Remove(JoinPath(DirectoryOf(prefix), name)).IgnoreError();
  }
}

}  // namespace

absl::Status CommitBundle(const std::string& prefix,
                          const std::vector<std::pair<std::string, std::string>>& data,
                          const std::string& index, Durability durability) {
  const std::string directory = DirectoryOf(prefix);
  WEIR_ASSIGN_OR_RETURN(const bool kept, LinkPrevious(prefix, durability));
  for (const auto& [from, to] : data) WEIR_RETURN_IF_ERROR(Files().Rename(from, to));
  WEIR_RETURN_IF_ERROR(SyncNames(directory, durability));
  WEIR_RETURN_IF_ERROR(Files().Rename(index, BundleIndexName(prefix)));
  WEIR_RETURN_IF_ERROR(SyncNames(directory, durability));
  if (kept) RemovePrevious(prefix);
  return absl::OkStatus();
}

void SweepCheckpoints(const std::string& directory) {
  RemoveAbandoned(directory);
  const absl::StatusOr<std::vector<std::string>> names = Files().List(directory);
  if (!names.ok()) return;
  std::set<std::string> prefixes;
  for (const std::string& name : *names) {
    if (!absl::EndsWith(name, kPrevious)) continue;
    const bool is_index = absl::EndsWith(name, absl::StrCat(".index", kPrevious));
    const size_t end = name.rfind(is_index ? ".index" : ".data-");
    if (end != std::string::npos) prefixes.insert(JoinPath(directory, name.substr(0, end)));
  }
  for (const std::string& prefix : prefixes) {
    const auto lock = WriteLock::Acquire(prefix);  // a live writer removes them itself
    const bool is_ours = lock.ok() && (*lock)->excludes_others();
    if (is_ours && LiveDataSuffix(prefix).empty()) RemovePrevious(prefix);
  }
}

std::string LiveDataSuffix(const std::string& prefix) {
  const std::string index = BundleIndexName(prefix);
  if (!Files().Exists(index + kPrevious)) return "";
  const absl::StatusOr<std::string> previous = ReadFile(index + kPrevious),
                                    current = ReadFile(index);
  return previous.ok() && current.ok() && *previous == *current ? kPrevious : "";
}

bool IsUnchanged(const ReadableFile& opened, const std::string& path) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> now = Files().Open(path);
  if (!now.ok() || (*now)->size() != opened.size()) return false;
  constexpr uint64_t kChunk = 1 << 16;
  std::string a(kChunk, '\0'), b(kChunk, '\0');
  for (uint64_t offset = 0; offset < opened.size(); offset += kChunk) {
    const size_t size = static_cast<size_t>(std::min(kChunk, opened.size() - offset));
    if (!opened.Read(offset, size, a.data()).ok() || !(*now)->Read(offset, size, b.data()).ok() ||
        a.compare(0, size, b, 0, size) != 0)
      return false;
  }
  return true;
}

absl::Status OverwrittenError(absl::string_view prefix) {
  return absl::AbortedError(absl::StrCat(
      "The checkpoint ", prefix, " was overwritten while it was being read. Open it again"));
}

}  // namespace weir::internal
