#include "weir/core/io/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir {
namespace internal {
namespace {

// The register of a CRC is a polynomial over GF(2) modulo the generator, with bits in reflected
// order. Feeding it a zero byte is a linear map of the register. Three methods follow from this.
//
// Tables: the effect of k bytes at once is the exclusive or of one table lookup per byte, where
// table j gives the effect of a byte that is followed by j zero bytes. Eight tables process eight
// bytes per iteration.
//
// Three streams: the CRC instruction has a latency of 3 cycles but a throughput of one per cycle,
// so the checksums of three adjacent blocks are computed in parallel. They are combined by crc(A B)
// = shift(crc(A), length of B) ^ crc(B), where the register for B starts at 0. `shift` feeds that
// many zero bytes; as a linear map it takes four table lookups for a fixed length. The tables are
// computed at compile time by repeated squaring of the map of one zero byte.
//
// Folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction", Intel 2009): 16 bytes that are followed by D more bits can be replaced by their
// product with x^D, reduced, and added to the 16 bytes that end D bits later. This takes two
// carry-less multiplications of 64 by 32 bits. AVX-512 does four of these pairs with two
// instructions. Sixteen adjacent 16-byte lanes are folded 256 bytes ahead per iteration and folded
// into one another at the end; the CRC instruction processes the rest. In reflected order, the
// product of two 64-bit polynomials is multiplied by x once more, so the lower half, which
// represents the higher powers, is multiplied by x^(D + 63), and the upper half by x^(D - 1).
constexpr uint32_t kPolynomial = 0x82f63b78u;  // in reflected order

using Table = std::array<uint32_t, 256>;

constexpr Table MakeByteTable() {
  Table table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}

constexpr std::array<Table, 8> MakeTables() {
  std::array<Table, 8> tables{};
  tables[0] = MakeByteTable();
  for (int j = 1; j < 8; ++j) {
    for (int i = 0; i < 256; ++i) {
      tables[j][i] = (tables[j - 1][i] >> 8) ^ tables[0][tables[j - 1][i] & 0xff];
    }
  }
  return tables;
}
constexpr std::array<Table, 8> kTables = MakeTables();

uint32_t Load32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

#if defined(__x86_64__)

// The image of each bit of the register under the map.
using Map = std::array<uint32_t, 32>;

constexpr uint32_t Apply(const Map& map, uint32_t v) {
  uint32_t out = 0;
  for (int i = 0; v != 0; ++i, v >>= 1) {
    if (v & 1) out ^= map[i];
  }
  return out;
}

// Computes the lookup tables for feeding 2^log2_bytes zero bytes.
constexpr std::array<Table, 4> MakeShift(int log2_bytes) {
  const Table byte_table = MakeByteTable();
  Map map{};
  for (int i = 0; i < 32; ++i) {
    const uint32_t v = 1u << i;
    map[i] = (v >> 8) ^ byte_table[v & 0xff];
  }
  for (int k = 0; k < log2_bytes; ++k) {
    Map squared{};
    for (int i = 0; i < 32; ++i) squared[i] = Apply(map, map[i]);
    map = squared;
  }
  std::array<Table, 4> shift{};
  for (int byte = 0; byte < 4; ++byte) {
    for (uint32_t v = 0; v < 256; ++v) shift[byte][v] = Apply(map, v << (8 * byte));
  }
  return shift;
}
constexpr int kLogLong = 12, kLogShort = 8;
constexpr std::array<Table, 4> kShiftLong = MakeShift(kLogLong);
constexpr std::array<Table, 4> kShiftShort = MakeShift(kLogShort);

uint32_t Shift(const std::array<Table, 4>& shift, uint32_t crc) {
  return shift[0][crc & 0xff] ^ shift[1][(crc >> 8) & 0xff] ^ shift[2][(crc >> 16) & 0xff] ^
         shift[3][crc >> 24];
}

uint64_t Load64(const uint8_t* p) {
  uint64_t v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

template <int kLogBlock>
__attribute__((target("sse4.2"))) uint32_t ThreeStreams(uint32_t crc, const uint8_t** data,
                                                        size_t* size,
                                                        const std::array<Table, 4>& shift) {
  constexpr size_t kBlock = size_t{1} << kLogBlock;
  for (; *size >= 3 * kBlock; *size -= 3 * kBlock, *data += 3 * kBlock) {
    uint64_t a = crc, b = 0, c = 0;
    const uint8_t* p = *data;
    for (const uint8_t* end = p + kBlock; p < end; p += 8) {
      a = _mm_crc32_u64(a, Load64(p));
      b = _mm_crc32_u64(b, Load64(p + kBlock));
      c = _mm_crc32_u64(c, Load64(p + 2 * kBlock));
    }
    const uint32_t ab = Shift(shift, static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b);
    crc = Shift(shift, ab) ^ static_cast<uint32_t>(c);
  }
  return crc;
}

// Returns x^n modulo the generator as a 64-bit polynomial: bit i is the coefficient of x^(63 - i).
constexpr uint64_t PowerOfX(int n) {
  uint32_t power = 0x80000000u;  // x^0
  for (; n > 0; --n) power = (power >> 1) ^ ((power & 1) ? kPolynomial : 0);
  return uint64_t{power} << 32;
}

// The factors for the two halves of 16 bytes that are folded kBytes ahead.
template <int kBytes>
struct FoldConstants {
  static constexpr uint64_t kLow = PowerOfX(8 * kBytes + 63), kHigh = PowerOfX(8 * kBytes - 1);
};

template <int kBytes>
__attribute__((target("avx512f,vpclmulqdq"))) inline __m512i Fold(__m512i x, __m512i onto) {
  using A = FoldConstants<kBytes>;
  const __m512i by =
      _mm512_set_epi64(A::kHigh, A::kLow, A::kHigh, A::kLow, A::kHigh, A::kLow, A::kHigh, A::kLow);
  constexpr int kExclusiveOr = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, by, 0x00),
                                   _mm512_clmulepi64_epi128(x, by, 0x11), onto, kExclusiveOr);
}

// Processes all whole blocks of 256 bytes; there must be at least one.
__attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2"))) uint32_t FoldBlocks(
    uint32_t crc, const uint8_t** data, size_t* size) {
  constexpr size_t kVector = 64, kBlock = 4 * kVector;
  const uint8_t* p = *data;
  const __m512i before = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc)));
  __m512i a = _mm512_xor_si512(_mm512_loadu_si512(p), before);
  __m512i b = _mm512_loadu_si512(p + kVector), c = _mm512_loadu_si512(p + 2 * kVector),
          d = _mm512_loadu_si512(p + 3 * kVector);
  for (p += kBlock, *size -= kBlock; *size >= kBlock; p += kBlock, *size -= kBlock) {
    a = Fold<kBlock>(a, _mm512_loadu_si512(p));
    b = Fold<kBlock>(b, _mm512_loadu_si512(p + kVector));
    c = Fold<kBlock>(c, _mm512_loadu_si512(p + 2 * kVector));
    d = Fold<kBlock>(d, _mm512_loadu_si512(p + 3 * kVector));
  }
  *data = p;
  d = Fold<kVector>(Fold<kVector>(Fold<kVector>(a, b), c), d);
  // Folds the four lanes of the last vector, each into the next one.
  using A = FoldConstants<16>;
  const __m128i by = _mm_set_epi64x(A::kHigh, A::kLow);
  const __m128i places[] = {_mm512_extracti32x4_epi32(d, 0), _mm512_extracti32x4_epi32(d, 1),
                            _mm512_extracti32x4_epi32(d, 2), _mm512_extracti32x4_epi32(d, 3)};
  __m128i x = places[0];
  for (int i = 1; i < 4; ++i) {
    const __m128i low = _mm_clmulepi64_si128(x, by, 0x00), high = _mm_clmulepi64_si128(x, by, 0x11);
    x = _mm_xor_si128(_mm_xor_si128(low, high), places[i]);
  }
  const uint64_t first = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(x)));
  return static_cast<uint32_t>(
      _mm_crc32_u64(first, static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_srli_si128(x, 8)))));
}

