#include "weir/core/io/retention.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/bundle_commit.h"
#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/file.h"

namespace weir {

namespace {

constexpr double kSecondsPerHour = 3600;
// Nobody holds a lock on the finished parts of a sharded save until they are merged.
constexpr double kPartsAge = kSecondsPerHour;

double TimeOf(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  if (error) return 0;
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration<double>(system.time_since_epoch()).count();
}

double Now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Returns 500 for "model-500", or -1.
int64_t StepOf(const std::string& prefix) {
  const size_t dash = prefix.rfind('-');
  int64_t step = -1;
  if (dash == std::string::npos || !absl::SimpleAtoi(prefix.substr(dash + 1), &step)) return -1;
  return step;
}

// Returns the name of the checkpoint to which a data file belongs, or an empty text.
absl::string_view OwnerOfData(absl::string_view name) {
  const size_t data = name.rfind(".data-");
  return data == absl::string_view::npos ? absl::string_view() : name.substr(0, data);
}

// The names in a folder, by what they are.
struct Listing {
  std::set<std::string> indexes;                         // names of checkpoints
  std::map<std::string, std::vector<std::string>> data;  // names of data files by checkpoint
  std::vector<std::string> temporary;                    // names of temporary files and locks
  std::vector<std::string> parts;                        // names of folders of sharded saves
};

absl::StatusOr<Listing> ListFolder(const std::string& folder) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> names, Files().List(folder));
  Listing listing;
  for (const std::string& name : names) {
    absl::string_view rest = name;
    if (Files().IsDirectory(JoinPath(folder, name))) {
      if (absl::EndsWith(name, "_temp")) listing.parts.push_back(name);
    } else if (IsTemporaryOrLockName(name)) {
      listing.temporary.push_back(name);
    } else if (absl::ConsumeSuffix(&rest, ".index")) {
      listing.indexes.insert(std::string(rest));
    } else if (const absl::string_view owner = OwnerOfData(name); !owner.empty()) {
      listing.data[std::string(owner)].push_back(name);
    }
  }
  return listing;
}

int64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

absl::Status CheckComplete(const std::string& prefix, const RetentionRules& rules) {
  WEIR_RETURN_IF_ERROR(CheckBundleIsComplete(prefix));
  if (!rules.verify) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const BundleReport report, VerifyBundle(prefix));
  return report.problems.empty() ? absl::OkStatus() : DataLoss(report.problems[0].message);
}

std::vector<RetainedCheckpoint> FindCheckpoints(const std::string& folder, const Listing& listing) {
  std::vector<RetainedCheckpoint> found;
  for (const std::string& name : listing.indexes) {
    const std::string prefix = JoinPath(folder, name), index = prefix + ".index";
    RetainedCheckpoint checkpoint{prefix, TimeOf(index), SizeOf(index) + SizeOf(prefix + ".meta")};
    if (const auto data = listing.data.find(name); data != listing.data.end()) {
      for (const std::string& file : data->second)
        checkpoint.bytes += SizeOf(JoinPath(folder, file));
    }
    found.push_back(std::move(checkpoint));
  }
  std::sort(found.begin(), found.end(),
            [](const RetainedCheckpoint& a, const RetainedCheckpoint& b) {
              return std::tuple(a.time, StepOf(a.prefix), a.prefix) >
                     std::tuple(b.time, StepOf(b.prefix), b.prefix);
            });
  return found;
}

// Returns the checkpoint that the state file names as the newest, or an empty text.
std::string NamedNewest(const std::string& folder) {
  const absl::StatusOr<std::string> newest = LatestCheckpoint(folder);
  return newest.ok() ? std::string(BaseName(*newest)) : "";
}

std::string PinReason(const std::string& prefix) {
  const absl::StatusOr<std::string> note = ReadFile(PinPath(prefix));
  const absl::string_view text = note.ok() ? absl::StripAsciiWhitespace(*note) : "";
  return text.empty() ? "pinned" : absl::StrCat("pinned: ", text);
}

// Returns the checkpoints with the best metrics.
std::set<const RetainedCheckpoint*> BestOf(const RetentionRules& rules,
                                           const std::vector<RetainedCheckpoint>& checkpoints) {
  std::vector<const RetainedCheckpoint*> ranked;
  for (const RetainedCheckpoint& each : checkpoints) {
    if (each.is_complete && each.metric && !std::isnan(*each.metric)) ranked.push_back(&each);
  }
  std::stable_sort(
      ranked.begin(), ranked.end(), [&](const RetainedCheckpoint* a, const RetainedCheckpoint* b) {
        return rules.better == Better::kHigher ? *a->metric > *b->metric : *a->metric < *b->metric;
      });
  ranked.resize(std::min(ranked.size(), static_cast<size_t>(std::max(rules.best, 0))));
  return {ranked.begin(), ranked.end()};
}

