#ifndef WEIR_RPC_FILE_ACCESS_H_
#define WEIR_RPC_FILE_ACCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/io/file.h"

namespace weir::rpc {

// Returns the system's files restricted to these directories: other files appear not to exist, and
// opening or creating them returns PERMISSION_DENIED. So do devices, pipes, sockets, and the files
// in /proc and /sys. Symbolic links are resolved; replacing one during a call does not lead
// outside. With a ScopedFileSystem, the restriction applies to the whole process.
//
// Returns NOT_FOUND for a directory that does not exist.
absl::StatusOr<std::unique_ptr<FileSystem>> RestrictFiles(
    const std::vector<std::string>& directories);

}  // namespace weir::rpc

#endif  // WEIR_RPC_FILE_ACCESS_H_