#endif  // __x86_64__

}  // namespace

uint32_t ExtendCrc32cTables(uint32_t crc, const void* data, size_t size) {
  const auto* p = static_cast<const uint8_t*>(data);
  crc = ~crc;
  for (; size >= 8; size -= 8, p += 8) {
    const uint32_t lo = Load32(p) ^ crc, hi = Load32(p + 4);
    crc = kTables[7][lo & 0xff] ^ kTables[6][(lo >> 8) & 0xff] ^ kTables[5][(lo >> 16) & 0xff] ^
          kTables[4][lo >> 24] ^ kTables[3][hi & 0xff] ^ kTables[2][(hi >> 8) & 0xff] ^
          kTables[1][(hi >> 16) & 0xff] ^ kTables[0][hi >> 24];
  }
  for (; size > 0; --size, ++p) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)

bool HasHardwareCrc32c() { return __builtin_cpu_supports("sse4.2"); }

bool HasFoldingCrc32c() {
  return HasHardwareCrc32c() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("vpclmulqdq");
}

__attribute__((target("sse4.2"))) uint32_t ExtendCrc32cHardware(uint32_t crc, const void* data,
                                                                size_t size) {
  const auto* p = static_cast<const uint8_t*>(data);
  crc = ~crc;
  crc = ThreeStreams<kLogLong>(crc, &p, &size, kShiftLong);
  crc = ThreeStreams<kLogShort>(crc, &p, &size, kShiftShort);
  uint64_t wide = crc;
  for (; size >= 8; size -= 8, p += 8) wide = _mm_crc32_u64(wide, Load64(p));
  crc = static_cast<uint32_t>(wide);
  for (; size > 0; --size, ++p) crc = _mm_crc32_u8(crc, *p);
  return ~crc;
}

uint32_t ExtendCrc32cFolding(uint32_t crc, const void* data, size_t size) {
  const auto* p = static_cast<const uint8_t*>(data);
  constexpr size_t kMinFoldedBytes = 1024;
  if (size >= kMinFoldedBytes) crc = ~FoldBlocks(~crc, &p, &size);
  return ExtendCrc32cHardware(crc, p, size);
}

#else

bool HasHardwareCrc32c() { return false; }
bool HasFoldingCrc32c() { return false; }

uint32_t ExtendCrc32cHardware(uint32_t crc, const void* data, size_t size) {
  return ExtendCrc32cTables(crc, data, size);
}

uint32_t ExtendCrc32cFolding(uint32_t crc, const void* data, size_t size) {
  return ExtendCrc32cTables(crc, data, size);
}

#endif

}  // namespace internal

uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size) {
  static const auto extend = internal::HasFoldingCrc32c()    ? internal::ExtendCrc32cFolding
                             : internal::HasHardwareCrc32c() ? internal::ExtendCrc32cHardware
                                                             : internal::ExtendCrc32cTables;
  return extend(crc, data, size);
}

}  // namespace weir
