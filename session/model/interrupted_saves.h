#ifndef WEIR_SESSION_MODEL_INTERRUPTED_SAVES_H_
#define WEIR_SESSION_MODEL_INTERRUPTED_SAVES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "weir/core/io/file.h"

// Saves that were not finished, since the process was killed or the disk was full. A save consists
// of several files: checkpoint, meta graph, metric and state file, and then those that are removed.
// While a saver writes or removes a checkpoint, it marks it. The next save finds the marks that
// were left.
namespace weir {

// The mark of a checkpoint: a locked file beside it, which stays unless Finish is called, and which
// no other writer removes. Where the file system has no locks, nothing is marked.
class SaveMark {
 public:
  // The saver is known by the name of its state file: savers with different ones may share a
  // directory. ABORTED if another saver, in this or another process, has marked the checkpoint.
  static absl::StatusOr<std::unique_ptr<SaveMark>> Create(const std::string& prefix,
                                                          const std::string& state_filename);
  // Removes the mark, once the state file says what the directory holds.
  void Finish();
  // Returns false where the file system has no locks.
  bool excludes_others() const { return lock_ != nullptr; }

 private:
  SaveMark(std::string path, std::unique_ptr<FileLock> lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  const std::string path_;
  const std::unique_ptr<FileLock> lock_;
};

// A complete checkpoint whose saver neither listed it nor removed it.
struct InterruptedSave {
  std::string prefix;
  std::unique_ptr<SaveMark> mark;
};

// Deals with what savers with this state file have left marked: `path`, and `path` with a number
// ("-7"). Checkpoints that are pinned, or among `known` or in the state file (prefixes), stay as
// they are. Of the others, what is incomplete is removed, and the complete ones are returned,
// oldest first.
std::vector<InterruptedSave> FinishInterruptedSaves(const std::string& path,
                                                    const std::string& state_filename,
                                                    absl::Span<const std::string> known);

// Removes what a failed save has left of a checkpoint, unless there is a complete one of that name,
// which keeps its mark.
void CleanUpFailedSave(const std::string& prefix, SaveMark* mark);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_INTERRUPTED_SAVES_H_
