#include "weir/kernels/array/column_parts.h"

#include <algorithm>

#include "weir/kernels/lib/copy_run.h"
#include "weir/kernels/lib/device_primitives.h"
#include "weir/kernels/lib/strided_copy.h"

// Wide parts are copied one after the other. For narrow ones that would touch every cache line of
// the matrix once for each part that has an element in it: 1024 single columns took 26 ms, a
// transpose of the same matrix 1.3. So narrow parts are copied together. Threads divide the rows;
// in each row the runs of all parts follow one another.
//
// Single columns are transposed in tiles: some parts by the rows of one cache line of a part. The
// inner loop takes kRun rows of one column, as many as a cache has ways: the lines of a column are
// often a power of two apart, and then compete for the same set (Lam, Rothberg and Wolf, "The cache
// performance and optimizations of blocked algorithms", 1991).
namespace weir {

namespace {

constexpr int64_t kLine = 64, kRun = 8;

// Copies elements between the matrix and its parts, in the direction `kSplit`.
template <bool kSplit, class T>
class ColumnCopy {
 public:
  ColumnCopy(const ColumnMatrix& matrix, const ColumnParts& parts)
      : matrix_(static_cast<T*>(matrix.data)), row_(matrix.row), parts_(parts) {}

  // Copies rows [begin, end) of all parts, run by run.
  void CopyRuns(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) {
      for (const ColumnPart& part : parts_) {
        T* const own = static_cast<T*>(part.data) + r * part.width;
        T* const shared = matrix_ + r * row_ + part.begin;
        const T* const from = kSplit ? shared : own;
        T* const to = kSplit ? own : shared;
        if (part.width <= kRun) {
          for (int64_t i = 0; i < part.width; ++i) to[i] = from[i];
        } else {
          CopyRun(from, to, static_cast<size_t>(part.width) * sizeof(T));
        }
      }
    }
  }

  // The same, of parts that are single columns.
  void CopySingles(int64_t begin, int64_t end) const {
    const int64_t count = static_cast<int64_t>(parts_.size());
    for (int64_t r = begin; r < end; r += kTileRows) {
      const int64_t last = std::min(end, r + kTileRows);
      for (int64_t p = 0; p < count; p += kTileParts) {
        const int64_t next = std::min(count, p + kTileParts);
        int64_t k = r;
        for (; k + kRun <= last; k += kRun) CopyTile(p, next, k, kRun);
        if (k < last) CopyTile(p, next, k, last - k);
      }
    }
  }

  static constexpr int64_t kTileRows = std::max<int64_t>(kRun, kLine / sizeof(T));

 private:
  static constexpr int64_t kTileParts = kTileRows;

  // Rows [r, r + n) of parts [first, last).
  void CopyTile(int64_t first, int64_t last, int64_t r, int64_t n) const {
    for (int64_t p = first; p < last; ++p) {
      T* const own = static_cast<T*>(parts_[p].data) + r;
      T* const shared = matrix_ + r * row_ + parts_[p].begin;
      const auto copy = [&](int64_t k) {
        kSplit ? own[k] = shared[k * row_] : shared[k * row_] = own[k];
      };
      if (n == kRun) {
        for (int64_t k = 0; k < kRun; ++k) copy(k);
      } else {
        for (int64_t k = 0; k < n; ++k) copy(k);
      }
    }
  }

  T* const matrix_;
  const int64_t row_;
  const ColumnParts& parts_;
};

bool AreSingle(const ColumnParts& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [](const ColumnPart& part) { return part.width == 1; });
}

template <bool kSplit>
void CopyTogether(ThreadPool& pool, const ColumnMatrix& matrix, const ColumnParts& parts) {
  constexpr double kElementCost = 0.6, kRunCost = 4, kByteCost = 0.05;  // nanoseconds
  const double count = static_cast<double>(parts.size());
  const bool are_single = AreSingle(parts);
  DispatchSize(ElementSize(matrix.dtype), [&]<class T>() {
    const ColumnCopy<kSplit, T> copy(matrix, parts);
    if (are_single) {
      pool.ParallelFor(
          matrix.rows, kElementCost * count,
          [&](int64_t begin, int64_t end) { copy.CopySingles(begin, end); }, copy.kTileRows);
    } else {
      const double bytes = static_cast<double>(matrix.row) * sizeof(T);
      pool.ParallelFor(matrix.rows, kRunCost * count + kByteCost * bytes,
                       [&](int64_t begin, int64_t end) { copy.CopyRuns(begin, end); });
    }
  });
}

template <bool kSplit>
void CopyOneByOne(const KernelContext& c, const ColumnMatrix& matrix, const ColumnParts& parts) {
  for (const ColumnPart& part : parts) {
    void* const shared = static_cast<char*>(matrix.data) +
                         part.begin * static_cast<int64_t>(ElementSize(matrix.dtype));
    StridedCopy copy;
    copy.AddDim(matrix.rows, kSplit ? matrix.row : part.width, kSplit ? part.width : matrix.row);
    copy.AddDim(part.width, 1, 1);
    copy.Run(c, matrix.dtype, kSplit ? shared : part.data, kSplit ? part.data : shared);
  }
}

template <bool kSplit>
void CopyColumns(const KernelContext& c, const ColumnMatrix& matrix, const ColumnParts& parts) {
  constexpr size_t kNarrow = 16384;  // bytes, on the average
  constexpr size_t kFewSingles = 8;  // for which tiles do not pay
  const size_t row_bytes = static_cast<size_t>(matrix.row) * ElementSize(matrix.dtype);
  const bool together = parts.size() > 1 && row_bytes < kNarrow * parts.size() &&
                        matrix.rows >= kRun && IsPlain(matrix.dtype) &&
                        PrimitivesFor(c, matrix.dtype) == nullptr &&
                        !(parts.size() < kFewSingles && AreSingle(parts));
  if (together) {
    CopyTogether<kSplit>(c.pool(), matrix, parts);
  } else {
    CopyOneByOne<kSplit>(c, matrix, parts);
  }
}

}  // namespace

void JoinColumns(const KernelContext& c, const ColumnMatrix& to, const ColumnParts& parts) {
  CopyColumns<false>(c, to, parts);
}

void SplitColumns(const KernelContext& c, const ColumnMatrix& from, const ColumnParts& parts) {
  CopyColumns<true>(c, from, parts);
}

}  // namespace weir
