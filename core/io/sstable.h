#ifndef WEIR_CORE_IO_SSTABLE_H_
#define WEIR_CORE_IO_SSTABLE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/io/file.h"

// SSTables (sorted string tables): files of (key, value) pairs in ascending key order, stored in
// blocks with checksums. This is LevelDB's format, which TensorFlow uses for checkpoint indices:
// see docs/checkpoint_format.md. sstable_writer.h writes them.
namespace weir {

// The location of a block: `size` bytes, followed by a trailer of kTrailer bytes.
struct BlockHandle {
  static constexpr uint64_t kTrailer = 5;  // compression type, checksum
  uint64_t offset = 0, size = 0;
  friend bool operator==(const BlockHandle&, const BlockHandle&) = default;
};

// Reads an SSTable. Keeps the index and one block in memory. Not thread-safe. Errors: DATA_LOSS,
// with path, offset, and for checksums the stored and the computed one.
class SSTableReader {
 public:
  using Visitor = absl::FunctionRef<absl::Status(absl::string_view key, absl::string_view value)>;

  static absl::StatusOr<std::unique_ptr<SSTableReader>> Open(std::unique_ptr<ReadableFile> file);
  ~SSTableReader();

  // Returns nullopt if the key does not exist.
  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key);
  // Calls `visit` for every entry, in order, until it returns an error. The views are valid only
  // during the call.
  absl::Status ForEach(Visitor visit);
  const std::string& path() const { return file_->path(); }
  uint64_t file_size() const { return file_->size(); }
  const ReadableFile& file() const { return *file_; }

 private:
  struct Block;
  explicit SSTableReader(std::unique_ptr<ReadableFile> file);
  absl::StatusOr<const Block*> Load(size_t i);
  bool IsInOrder(size_t i, absl::string_view contents) const;

  const std::unique_ptr<ReadableFile> file_;
  // A key not less than any in the block, and the block's handle.
  std::vector<std::pair<std::string, BlockHandle>> index_;
  std::unique_ptr<Block> loaded_;
};

// A damaged range of an SSTable: bytes [offset, offset + size).
struct SSTableProblem {
  uint64_t offset = 0, size = 0;
  std::string message;
};

// Scans an SSTable as far as it can be read: visits the entries of every intact block, in file
// order, even if other blocks, the index or the footer are damaged. Returns the defects; the list
// is empty only if every byte of the file belongs to an intact part. Entries recovered from damaged
// blocks go to `doubt`; their keys, values or both may be wrong. The views passed to visitors are
// valid only during the call. Returns an error only if the file cannot be read.
using SSTableVisitor = absl::FunctionRef<void(absl::string_view key, absl::string_view value)>;
absl::StatusOr<std::vector<SSTableProblem>> ScanSSTable(
    const ReadableFile& file, SSTableVisitor visit,
    SSTableVisitor doubt = [](absl::string_view, absl::string_view) {});

}  // namespace weir

#endif  // WEIR_CORE_IO_SSTABLE_H_
