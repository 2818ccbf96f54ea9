#include "weir/tools/ckpt/new_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace weir::tools {

namespace {

void RemoveAll(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// Removes the temporary folders of writers that were killed. The caller holds the lock, so none of
// them lives.
void RemoveLeftovers(const std::string& path) {
  const absl::StatusOr<std::vector<std::string>> names = Files().List(DirectoryOf(path));
  if (!names.ok()) return;
  const std::string start = absl::StrCat(BaseName(path), ".weir-temp");
  for (const std::string& name : *names) {
    absl::string_view number = name;
    if (!absl::ConsumePrefix(&number, start) || number.empty() ||
        number.find_first_not_of("0123456789") != absl::string_view::npos)
      continue;
    const std::string leftover = JoinPath(DirectoryOf(path), name);
    if (Files().IsDirectory(leftover)) RemoveAll(leftover);
  }
}

}  // namespace

NewFolder::NewFolder(std::string path, std::unique_ptr<WriteLock> lock)
    : path_(std::move(path)), temporary_(TemporaryName(path_)), lock_(std::move(lock)) {}

absl::StatusOr<std::unique_ptr<NewFolder>> NewFolder::Create(const std::string& path) {
  absl::string_view name = path;
  while (name.size() > 1 && absl::ConsumeSuffix(&name, "/")) continue;
  if (name.empty()) return InvalidArgument("the path of the folder is empty");
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<WriteLock> lock, WriteLock::Acquire(name));
  if (lock->excludes_others()) RemoveLeftovers(std::string(name));
  std::unique_ptr<NewFolder> folder(new NewFolder(std::string(name), std::move(lock)));
  WEIR_RETURN_IF_ERROR(Files().MakeDirectory(folder->temporary_));
  return folder;
}

NewFolder::~NewFolder() { RemoveAll(temporary_); }

namespace {

// Makes the names in a folder and in all folders below it durable.
absl::Status SyncFolders(const std::string& path) {
  std::error_code error;
  auto entry = std::filesystem::recursive_directory_iterator(path, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    if (entry->is_directory(error))
      WEIR_RETURN_IF_ERROR(Files().SyncDirectory(entry->path().string()));
  }
  if (error) return Internal("cannot list the files of ", path, ": ", error.message());
  return Files().SyncDirectory(path);
}

}  // namespace

// The destructor removes what the exchange of names has put in the temporary place.
absl::Status NewFolder::Commit() {
  WEIR_RETURN_IF_ERROR(SyncFolders(temporary_));
  if (Files().Exists(path_)) {
    if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) != 0)
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot replace ", path_));
  } else {
    WEIR_RETURN_IF_ERROR(Files().Rename(temporary_, path_));
  }
  return Files().SyncDirectory(DirectoryOf(path_));
}

}  // namespace weir::tools
