#include "weir/core/io/sstable_block.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/snappy.h"

namespace weir::internal {
namespace {

constexpr uint64_t kMagic = 0xdb4775248b80fb57u;

}  // namespace

bool GetBlockHandle(absl::string_view* in, BlockHandle* handle) {
  return GetVarint64(in, &handle->offset) && GetVarint64(in, &handle->size);
}

bool IsInside(const BlockHandle& handle, uint64_t file_size) {
  return handle.offset <= file_size && handle.size <= file_size - handle.offset &&
         file_size - handle.offset - handle.size >= BlockHandle::kTrailer;
}

absl::StatusOr<Footer> ReadFooter(const ReadableFile& file) {
  if (file.size() < kFooterSize) {
    return DataLoss(file.path(), ": the file is too short to be an sstable: ", file.size(),
                    " bytes");
  }
  char bytes[kFooterSize];
  WEIR_RETURN_IF_ERROR(file.Read(file.size() - kFooterSize, kFooterSize, bytes));
  const uint64_t magic = LoadFixed64(bytes + kFooterSize - 8);
  if (magic != kMagic) {
    return DataLoss(file.path(), ": not an sstable (bad magic number) at offset ", file.size() - 8,
                    absl::StrFormat(": found %016x, expected %016x", magic, kMagic));
  }
  Footer footer;
  absl::string_view in(bytes, kFooterSize - 8);
  if (!GetBlockHandle(&in, &footer.metaindex) || !GetBlockHandle(&in, &footer.index)) {
    return DataLoss(file.path(), ": bad block handle in the footer at offset ",
                    file.size() - kFooterSize);
  }
  // Rejects any encoding but the canonical one: others are damage that happens to decode to the
  // same value.
  std::string expected;
  for (const uint64_t n :
       {footer.metaindex.offset, footer.metaindex.size, footer.index.offset, footer.index.size}) {
    PutVarint64(&expected, n);
  }
  expected.resize(std::max<size_t>(expected.size(), kFooterSize - 8), '\0');
  if (absl::string_view(bytes, kFooterSize - 8) != expected) {
    return DataLoss(file.path(), ": stray bytes in the footer at offset ",
                    file.size() - kFooterSize);
  }
  return footer;
}

absl::StatusOr<std::string> ReadBlock(const ReadableFile& file, const BlockHandle& handle) {
  const uint64_t size = file.size();
  if (!IsInside(handle, size)) {
    return DataLoss(file.path(), ": block at offset ", handle.offset, " of ", handle.size,
                    " bytes lies beyond the end of the file (", size,
                    " bytes): the file is truncated or damaged");
  }
  std::string bytes(handle.size + BlockHandle::kTrailer, '\0');
  WEIR_RETURN_IF_ERROR(file.Read(handle.offset, bytes.size(), bytes.data()));
  const uint32_t stored = LoadFixed32(bytes.data() + handle.size + 1);
  const uint32_t computed = MaskCrc32c(ExtendCrc32c(0, bytes.data(), handle.size + 1));
  if (stored != computed) {
    return DataLoss(file.path(), ": block checksum mismatch at offset ", handle.offset, " (",
                    handle.size,
                    " bytes): ", absl::StrFormat("stored %08x, computed %08x", stored, computed));
  }
  const char compression = bytes[handle.size];
  bytes.resize(handle.size);
  if (compression == 0) return bytes;
  std::string unpacked;
  if (compression == 1 && SnappyDecompress(bytes, &unpacked)) return unpacked;
  return DataLoss(
      file.path(), ": block at offset ", handle.offset,
      compression == 1 ? ": corrupted compressed block contents" : ": unknown compression ",
      compression == 1 ? "" : absl::StrCat(static_cast<int>(static_cast<uint8_t>(compression))));
}

BlockCursor::BlockCursor(absl::string_view contents) : contents_(contents) {
  if (contents.size() < 4 || contents.size() > UINT32_MAX) {
    Fail();
    return;
  }
  const auto size = static_cast<uint32_t>(contents.size());
  num_restarts_ = LoadFixed32(contents.data() + size - 4);
  if (num_restarts_ > (size - 4) / 4) {
    Fail();
    return;
  }
  entries_end_ = size - 4 - 4 * num_restarts_;
  Decode();
}

void BlockCursor::Fail() {
  sound_ = valid_ = false;
  entries_end_ = num_restarts_ = position_ = 0;
}

void BlockCursor::Next() { Decode(); }

// An entry consists of the length of the prefix shared with the previous key, the length of the
// rest of the key, the length of the value, the rest of the key, and the value.
void BlockCursor::Decode() {
  valid_ = false;
  if (position_ >= entries_end_) return;
  start_ = position_;
  absl::string_view in = contents_.substr(position_, entries_end_ - position_);
  uint32_t shared, rest, value;
  if (!GetVarint32(&in, &shared) || !GetVarint32(&in, &rest) || !GetVarint32(&in, &value) ||
      shared > key_.size() || uint64_t{rest} + value > in.size()) {
    return Fail();
  }
  full_key_ = shared == 0;
  key_.resize(shared);
  key_.append(in.data(), rest);
  value_ = in.substr(rest, value);
  position_ = static_cast<uint32_t>(value_.data() + value - contents_.data());
  valid_ = true;
}

uint32_t BlockCursor::Restart(uint32_t i) const {
  const uint32_t at = LoadFixed32(contents_.data() + entries_end_ + 4 * i);
  return at < entries_end_ ? at : entries_end_;
}

void BlockCursor::Seek(absl::string_view key) {
  // Finds the last restart point whose key is less than `key`; keys at restart points are not
  // prefix-compressed.
  uint32_t low = 0, high = num_restarts_;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    position_ = Restart(middle);
    key_.clear();
    Decode();
    if (!sound_) return;
    (valid_ && this->key() < key ? low : high) = middle;
  }
  position_ = num_restarts_ > 0 ? Restart(low) : entries_end_;
  key_.clear();
  for (Decode(); valid_ && this->key() < key; Decode()) {
  }
}

}  // namespace weir::internal
