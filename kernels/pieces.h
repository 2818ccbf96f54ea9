#ifndef WEIR_KERNELS_PIECES_H_
#define WEIR_KERNELS_PIECES_H_

#include <algorithm>
#include <cstdint>

// How work is cut where the cut shows in the result: where partial sums are added up, or a library
// is called that may round by the sizes it is given. It follows from sizes alone, never from the
// number of threads, so that results are the same, bit for bit, on any number of them. Work that
// comes out the same however it is cut is left to ThreadPool::ParallelFor.
namespace weir {

inline constexpr int64_t kMostPieces = 16;

// Into how many pieces work of `ns` nanoseconds is cut, but no more than `most`: a power of two, so
// that two, four and eight threads have the same to do. Each of two or four pieces takes 20 us at
// least; more of them pay where they are longer.
inline int64_t PiecesOfWork(double ns, int64_t most = kMostPieces) {
  constexpr double kLeastNs = 20e3;
  int64_t pieces = 1;
  while (2 * pieces <= most) {
    const int64_t next = 2 * pieces;
    if (ns < static_cast<double>(next) * kLeastNs * (next > 4 ? static_cast<double>(next) / 4 : 1))
      break;
    pieces = next;
  }
  return pieces;
}

// Columns that a piece of a ParallelFor over `columns` has at least, where each piece goes through
// all rows: as few pieces as the threads want, also where more would look at cancellation more
// often. Such a loop looks itself. A multiple of `least`.
inline int64_t ColumnsOfPiece(int64_t columns, int threads, int64_t least) {
  return std::max<int64_t>(1, columns / (4 * threads) / least) * least;
}

}  // namespace weir

#endif  // WEIR_KERNELS_PIECES_H_
