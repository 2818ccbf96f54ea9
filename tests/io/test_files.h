#ifndef WEIR_TESTS_IO_TEST_FILES_H_
#define WEIR_TESTS_IO_TEST_FILES_H_

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "weir/core/file.h"
#include "weir/core/tensor.h"

namespace weir::testing {

// A directory of the test's own, empty at first, removed by nobody (Bazel does).
std::string MakeTempDirectory(absl::string_view name);
// Writes or reads with the operating system, past any replaced file system; a failure ends the
// program.
void WriteBytes(const std::string& path, absl::string_view bytes);
std::string ReadBytes(const std::string& path);

// The tensors of golden/make_goldens.py.
Tensor PatternTensor(DataType dtype, const Shape& shape, int seed);
Tensor PatternStrings(const Shape& shape, int seed);

// Files in memory, with a memory of their own for what is on disk: contents as of the last Sync,
// names as of the last SyncDirectory. What a power failure leaves is somewhere between the two: see
// AfterPowerFailure.
//
// Every call that changes something counts as an operation. With `stop_after` set, operations after
// that many fail as if the process were gone, and the last one that counts is only half done if it
// is an Append.
class MemoryFileSystem : public FileSystem {
 public:
  MemoryFileSystem();

  enum class Survivors {
    kSyncedOnly,        // neither unsynced contents nor unsynced names
    kNamesButNotBytes,  // all names, but contents as synced: a rename overtakes the data
    kEverything,        // as if only the process had died
    kOneNameOfTwo,      // of the unsynced changes of names, every second one
  };
  // The file system after a power failure now.
  std::unique_ptr<MemoryFileSystem> AfterPowerFailure(Survivors survivors) const;

  void set_stop_after(int operations) { stop_after_ = operations; }
  int operations() const { return operations_; }
  // Bytes that are in a file now; changes them too (not counted, "durable" at once).
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
  // Counts an operation; an error if the process is "gone".
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
