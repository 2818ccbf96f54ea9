#ifndef WEIR_CORE_SSTABLE_H_
#define WEIR_CORE_SSTABLE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/file.h"

// Sorted-string tables: files of (key, value) pairs in ascending order of keys, in blocks with
// checksums. The format is LevelDB's, and TensorFlow's for checkpoint indexes: see
// docs/checkpoint_format.md. Written by sstable_writer.h.
namespace weir {

// Where a block lies: `size` bytes, then a trailer of kBlockTrailer.
struct BlockHandle {
  static constexpr uint64_t kTrailer = 5;  // compression, checksum
  uint64_t offset = 0, size = 0;
  friend bool operator==(const BlockHandle&, const BlockHandle&) = default;
};

// Reads a table. Memory: the index of the blocks, and one block. For one thread at a time.
// Errors: DATA_LOSS, with path, offset, and for checksums the stored one and the computed one.
class SSTableReader {
 public:
  using Visitor = absl::FunctionRef<absl::Status(absl::string_view key, absl::string_view value)>;

  static absl::StatusOr<std::unique_ptr<SSTableReader>> Open(std::unique_ptr<ReadableFile> file);
  ~SSTableReader();

  // Nothing if the table does not have the key.
  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key);
  // Calls `visit` for every entry, in order, until one returns an error. The views are good during
  // the call.
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
  std::vector<std::pair<std::string, BlockHandle>>
      index_;  // a key not less than any in the block, and the block
  std::unique_ptr<Block> loaded_;
};

// Bytes [offset, offset + size) of a table that are not as they should be.
struct SSTableProblem {
  uint64_t offset = 0, size = 0;
  std::string message;
};

// Reads a table as far as it can be read: visits the entries of every sound block, in the order of
// the file, even where other blocks, the index or the footer are damaged. Returns what is wrong;
// nothing is wrong only if every byte of the file belongs to a sound part. What can be made out in
// a damaged block goes to `doubt`: key, value or both may not be what was written. The visitors'
// views are good during the call. An error only if the file cannot be read.
using SSTableVisitor = absl::FunctionRef<void(absl::string_view key, absl::string_view value)>;
absl::StatusOr<std::vector<SSTableProblem>> ScanSSTable(
    const ReadableFile& file, SSTableVisitor visit,
    SSTableVisitor doubt = [](absl::string_view, absl::string_view) {});

}  // namespace weir

#endif  // WEIR_CORE_SSTABLE_H_
