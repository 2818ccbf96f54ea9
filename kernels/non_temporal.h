#ifndef WEIR_KERNELS_NON_TEMPORAL_H_
#define WEIR_KERNELS_NON_TEMPORAL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

// Results that are larger than the processor's caches. Whoever takes such a result finds nothing of
// it in a cache; and each line that is stored into is read first, a third of an op's traffic if it
// has one argument. Both are spared by stores past the caches, which pay where a vector is a whole
// line (AVX-512): shorter ones, gathered to lines before they go to memory, were measured to be
// slower than plain stores.
namespace weir::non_temporal {

// Whether a result of so many bytes is better written past the caches.
bool Pays(size_t bytes);

inline constexpr size_t kLine = 64;

// Whether rows of so many bytes that follow each other from `to` on all begin at a line.
inline bool IsAligned(const void* to, size_t row_bytes) {
  return (reinterpret_cast<uintptr_t>(to) | row_bytes) % kLine == 0;
}

// Copies what lies in the nearest cache to a result; elsewhere than at multiples of a line it is a
// plain copy. Finish is to be called, by the same thread, before others look at it.
void Copy(const void* from, void* to, size_t bytes);
void Finish();

// Of a tile that is computed in a buffer.
inline constexpr size_t kTileBytes = 4096;

// Elements [begin, end) of a result at `to`, of `size` bytes each, tile by tile: fill(i, n, buffer)
// writes elements [i, i + n) to the buffer, `most` at a time.
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
  Finish();
}

}  // namespace weir::non_temporal

#endif  // WEIR_KERNELS_NON_TEMPORAL_H_
