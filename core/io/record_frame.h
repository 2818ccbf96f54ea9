#ifndef WEIR_CORE_IO_RECORD_FRAME_H_
#define WEIR_CORE_IO_RECORD_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

// What surrounds a record in a TFRecord file: a header, which is the length of the record and a
// checksum of the length, and a footer, which is a checksum of the record.
namespace weir {

inline constexpr size_t kRecordLengthBytes = 8, kRecordFooterBytes = 4;
inline constexpr size_t kRecordHeaderBytes = kRecordLengthBytes + 4;

// Return the header and the footer of a record.
std::string RecordHeader(absl::string_view record);
std::string RecordFooter(absl::string_view record);

// The checksum that a file has, and the one of the bytes before it.
struct RecordChecksum {
  uint32_t stored = 0, computed = 0;
  bool matches() const { return stored == computed; }
};
// Returns both for `size` bytes, which the stored one follows.
RecordChecksum ChecksumAfter(const char* bytes, size_t size);
// Returns the length in a header.
uint64_t RecordLength(const char* header);

}  // namespace weir

#endif  // WEIR_CORE_IO_RECORD_FRAME_H_
