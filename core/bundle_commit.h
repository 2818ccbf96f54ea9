#ifndef WEIR_CORE_BUNDLE_COMMIT_H_
#define WEIR_CORE_BUNDLE_COMMIT_H_

#include <string>
#include <utility>
#include <vector>

#include "weir/core/file.h"
#include "weir/core/status.h"

// How a bundle replaces an older one of the same prefix so that at every instant, power failures
// included, one of the two can be read.
namespace weir::internal {

// Renames data files (from, to) and then the index `index` to their final names under `prefix`. All
// are complete, and synced if `durability` asks for it, before.
absl::Status CommitBundle(const std::string& prefix,
                          const std::vector<std::pair<std::string, std::string>>& data,
                          const std::string& index, Durability durability);

// Removes what writers have left in a directory when they were killed: RemoveAbandoned, and
// ".previous" names that no reader looks at any more.
void SweepCheckpoints(const std::string& directory);

// What to put after the name of a data file to read the bundle that is at `prefix` now: nothing, or
// ".previous".
std::string LiveDataSuffix(const std::string& prefix);

// True if the file at `path` has the contents of one that was opened there before.
bool IsUnchanged(const ReadableFile& opened, const std::string& path);
// ABORTED: the bundle at `prefix` was replaced while it was read.
absl::Status Overwritten(absl::string_view prefix);

}  // namespace weir::internal

#endif  // WEIR_CORE_BUNDLE_COMMIT_H_