// Keeps the first complete checkpoint of each period, oldest first.
void KeepPeriodic(const RetentionRules& rules, std::vector<RetainedCheckpoint>* checkpoints) {
  double next = rules.period_start;
  for (auto it = checkpoints->rbegin(); it != checkpoints->rend(); ++it) {
    if (!it->is_complete || it->time < next) continue;
    next = it->time + rules.every_hours * kSecondsPerHour;
    if (it->is_kept()) continue;
    it->kept_as = KeptAs::kPeriodic;
    it->reason = absl::StrCat("first in ", rules.every_hours, " hours");
  }
}

}  // namespace

void DecideRetention(const RetentionRules& rules, absl::string_view named,
                     std::vector<RetainedCheckpoint>* checkpoints) {
  const std::set<const RetainedCheckpoint*> best = BestOf(rules, *checkpoints);
  int complete = 0;
  for (RetainedCheckpoint& each : *checkpoints) {
    if (each.is_complete) ++complete;
    const bool is_new = each.is_complete && complete <= rules.keep;
    const bool is_named = BaseName(each.prefix) == named;
    const bool is_best = best.contains(&each);
    const bool is_pinned = (rules.explain || !is_new) && IsPinned(each.prefix);
    each.kept_as = is_new                               ? KeptAs::kNew
                   : is_best                            ? KeptAs::kBest
                   : is_named                           ? KeptAs::kNamed
                   : !each.is_complete && complete == 0 ? KeptAs::kRepairable
                   : is_pinned                          ? KeptAs::kPinned
                                                        : KeptAs::kNone;
    if (is_pinned) {
      each.reason = PinReason(each.prefix);
    } else if (each.is_complete) {
      each.reason = is_new     ? absl::StrCat("newest ", rules.keep)
                    : is_best  ? absl::StrFormat("best %d: %g", rules.best, *each.metric)
                    : is_named ? "named by the state file"
                               : "old";
    }
  }
  if (rules.every_hours > 0) KeepPeriodic(rules, checkpoints);
}

namespace {

// Looks at the files of checkpoints. FAILED_PRECONDITION if none is complete.
absl::Status Examine(const std::string& folder, const RetentionRules& rules,
                     std::vector<RetainedCheckpoint>* checkpoints) {
  for (RetainedCheckpoint& checkpoint : *checkpoints) {
    const absl::Status status = CheckComplete(checkpoint.prefix, rules);
    checkpoint.is_complete = status.ok();
    if (!status.ok()) checkpoint.reason = absl::StrCat("incomplete: ", status.message());
    checkpoint.metric = ReadMetric(checkpoint.prefix);
  }
  const bool any = std::any_of(checkpoints->begin(), checkpoints->end(),
                               [](const RetainedCheckpoint& each) { return each.is_complete; });
  if (any || checkpoints->empty()) return absl::OkStatus();
  return FailedPrecondition(
      folder, ": none of the ", checkpoints->size(),
      " checkpoints is complete, so none is removed: ", checkpoints->front().reason);
}

// Returns true if no live process has locked the file.
bool IsAbandoned(const std::string& path) { return Files().Lock(path).ok(); }

bool AreOldParts(const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = Files().List(folder);
  if (!names.ok() || names->empty()) return false;
  return std::all_of(names->begin(), names->end(), [&](const std::string& name) {
    return absl::StartsWith(name, "part-") && TimeOf(JoinPath(folder, name)) < Now() - kPartsAge;
  });
}

std::vector<std::string> FindLeftovers(const std::string& folder, const Listing& listing) {
  std::vector<std::string> leftovers;
  for (const std::string& name : listing.temporary) {
    if (IsAbandoned(JoinPath(folder, name))) leftovers.push_back(JoinPath(folder, name));
  }
  for (const auto& [owner, files] : listing.data) {
    const std::string prefix = JoinPath(folder, owner);
    const bool has_index = listing.indexes.contains(owner);
    const bool has_live_previous = !internal::LiveDataSuffix(prefix).empty();
    for (const std::string& file : files) {
      const bool is_previous = absl::EndsWith(file, ".previous");
      if (has_index && (!is_previous || has_live_previous)) continue;
      leftovers.push_back(JoinPath(folder, file));
    }
  }
  for (const std::string& name : listing.parts) {
    if (AreOldParts(JoinPath(folder, name))) leftovers.push_back(JoinPath(folder, name));
  }
  return leftovers;
}

// ---- applying a plan

// Returns false if the state lists none of these checkpoints.
bool RemoveFrom(CheckpointState* state, const std::set<std::string>& removed) {
  const bool has_times =
      state->all_model_checkpoint_timestamps.size() == state->all_model_checkpoint_paths.size();
  std::vector<std::string> paths;
  std::vector<double> times;
  for (size_t i = 0; i < state->all_model_checkpoint_paths.size(); ++i) {
    const std::string& path = state->all_model_checkpoint_paths[i];
    if (removed.contains(std::string(BaseName(path)))) continue;
    paths.push_back(path);
    if (has_times) times.push_back(state->all_model_checkpoint_timestamps[i]);
  }
  if (paths.size() == state->all_model_checkpoint_paths.size()) return false;
  state->all_model_checkpoint_paths = std::move(paths);
  state->all_model_checkpoint_timestamps = std::move(times);
  return true;
}

// Takes checkpoints out of the state file, before they are removed.
absl::Status RemoveFromState(const std::string& folder, const std::set<std::string>& removed) {
  if (removed.empty()) return absl::OkStatus();
  const absl::Status changed = ChangeCheckpointState(
      folder, [&](CheckpointState* state) { return RemoveFrom(state, removed); });
  return absl::IsNotFound(changed) ? absl::OkStatus() : changed;
}

// Removes something that belongs to the checkpoint `prefix` unless it is being written.
bool RemoveLocked(const std::string& prefix, absl::FunctionRef<absl::Status()> remove) {
  const absl::StatusOr<std::unique_ptr<WriteLock>> lock = WriteLock::Acquire(prefix);
  return lock.ok() && remove().ok();
}

bool RemoveLeftover(const std::string& path) {
  if (Files().IsDirectory(path)) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return !error;
  }
  if (IsTemporaryOrLockName(BaseName(path))) return true;  // SweepCheckpoints removes it
  const absl::string_view owner = OwnerOfData(path);
  return RemoveLocked(std::string(owner), [&]() -> absl::Status {
    // A save may have been finished since the plan was made.
    const bool is_previous = absl::EndsWith(path, ".previous");
    const std::string prefix(owner);
    if (Files().Exists(prefix + ".index") &&
        (!is_previous || !internal::LiveDataSuffix(prefix).empty()))
      return FailedPrecondition(path, " belongs to a checkpoint");
    return Files().Remove(path);
  });
}

}  // namespace

