#ifndef WEIR_KERNELS_LIB_NON_TEMPORAL_H_
#define WEIR_KERNELS_LIB_NON_TEMPORAL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

// Non-temporal stores, for results that are larger than the processor's caches. The consumer of
// such a result does not find it in the cache, and an ordinary store reads each cache line first
// (write allocate), a third of the memory traffic of an op with one argument. Non-temporal stores
// avoid both. They pay off if a vector is a whole cache line (AVX-512): shorter vectors, combined
// to lines in a write-combining buffer, measured slower than ordinary stores.
namespace weir::non_temporal {

// Returns whether non-temporal stores pay off for a result of `bytes` bytes.
bool Pays(size_t bytes);

inline constexpr size_t kLine = 64;

// Returns whether consecutive rows of `row_bytes` bytes, starting at `to`, are all aligned to cache
// lines.
inline bool IsAligned(const void* to, size_t row_bytes) {
  return (reinterpret_cast<uintptr_t>(to) | row_bytes) % kLine == 0;
}

// Copies data from the L1 cache to a result. If `to` is not aligned to a cache line, this is an
// ordinary copy, and so is the tail of a partial line. The same thread must call Fence() before
// others read the result.
void Copy(const void* from, void* to, size_t bytes);
void Fence();

// The size of a tile buffer.
inline constexpr size_t kTileBytes = 4096;

// Writes elements [begin, end) of a result at `to`, of `size` bytes each, tile by tile: fill(i, n,
// buffer) writes elements [i, i + n) to the buffer, at most `most` at a time.
template <class Fill>
void WriteTiles(int64_t begin, int64_t end, size_t size, char* to, Fill&& fill,
                int64_t most = kTileBytes) {
  alignas(kLine) char buffer[kTileBytes];
  const int64_t tile = std::min(most, static_cast<int64_t>(kTileBytes / size));
  for (int64_t i = begin; i < end; i += tile) {
    const int64_t n = std::min(tile, end - i);
    fill(i, n, buffer);
    Copy(buffer, to + static_cast<size_t>(i) * size, static_cast<size_t>(n) * size);
  }
  Fence();
}

}  // namespace weir::non_temporal

#endif  // WEIR_KERNELS_LIB_NON_TEMPORAL_H_
