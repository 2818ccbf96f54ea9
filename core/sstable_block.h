#ifndef WEIR_CORE_SSTABLE_BLOCK_H_
#define WEIR_CORE_SSTABLE_BLOCK_H_

#include <string>

#include "weir/core/sstable.h"

// The parts of a table file, for its reader and its salvager.
namespace weir::internal {

inline constexpr uint64_t kFooterSize = 48;

// Reads a handle from the front of `*in`.
bool GetBlockHandle(absl::string_view* in, BlockHandle* handle);

// True if the block and its trailer lie in a file of this size.
bool IsInside(const BlockHandle& handle, uint64_t file_size);

struct Footer {
  BlockHandle metaindex, index;
};
absl::StatusOr<Footer> ReadFooter(const ReadableFile& file);

// The contents of a block, checked and unpacked.
absl::StatusOr<std::string> ReadBlock(const ReadableFile& file, const BlockHandle& handle);

// Walks the entries of a block's contents. `contents` outlives it.
class BlockCursor {
 public:
  explicit BlockCursor(absl::string_view contents);
  // False if the contents are no block: see `sound`.
  bool valid() const { return valid_; }
  // False once something did not fit together.
  bool sound() const { return sound_; }
  absl::string_view key() const { return key_; }
  absl::string_view value() const { return value_; }
  void Next();
  // To the first entry whose key is not less than `key`, found by the restart points.
  void Seek(absl::string_view key);
  // Where this entry begins, and whether its key is stored whole: restart points are at such.
  uint32_t start() const { return start_; }
  bool has_full_key() const { return full_key_; }
  uint32_t num_restarts() const { return num_restarts_; }
  // The place of restart point i, or the end of the entries if it is out of range.
  uint32_t Restart(uint32_t i) const;

 private:
  void Fail();
  void Decode();

  absl::string_view contents_;
  uint32_t entries_end_ = 0, num_restarts_ = 0;
  uint32_t start_ = 0, position_ = 0;  // of this entry, and of the one after it
  bool full_key_ = false;
  std::string key_;
  absl::string_view value_;
  bool valid_ = false, sound_ = true;
};

}  // namespace weir::internal

#endif  // WEIR_CORE_SSTABLE_BLOCK_H_
