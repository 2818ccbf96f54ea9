#ifndef WEIR_RPC_FILE_ACCESS_H_
#define WEIR_RPC_FILE_ACCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/file.h"

namespace weir::rpc {

// A view of `files` in which there is nothing outside of these directories: what lies elsewhere
// does not exist, and to open or make it is PERMISSION_DENIED. Symbolic links count as what they
// point to. With a ScopedFileSystem it holds for everything that the process does.
//
// NOT_FOUND for a directory that is not there. `files` outlives it.
absl::StatusOr<std::unique_ptr<FileSystem>> OnlyWithin(const std::vector<std::string>& directories,
                                                       FileSystem* files);

}  // namespace weir::rpc

#endif  // WEIR_RPC_FILE_ACCESS_H_
