#ifndef WEIR_CORE_CRC32C_H_
#define WEIR_CORE_CRC32C_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

// CRC-32C (Castagnoli), the checksum of checkpoints, records and tables. Uses the processor's
// instruction where there is one, 10 to 30 GB/s a core, or multiplications without carries where
// AVX-512 has them, twice to three times that; else tables.
namespace weir {

// The checksum of what `crc` covers followed by `data`; start with 0.
uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size);
inline uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data) {
  return ExtendCrc32c(crc, data.data(), data.size());
}
inline uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

// Files store checksums masked, because a checksum of bytes that contain checksums is weak.
constexpr uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
constexpr uint32_t UnmaskCrc32c(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

namespace internal {

// The three ways to compute it, for tests. The first needs a processor with AVX-512 and VPCLMULQDQ,
// the second one with SSE 4.2.
bool HasFoldingCrc32c();
uint32_t ExtendCrc32cFolding(uint32_t crc, const void* data, size_t size);
bool HasHardwareCrc32c();
uint32_t ExtendCrc32cHardware(uint32_t crc, const void* data, size_t size);
uint32_t ExtendCrc32cTables(uint32_t crc, const void* data, size_t size);

}  // namespace internal
}  // namespace weir

#endif  // WEIR_CORE_CRC32C_H_
