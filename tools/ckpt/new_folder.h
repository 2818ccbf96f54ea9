#ifndef WEIR_TOOLS_CKPT_NEW_FOLDER_H_
#define WEIR_TOOLS_CKPT_NEW_FOLDER_H_

#include <memory>
#include <string>

#include "weir/core/io/file.h"

namespace weir::tools {

// A folder that appears as a whole or not at all: its files are written to a folder beside it with
// a temporary name, which Commit renames. The exclusive right to write it (WriteLock) is held
// meanwhile. Folders that killed writers have left are removed.
class NewFolder {
 public:
  // ABORTED if another process writes the folder.
  static absl::StatusOr<std::unique_ptr<NewFolder>> Create(const std::string& path);
  // Removes what was not committed.
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Where to write the files.
  const std::string& path() const { return temporary_; }
  // Makes the folder visible, in place of one that is there. The caller has synced the files, but
  // not the folders in which they are.
  absl::Status Commit();

 private:
  NewFolder(std::string path, std::unique_ptr<WriteLock> lock);
  const std::string path_, temporary_;
  const std::unique_ptr<WriteLock> lock_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_NEW_FOLDER_H_
