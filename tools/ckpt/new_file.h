#ifndef WEIR_TOOLS_CKPT_NEW_FILE_H_
#define WEIR_TOOLS_CKPT_NEW_FILE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "weir/core/tensor/status.h"

namespace weir::tools {

// Writes a file by a library that opens files itself: passes a temporary name beside `path` to
// `write`, then makes the file durable and renames it. The exclusive right to write the path
// (WriteLock) is held meanwhile; ABORTED if another process has it.
absl::Status WriteNewFile(const std::string& path,
                          absl::FunctionRef<absl::Status(const std::string& temporary)> write);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_NEW_FILE_H_
