#ifndef WEIR_TOOLS_CASE_SCRATCH_H_
#define WEIR_TOOLS_CASE_SCRATCH_H_

#include <string>

#include "weir/core/tensor/status.h"

namespace weir::tools {

// A folder in the system's temporary folder, removed with its contents by the destructor.
class ScratchFolder {
 public:
  ScratchFolder() = default;
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  absl::Status Create();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CASE_SCRATCH_H_
