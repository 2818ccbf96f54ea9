#include "weir/session/model/interrupted_saves.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/retention.h"

namespace weir {
namespace {

constexpr char kMark[] = ".weir-save";

// True for what a saver appends to the path that it is given: nothing, or the number of a step.
bool IsStep(absl::string_view suffix) {
  int64_t step = 0;
  return suffix.empty() || (absl::ConsumePrefix(&suffix, "-") && absl::SimpleAtoi(suffix, &step));
}

// Returns the prefixes of marked checkpoints of that name.
std::vector<std::string> FindMarked(const std::string& path, const std::string& state_filename) {
  std::vector<std::string> prefixes;
  const std::string directory = DirectoryOf(path);
  const absl::StatusOr<std::vector<std::string>> names = Files().List(directory);
  if (!names.ok()) return prefixes;
  const std::string ending = absl::StrCat(".", state_filename, kMark);
  for (const std::string& name : *names) {
    absl::string_view prefix = name;
    if (!absl::ConsumeSuffix(&prefix, ending)) continue;
    absl::string_view step = prefix;
    if (absl::ConsumePrefix(&step, BaseName(path)) && IsStep(step))
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

absl::StatusOr<std::unique_ptr<SaveMark>> SaveMark::Create(const std::string& prefix,
                                                           const std::string& state_filename) {
  std::string path = absl::StrCat(prefix, ".", state_filename, kMark);
  absl::StatusOr<std::unique_ptr<FileLock>> lock = Files().Lock(path);
  if (absl::IsUnimplemented(lock.status())) lock = nullptr;  // WriteLock warns of it
  if (absl::IsAborted(lock.status()))
    return absl::AbortedError(absl::StrCat(prefix, " is being saved or removed by another saver"));
  WEIR_RETURN_IF_ERROR(lock.status());
  return std::unique_ptr<SaveMark>(new SaveMark(std::move(path), *std::move(lock)));
}

void SaveMark::Finish() {
  if (lock_ != nullptr) Files().Remove(path_).IgnoreError();
}

std::vector<InterruptedSave> FinishInterruptedSaves(const std::string& path,
                                                    const std::string& state_filename,
                                                    absl::Span<const std::string> known) {
  const std::vector<std::string> marked = FindMarked(path, state_filename);
  if (marked.empty()) return {};
  absl::flat_hash_set<std::string> listed;
  for (const std::string& each : known) listed.insert(std::string(BaseName(each)));
  if (const auto state = ReadCheckpointState(DirectoryOf(path), state_filename); state.ok()) {
    for (const std::string& each : state->all_model_checkpoint_paths)
      listed.insert(std::string(BaseName(each)));
  }
  std::vector<InterruptedSave> complete;
  for (const std::string& prefix : marked) {
    absl::StatusOr<std::unique_ptr<SaveMark>> mark = SaveMark::Create(prefix, state_filename);
    if (!mark.ok() || !(*mark)->excludes_others()) continue;  // its saver lives
    if (listed.contains(BaseName(prefix)) || IsPinned(prefix)) {
      (*mark)->Finish();
      continue;
    }
    RemoveParts(prefix);
    if (CheckpointExists(prefix)) {
      complete.push_back({prefix, *std::move(mark)});
    } else {
      RemoveCheckpoint(prefix).IgnoreError();
      (*mark)->Finish();
    }
  }
  std::stable_sort(complete.begin(), complete.end(), [](const auto& a, const auto& b) {
    return TimeOfCheckpoint(a.prefix) < TimeOfCheckpoint(b.prefix);
  });
  return complete;
}

void CleanUpFailedSave(const std::string& prefix, SaveMark* mark) {
  RemoveParts(prefix);
  if (!CheckpointExists(prefix)) mark->Finish();
}

}  // namespace weir
