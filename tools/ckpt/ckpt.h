#ifndef WEIR_TOOLS_CKPT_CKPT_H_
#define WEIR_TOOLS_CKPT_CKPT_H_

#include <memory>
#include <ostream>
#include <string>

#include "weir/core/io/bundle.h"
#include "weir/tools/lib/command.h"

// Declarations that the parts of `weir ckpt` share.
namespace weir::tools {

// Returns the checkpoint prefix that `path` denotes. A folder denotes its newest checkpoint, or the
// checkpoint of the SavedModel in it, or of the newest one if it has several versions. One of a
// checkpoint's files (m-7.index, .meta, .data-...), the state file "checkpoint", or saved_model.pb
// denotes that checkpoint. An empty path is INVALID_ARGUMENT; any other path is returned unchanged.
// If the state file names a checkpoint where it no longer is, a line in `notes` says so.
absl::StatusOr<std::string> CheckpointPrefix(const std::string& path,
                                             std::ostream* notes = nullptr);
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(const std::string& path,
                                                                 std::ostream* notes = nullptr);

// A progress line on a terminal, in tensors and bytes. Prints nothing if the output is not a
// terminal.
class Progress {
 public:
  Progress(Console& console, size_t num_tensors) : console_(console), num_tensors_(num_tensors) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Counts one more finished tensor.
  void Add(const Tensor& tensor);
  int64_t bytes() const { return bytes_; }

 private:
  Console& console_;
  const size_t num_tensors_;
  size_t done_ = 0;
  int64_t bytes_ = 0;
};

// Each adds one subcommand of `weir ckpt`.
void AddConvertCommand(Command& ckpt);
void AddRepairCommand(Command& ckpt);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_CKPT_H_
