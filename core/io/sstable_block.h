#ifndef WEIR_CORE_IO_SSTABLE_BLOCK_H_
#define WEIR_CORE_IO_SSTABLE_BLOCK_H_

#include <string>

#include "weir/core/io/sstable.h"

// Parts of an SSTable file, shared by the reader and the scanner.
namespace weir::internal {

inline constexpr uint64_t kFooterSize = 48;

// Consumes a block handle at the front of `*in`.
bool GetBlockHandle(absl::string_view* in, BlockHandle* handle);

// Returns true if the block and its trailer are inside a file of this size.
bool IsInside(const BlockHandle& handle, uint64_t file_size);

struct Footer {
  BlockHandle metaindex, index;
};
absl::StatusOr<Footer> ReadFooter(const ReadableFile& file);

// Returns the verified, decompressed contents of a block.
absl::StatusOr<std::string> ReadBlock(const ReadableFile& file, const BlockHandle& handle);

// An iterator over the entries of a block. `contents` outlives it.
class BlockCursor {
 public:
  explicit BlockCursor(absl::string_view contents);
  // Returns false at the end, and if the contents are not a block: see `sound`.
  bool valid() const { return valid_; }
  // Returns false once an inconsistency has been found.
  bool sound() const { return sound_; }
  absl::string_view key() const { return key_; }
  absl::string_view value() const { return value_; }
  void Next();
  // Moves to the first entry whose key is not less than `key`, using the restart points.
  void Seek(absl::string_view key);
  // The offset of this entry, and whether its key is not prefix-compressed, as at restart points.
  uint32_t start() const { return start_; }
  bool has_full_key() const { return full_key_; }
  uint32_t num_restarts() const { return num_restarts_; }
  // Returns the offset of restart point i, or the end of the entries if i is out of range.
  uint32_t Restart(uint32_t i) const;

 private:
  void Fail();
  void Decode();

  absl::string_view contents_;
  uint32_t entries_end_ = 0, num_restarts_ = 0;
  uint32_t start_ = 0, position_ = 0;  // offsets of this entry and of the next one
  bool full_key_ = false;
  std::string key_;
  absl::string_view value_;
  bool valid_ = false, sound_ = true;
};

}  // namespace weir::internal

#endif  // WEIR_CORE_IO_SSTABLE_BLOCK_H_
