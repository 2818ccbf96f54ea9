#include "weir/core/io/record_frame.h"

#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"

namespace weir {

std::string RecordHeader(absl::string_view record) {
  std::string header;
  PutFixed64(&header, record.size());
  PutFixed32(&header, MaskCrc32c(Crc32c(header)));
  return header;
}

std::string RecordFooter(absl::string_view record) {
  std::string footer;
  PutFixed32(&footer, MaskCrc32c(Crc32c(record)));
  return footer;
}

RecordChecksum ChecksumAfter(const char* bytes, size_t size) {
  return {LoadFixed32(bytes + size), MaskCrc32c(ExtendCrc32c(0, bytes, size))};
}

uint64_t RecordLength(const char* header) { return LoadFixed64(header); }

}  // namespace weir
