#ifndef WEIR_CORE_IO_CRC32C_H_
#define WEIR_CORE_IO_CRC32C_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

// CRC-32C (Castagnoli), the checksum of checkpoints, records and SSTables. Uses the processor's CRC
// instruction where available (10 to 30 GB/s per core), or carry-less multiplication with AVX-512
// (two to three times as fast); otherwise lookup tables.
namespace weir {

// Returns the checksum of the bytes covered by `crc` followed by `data`; start with 0.
uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size);
inline uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data) {
  return ExtendCrc32c(crc, data.data(), data.size());
}
inline uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

// Files store masked checksums, because the checksum of data that contains checksums is weak.
constexpr uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
constexpr uint32_t UnmaskCrc32c(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

namespace internal {

// The three implementations, for tests. The first requires AVX-512 and VPCLMULQDQ, the second SSE
// 4.2.
bool HasFoldingCrc32c();
uint32_t ExtendCrc32cFolding(uint32_t crc, const void* data, size_t size);
bool HasHardwareCrc32c();
uint32_t ExtendCrc32cHardware(uint32_t crc, const void* data, size_t size);
uint32_t ExtendCrc32cTables(uint32_t crc, const void* data, size_t size);

}  // namespace internal
}  // namespace weir

#endif  // WEIR_CORE_IO_CRC32C_H_
