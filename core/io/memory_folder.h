#ifndef WEIR_CORE_IO_MEMORY_FOLDER_H_
#define WEIR_CORE_IO_MEMORY_FOLDER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/io/file.h"
#include "weir/core/tensor/api.h"

// Files whose contents are in memory, for everything that takes a path.
namespace WEIR_API weir {

// A read-only folder of files in memory, which exists as long as this object. Whatever reads files
// takes its paths: LoadSavedModel, RestoreVariables, ImportMetaGraphFile, CheckpointReader, and the
// kernels of steps. Reading copies bytes straight to where they are needed, and opens no file of
// the operating system:
//
//   MemoryFolder folder({{"m.index", index}, {"m.data-00000-of-00001", data}});
//   WEIR_RETURN_IF_ERROR(RestoreVariables(session, saver, folder.Path("m")));
//
// The folder's path has a random number, so that a path from elsewhere, such as one in a graph,
// does not lead into it. Thread-safe.
class MemoryFolder {
 public:
  // The contents by name, such as "variables/variables.index". The bytes must outlive this object,
  // and all files that have been opened in it.
  explicit MemoryFolder(const std::map<std::string, absl::string_view>& files);
  ~MemoryFolder();
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  // The path of the folder, and of a file or folder in it.
  const std::string& path() const { return path_; }
  std::string Path(absl::string_view name) const { return JoinPath(path_, name); }

 private:
  const std::string path_;
};

// Returns a file with these bytes, which must outlive it. `path` is for messages.
std::unique_ptr<ReadableFile> FileOfBytes(const std::string& path, absl::string_view contents);

// For file systems: what a path in such a folder denotes.
namespace internal {

// Returns true if the path is that of a live MemoryFolder, or leads into one.
bool IsInMemory(absl::string_view path);
// Opens a file. NOT_FOUND if there is none.
absl::StatusOr<std::unique_ptr<ReadableFile>> OpenInMemory(const std::string& path);
bool IsFileInMemory(const std::string& path);
// Returns the names in a directory, sorted; nullopt if it does not exist.
std::optional<std::vector<std::string>> ListInMemory(const std::string& path);

}  // namespace internal
}  // namespace weir

#endif  // WEIR_CORE_IO_MEMORY_FOLDER_H_
