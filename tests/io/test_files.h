#ifndef WEIR_TESTS_IO_TEST_FILES_H_
#define WEIR_TESTS_IO_TEST_FILES_H_

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "weir/core/io/file.h"
#include "weir/core/tensor/tensor.h"

namespace weir::testing {

// Creates an empty directory for the test; nobody removes it (Bazel does).
std::string MakeTempDirectory(absl::string_view name);
// Returns a copy of a folder of the test's data without links: Bazel links each file.
std::string CopyOfFolder(const std::string& folder);
// Write or read with the operating system, bypassing any replaced file system. A failure ends the
// program.
void WriteBytes(const std::string& path, absl::string_view bytes);
std::string ReadBytes(const std::string& path);

// The tensors of golden/make_goldens.py.
Tensor PatternTensor(DataType dtype, const Shape& shape, int seed);
Tensor PatternStrings(const Shape& shape, int seed);

// An in-memory file system that also models the disk: contents as of the last Sync, names as of the
// last SyncDirectory. A power failure leaves a state between the two: see AfterPowerFailure.
//
// Every call that changes something counts as an operation. With `stop_after` set, operations after
// that many fail as if the process had been killed. If the last one that counts is an Append, it is
// only half done.
class MemoryFileSystem : public FileSystem {
 public:
  MemoryFileSystem();

  enum class Survivors {
    kSyncedOnly,        // neither unsynced contents nor unsynced names
    kNamesButNotBytes,  // all names, but only synced contents: a rename overtakes the data
    kEverything,        // as if only the process had died
    kOneNameOfTwo,      // every second one of the unsynced name changes
  };
  // Returns the file system as it would be after a power failure now.
  std::unique_ptr<MemoryFileSystem> AfterPowerFailure(Survivors survivors) const;

  void set_stop_after(int operations) { stop_after_ = operations; }
  int operations() const { return operations_; }
  // The current contents of a file; changes through it are not counted, and durable at once.
  std::string* Contents(const std::string& path);
  std::vector<std::string> Names() const;

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Link(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::Status RemoveDirectory(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  bool Exists(const std::string& path) override;
  bool IsDirectory(const std::string& path) override;

  struct Inode {
    bool directory = false;
    std::string contents, synced;
  };

 private:
  friend class MemoryWritableFile;
  using Tree = std::map<std::string, std::shared_ptr<Inode>>;
  // Counts an operation; returns an error if the process has been "killed".
  absl::Status Begin();
  bool last() const { return operations_ == stop_after_; }
  absl::Status CheckParent(const std::string& path) const;

  mutable std::mutex mutex_;
  Tree names_, synced_names_;
  int operations_ = 0;
  int stop_after_ = -1;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_IO_TEST_FILES_H_
