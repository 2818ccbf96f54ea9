#ifndef WEIR_TESTS_IO_CRASHING_FILE_SYSTEM_H_
#define WEIR_TESTS_IO_CRASHING_FILE_SYSTEM_H_

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "weir/core/io/file.h"

namespace weir::testing {

// The operating system's file system, for a process that is killed after a number of operations.
// The last Append is only half done.
class CrashingFileSystem : public FileSystem {
 public:
  CrashingFileSystem(FileSystem* base, int operations) : base_(base), left_(operations) {}
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return base_->Open(path);
  }
  absl::Status Rename(const std::string& a, const std::string& b) override {
    Count();
    return base_->Rename(a, b);
  }
  absl::Status Link(const std::string& a, const std::string& b) override {
    Count();
    return base_->Link(a, b);
  }
  absl::Status Remove(const std::string& path) override {
    Count();
    return base_->Remove(path);
  }
  absl::Status SyncDirectory(const std::string& path) override {
    Count();
    return base_->SyncDirectory(path);
  }
  absl::Status MakeDirectory(const std::string& path) override {
    Count();
    return base_->MakeDirectory(path);
  }
  absl::Status RemoveDirectory(const std::string& path) override {
    Count();
    return base_->RemoveDirectory(path);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    return base_->Lock(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    return base_->List(path);
  }
  bool Exists(const std::string& path) override { return base_->Exists(path); }
  bool IsDirectory(const std::string& path) override { return base_->IsDirectory(path); }

  bool last() const { return left_ == 0; }
  void Count() {
    if (left_-- == 0) kill(getpid(), SIGKILL);
  }

 private:
  FileSystem* const base_;
  int left_;
};

class CrashingFile : public WritableFile {
 public:
  CrashingFile(CrashingFileSystem* files, std::unique_ptr<WritableFile> base)
      : files_(files), base_(std::move(base)) {}
  absl::Status Append(absl::string_view data) override {
    if (files_->last()) base_->Append(data.substr(0, data.size() / 2)).IgnoreError();
    files_->Count();
    return base_->Append(data);
  }
  void Reserve(uint64_t size) override { base_->Reserve(size); }
  void StartSync() override { base_->StartSync(); }
  absl::Status Sync() override {
    files_->Count();
    return base_->Sync();
  }
  absl::Status Close() override { return base_->Close(); }

 private:
  CrashingFileSystem* const files_;
  const std::unique_ptr<WritableFile> base_;
};

inline absl::StatusOr<std::unique_ptr<WritableFile>> CrashingFileSystem::Create(
    const std::string& path) {
  Count();
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, base_->Create(path));
  return std::make_unique<CrashingFile>(this, std::move(file));
}

}  // namespace weir::testing

#endif  // WEIR_TESTS_IO_CRASHING_FILE_SYSTEM_H_
