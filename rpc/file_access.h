#ifndef WEIR_RPC_FILE_ACCESS_H_
#define WEIR_RPC_FILE_ACCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/io/file.h"

namespace weir::rpc {

// Returns a view of `files` restricted to these directories: other files appear not to exist, and
// opening or creating them returns PERMISSION_DENIED. Symbolic links are resolved. With a
// ScopedFileSystem, the restriction applies to the whole process.
//
// Returns NOT_FOUND for a directory that does not exist. `files` outlives the result.
absl::StatusOr<std::unique_ptr<FileSystem>> RestrictFiles(
    const std::vector<std::string>& directories, FileSystem* files);

}  // namespace weir::rpc

#endif  // WEIR_RPC_FILE_ACCESS_H_