absl::StatusOr<RetentionPlan> PlanRetention(const std::string& folder,
                                            const RetentionRules& rules) {
  WEIR_ASSIGN_OR_RETURN(const Listing listing, ListFolder(folder));
  RetentionPlan plan;
  plan.checkpoints = FindCheckpoints(folder, listing);
  WEIR_RETURN_IF_ERROR(Examine(folder, rules, &plan.checkpoints));
  DecideRetention(rules, NamedNewest(folder), &plan.checkpoints);
  plan.leftovers = FindLeftovers(folder, listing);
  return plan;
}

absl::StatusOr<std::vector<std::string>> ApplyRetention(const std::string& folder,
                                                        const RetentionPlan& plan) {
  std::set<std::string> removed;
  for (const RetainedCheckpoint& checkpoint : plan.checkpoints) {
    if (!checkpoint.is_kept()) removed.insert(std::string(BaseName(checkpoint.prefix)));
  }
  WEIR_RETURN_IF_ERROR(RemoveFromState(folder, removed));
  std::vector<std::string> skipped;
  for (const RetainedCheckpoint& checkpoint : plan.checkpoints) {
    if (checkpoint.is_kept() || IsPinned(checkpoint.prefix)) continue;
    const bool done =
        RemoveLocked(checkpoint.prefix, [&] { return RemoveCheckpoint(checkpoint.prefix); });
    if (!done) skipped.push_back(checkpoint.prefix);
  }
  for (const std::string& path : plan.leftovers) {
    if (!RemoveLeftover(path)) skipped.push_back(path);
  }
  internal::SweepCheckpoints(folder);
  return skipped;
}

std::vector<std::string> CheckpointsByTime(const std::string& folder) {
  std::vector<std::string> prefixes;
  const absl::StatusOr<Listing> listing = ListFolder(folder);
  if (!listing.ok()) return prefixes;
  for (RetainedCheckpoint& each : FindCheckpoints(folder, *listing))
    prefixes.push_back(std::move(each.prefix));
  return prefixes;
}

double TimeOfCheckpoint(const std::string& prefix) { return TimeOf(prefix + ".index"); }

std::optional<double> ReadMetric(const std::string& prefix) {
  const absl::StatusOr<std::string> text = ReadFile(MetricPath(prefix));
  double metric = 0;
  if (!text.ok() || !absl::SimpleAtod(absl::StripAsciiWhitespace(*text), &metric)) return {};
  return metric;
}

absl::Status WriteMetric(const std::string& prefix, std::optional<double> metric,
                         Durability durability) {
  const std::string path = MetricPath(prefix);
  if (metric) return WriteFileAtomically(path, absl::StrFormat("%.17g\n", *metric), durability);
  return Files().Exists(path) ? Files().Remove(path) : absl::OkStatus();
}

}  // namespace weir
