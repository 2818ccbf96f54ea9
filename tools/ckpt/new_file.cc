#include "weir/tools/ckpt/new_file.h"

#include "weir/core/io/file.h"

namespace weir::tools {

absl::Status WriteNewFile(const std::string& path,
                          absl::FunctionRef<absl::Status(const std::string& temporary)> write) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WriteLock> lock, WriteLock::Acquire(path));
  TemporaryFile temporary(path);
  WEIR_RETURN_IF_ERROR(write(temporary.path()));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                        Files().OpenAtEnd(temporary.path()));
  WEIR_RETURN_IF_ERROR(file->Sync());
  WEIR_RETURN_IF_ERROR(file->Close());
  WEIR_RETURN_IF_ERROR(Files().Rename(temporary.path(), path));
  temporary.SetRenamed();
  return Files().SyncDirectory(DirectoryOf(path));
}

}  // namespace weir::tools
