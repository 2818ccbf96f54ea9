#include "weir/session/model/interrupted_saves.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/retention.h"

namespace weir {
namespace {

std::string MarkOf(const std::string& prefix, const std::string& state_filename) {
  return absl::StrCat(prefix, ".", state_filename);
}

// Returns the prefixes of marked checkpoints of that name.
std::vector<std::string> FindMarked(const std::string& path, const std::string& state_filename) {
  std::vector<std::string> prefixes;
  const std::string directory = DirectoryOf(path);
  const absl::StatusOr<std::vector<std::string>> names = Files().List(directory);
  if (!names.ok()) return prefixes;
  const std::string suffix = absl::StrCat(".", state_filename, ".weir-lock");
  for (const std::string& name : *names) {
    absl::string_view prefix = name, rest = name;
    if (!absl::ConsumeSuffix(&prefix, suffix) || !absl::ConsumePrefix(&rest, BaseName(path)))
      continue;
    if (prefix == BaseName(path) || absl::StartsWith(rest, "-"))
      prefixes.push_back(JoinPath(directory, prefix));
  }
  return prefixes;
}

// Removes the files of the parts that a sharded checkpoint consists of before they are merged.
// Whatever cannot be removed stays.
void RemoveParts(const std::string& prefix) {
  const std::string folder = prefix + "_temp";
  const absl::StatusOr<std::vector<std::string>> parts = Files().List(folder);
  if (!parts.ok()) return;
  for (const std::string& name : *parts) {
    if (absl::StartsWith(name, "part-")) Files().Remove(JoinPath(folder, name)).IgnoreError();
  }
  Files().RemoveDirectory(folder).IgnoreError();
}

}  // namespace

absl::StatusOr<std::unique_ptr<WriteLock>> MarkUnfinished(const std::string& prefix,
                                                          const std::string& state_filename) {
  return WriteLock::Acquire(MarkOf(prefix, state_filename));
}

std::vector<std::string> FinishInterruptedSaves(const std::string& path,
                                                const std::string& state_filename,
                                                absl::Span<const std::string> listed) {
  std::vector<std::string> complete;
  for (const std::string& prefix : FindMarked(path, state_filename)) {
    const auto mark = MarkUnfinished(prefix, state_filename);
    if (!mark.ok() || !(*mark)->excludes_others()) continue;  // its saver lives
    const bool is_listed = std::any_of(listed.begin(), listed.end(), [&](const std::string& each) {
      return BaseName(each) == BaseName(prefix);
    });
    if (is_listed || IsPinned(prefix)) continue;
    RemoveParts(prefix);
    if (CheckpointExists(prefix)) {
      complete.push_back(prefix);
    } else {
      RemoveCheckpoint(prefix).IgnoreError();
    }
  }
  std::stable_sort(complete.begin(), complete.end(), [](const auto& a, const auto& b) {
    return TimeOfCheckpoint(a) < TimeOfCheckpoint(b);
  });
  return complete;
}

}  // namespace weir
