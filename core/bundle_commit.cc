#include "weir/core/bundle_commit.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "weir/core/bundle_format.h"
#include "weir/core/file.h"
#include "weir/core/table.h"

namespace weir::internal {

// A bundle is at least two files, and files are renamed one at a time. Under a new prefix that is
// no trouble: data goes first, and nobody looks at it before the index is there. Over an older
// bundle, though, between the two renames the old index would stand beside new data. So before the
// first rename the old files get second names (hard links, no copying):
//
//   1. P.data-...  is linked as P.data-....previous, for all data files of the old index; then the
//   directory is synced
//   2. P.index     is linked as P.index.previous; the directory is synced. From here on a reader
//   that finds
//                  P.index.previous equal to P.index reads the data files named .previous
//   3. the new data files are renamed to their final names; the directory is synced
//   4. the new index is renamed to P.index; the directory is synced. The indexes differ now, so
//   readers take the new data
//   5. the .previous names are removed
//
// A stop before 4 leaves the old bundle, one after it the new one. Should both indexes be equal
// byte for byte, then so are all checksums, and either data will do. After a stop between 2 and 4
// the next writer finds the .previous names in place and must keep them: the plain data files may
// be mixed by then. A file system without hard links goes on without.
namespace {

constexpr char kPrevious[] = ".previous";

// The data files that an index names; none if it cannot be read.
std::vector<std::string> DataFilesOf(const std::string& prefix) {
  std::vector<std::string> names;
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = Files().Open(BundleIndexName(prefix));
  if (!file.ok()) return names;
  const absl::StatusOr<std::unique_ptr<TableReader>> table = TableReader::Open(*std::move(file));
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

// Steps 1 and 2. False if there is nothing to keep, or no way to.
absl::StatusOr<bool> KeepPrevious(const std::string& prefix, Durability durability) {
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

// Step 5. Failing to tidy up is no failure to save. The index goes first: without it the others
// mean nothing.
void ForgetPrevious(const std::string& prefix) {
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
  WEIR_ASSIGN_OR_RETURN(const bool kept, KeepPrevious(prefix, durability));
  for (const auto& [from, to] : data) WEIR_RETURN_IF_ERROR(Files().Rename(from, to));
  WEIR_RETURN_IF_ERROR(SyncNames(directory, durability));
  WEIR_RETURN_IF_ERROR(Files().Rename(index, BundleIndexName(prefix)));
  WEIR_RETURN_IF_ERROR(SyncNames(directory, durability));
  if (kept) ForgetPrevious(prefix);
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
    const auto lock = WriteLock::Acquire(prefix);  // its writer tidies up by itself
    const bool is_ours = lock.ok() && (*lock)->excludes_others();
    if (is_ours && LiveDataSuffix(prefix).empty()) ForgetPrevious(prefix);
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
  constexpr uint64_t kPiece = 1 << 16;
  std::string a(kPiece, '\0'), b(kPiece, '\0');
  for (uint64_t offset = 0; offset < opened.size(); offset += kPiece) {
    const size_t size = static_cast<size_t>(std::min(kPiece, opened.size() - offset));
    if (!opened.Read(offset, size, a.data()).ok() || !(*now)->Read(offset, size, b.data()).ok() ||
        a.compare(0, size, b, 0, size) != 0)
      return false;
  }
  return true;
}

absl::Status Overwritten(absl::string_view prefix) {
  return absl::AbortedError(absl::StrCat(
      "The checkpoint ", prefix, " was overwritten while it was being read. Open it again"));
}

}  // namespace weir::internal
