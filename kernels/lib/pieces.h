#ifndef WEIR_KERNELS_LIB_PIECES_H_
#define WEIR_KERNELS_LIB_PIECES_H_

#include <algorithm>
#include <cstdint>

// Splits work into pieces where the split affects the result: where partial sums are accumulated,
// or a library is called whose rounding may depend on the sizes. The split depends on sizes alone,
// never on the number of threads, so results are the same, bit for bit, on any number of threads.
// Work whose result does not depend on the split is left to ThreadPool::ParallelFor.
namespace weir {

inline constexpr int64_t kMaxPieces = 16;

// Returns the number of pieces for work of `ns` nanoseconds, at most `most`: a power of two, so
// that two, four and eight threads have equal shares. Each of two or four pieces takes at least 20
// us; more pieces pay only if each of them is longer.
inline int64_t NumPiecesForWork(double ns, int64_t most = kMaxPieces) {
  constexpr double kMinNs = 20e3;
  int64_t pieces = 1;
  while (2 * pieces <= most) {
    const int64_t next = 2 * pieces;
    if (ns < static_cast<double>(next) * kMinNs * (next > 4 ? static_cast<double>(next) / 4 : 1))
      break;
    pieces = next;
  }
  return pieces;
}

// Returns the minimum number of columns per piece of a ParallelFor over `columns` in which each
// piece visits all rows: a multiple of `least`. This makes as few pieces as the threads need,
// although more pieces would check for cancellation more often; such a loop checks for cancellation
// itself.
inline int64_t MinColumnsPerPiece(int64_t columns, int threads, int64_t least) {
  return std::max<int64_t>(1, columns / (4 * threads) / least) * least;
}

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_PIECES_H_
