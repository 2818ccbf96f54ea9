#ifndef WEIR_SESSION_MODEL_INTERRUPTED_SAVES_H_
#define WEIR_SESSION_MODEL_INTERRUPTED_SAVES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "weir/core/io/file.h"

// Saves that a killed process did not finish. A save consists of several files: checkpoint, meta
// graph, metric and state file, and then those that are removed. While a saver writes or removes a
// checkpoint, it marks it with a lock whose file a kill leaves behind. The next save finds it.
namespace weir {

// Marks the checkpoint while the result lives. The saver is known by the name of its state file:
// savers with different ones may share a directory. ABORTED if another saver has marked it.
absl::StatusOr<std::unique_ptr<WriteLock>> MarkUnfinished(const std::string& prefix,
                                                          const std::string& state_filename);

// Deals with what killed savers with this state file have marked: the checkpoints whose names are
// that of `path`, possibly with a suffix such as "-7". Those among `listed` (prefixes) and those
// that are pinned stay as they are. Of the others, what is incomplete is removed, and the complete
// ones are returned, oldest first: their saver neither listed them nor removed them.
std::vector<std::string> FinishInterruptedSaves(const std::string& path,
                                                const std::string& state_filename,
                                                absl::Span<const std::string> listed);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_INTERRUPTED_SAVES_H_
