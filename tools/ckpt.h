#ifndef WEIR_TOOLS_CKPT_H_
#define WEIR_TOOLS_CKPT_H_

#include <memory>
#include <string>

#include "weir/core/bundle.h"
#include "weir/tools/command.h"

// What the parts of `weir ckpt` share.
namespace weir::tools {

// The prefix that `path` stands for: a folder for the newest checkpoint in it, or for that of the
// SavedModel that it is; one of a checkpoint's files (m-7.index, .meta, .data-...), or the state
// file "checkpoint", for the checkpoint. INVALID_ARGUMENT if it is empty; any other path is
// returned as it is.
absl::StatusOr<std::string> CheckpointPrefix(const std::string& path);
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(const std::string& path);

// A line on a terminal that says how far a command is with its tensors; nothing elsewhere.
class Progress {
 public:
  Progress(Console& console, size_t num_tensors) : console_(console), num_tensors_(num_tensors) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // One more is done.
  void Add(const Tensor& tensor);
  int64_t bytes() const { return bytes_; }

 private:
  Console& console_;
  const size_t num_tensors_;
  size_t done_ = 0;
  int64_t bytes_ = 0;
};

// Each declares one command below `weir ckpt`.
void AddConvertCommand(Command& ckpt);
void AddRepairCommand(Command& ckpt);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_H_
