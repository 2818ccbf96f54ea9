#ifndef WEIR_CORE_IO_RETENTION_H_
#define WEIR_CORE_IO_RETENTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/io/file.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/status.h"

// Which checkpoints are kept: for Saver, which decides about those that it has written, and for
// `weir ckpt gc`, which decides about a folder. A plan is made without changing anything, so that
// it can be shown before it is applied.
namespace WEIR_API weir {

// Which values of a metric are better.
enum class Better : uint8_t { kHigher, kLower };

// What to keep, besides pinned checkpoints and the one that the state file names as the newest.
struct RetentionRules {
  int keep = 5;  // the newest complete checkpoints
  int best = 0;  // also those with the best metrics, this many; of equal ones the newest
  Better better = Better::kHigher;  // which metrics are the best
  double every_hours = 0;           // also the first one of each period of this length; 0: none
  double period_start = 0;          // seconds since 1970: when the first of these periods begins
  bool verify = false;              // complete checkpoints also have correct checksums
  // The reasons also say which of the newest checkpoints are pinned; each costs a look at the disk.
  bool explain = true;
};

// Why a checkpoint is kept. If there are several reasons, the first of this list.
enum class KeptAs : uint8_t { kNew, kBest, kNamed, kRepairable, kPinned, kPeriodic, kNone };

// A checkpoint, and what is decided about it.
struct RetainedCheckpoint {
  std::string prefix;            // with the directory
  double time = 0;               // seconds since 1970: when its index was written
  int64_t bytes = 0;             // of all its files; 0 if unknown
  std::optional<double> metric;  // see ReadMetric
  bool is_complete = false;  // has all its bytes, and with RetentionRules::verify the right ones
  KeptAs kept_as = KeptAs::kNone;  // kNone: it is removed
  std::string reason;              // why it is kept or removed, for people
  // Whether it is kept at all.
  bool is_kept() const { return kept_as != KeptAs::kNone; }
};

// Decides about checkpoints, newest first, whose other members are set; an incomplete one has the
// cause in `reason`. `named` is the name, without the directory, of the one that the state file
// names as the newest.
void DecideRetention(const RetentionRules& rules, absl::string_view named,
                     std::vector<RetainedCheckpoint>* checkpoints);

// What is to be done with a folder.
struct RetentionPlan {
  std::vector<RetainedCheckpoint> checkpoints;  // newest first
  // Files and folders that killed writers have left: temporary files, locks, old data files, data
  // files without an index, and the parts of sharded saves that have not changed for an hour.
  std::vector<std::string> leftovers;
};

// Plans for a folder of checkpoints in format V2. A checkpoint that is not complete is removed if a
// newer one is complete; otherwise it is kept, because `weir ckpt repair` may save its tensors.
// FAILED_PRECONDITION if checkpoints exist but none is complete.
absl::StatusOr<RetentionPlan> PlanRetention(const std::string& folder, const RetentionRules& rules);

// Applies a plan: takes the removed checkpoints out of the state file, then removes them and the
// leftovers. Skips what another process is writing meanwhile; returns these names.
absl::StatusOr<std::vector<std::string>> ApplyRetention(const std::string& folder,
                                                        const RetentionPlan& plan);

// Returns the prefixes of a folder's checkpoints in format V2, newest first; none if it cannot be
// read.
std::vector<std::string> CheckpointsByTime(const std::string& folder);

// Returns when a checkpoint in format V2 was written, in seconds since 1970; 0 if it is not there.
double TimeOfCheckpoint(const std::string& prefix);

// The metric of a checkpoint, by which the best ones are kept: a number as text in the file
// MetricPath(prefix). Reading returns nothing if there is no such file, or if it has no number;
// writing nothing removes it.
std::optional<double> ReadMetric(const std::string& prefix);
absl::Status WriteMetric(const std::string& prefix, std::optional<double> metric,
                         Durability durability = Durability::kSynced);

}  // namespace weir

#endif  // WEIR_CORE_IO_RETENTION_H_
