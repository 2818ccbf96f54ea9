#ifndef WEIR_CORE_IO_BUNDLE_COMMIT_H_
#define WEIR_CORE_IO_BUNDLE_COMMIT_H_

#include <string>
#include <utility>
#include <vector>

#include "weir/core/io/file.h"
#include "weir/core/tensor/status.h"

// The commit protocol by which a bundle replaces an older one of the same prefix. At every instant,
// including after a power failure, one of the two is readable.
namespace weir::internal {

// Renames data files (from, to) and then the index file `index` to their final names under
// `prefix`. All files must be complete, and synced if `durability` requires it.
absl::Status CommitBundle(const std::string& prefix,
                          const std::vector<std::pair<std::string, std::string>>& data,
                          const std::string& index, Durability durability);

// Removes the files that killed writers have left in a directory: those of RemoveAbandoned, and
// ".previous" names that no reader needs.
void SweepCheckpoints(const std::string& directory);

// Returns the suffix of the data files that belong to the bundle currently at `prefix`: "" or
// ".previous".
std::string LiveDataSuffix(const std::string& prefix);

// Returns true if the file at `path` still has the contents of the file opened there before.
bool IsUnchanged(const ReadableFile& opened, const std::string& path);
// Returns ABORTED: the bundle at `prefix` was replaced while it was being read.
absl::Status OverwrittenError(absl::string_view prefix);

}  // namespace weir::internal

#endif  // WEIR_CORE_IO_BUNDLE_COMMIT_H_
