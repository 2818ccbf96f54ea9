#include "weir/kernels/gemm.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm.cc"
#include "weir/kernels/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// The scheme is that of K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008, without its packed A: a tile of the result, six rows of two vectors, stays
// in registers; a panel of B, two vectors wide and kDepth long, in the first-level cache; and kRows
// rows of A in the second-level one, from where elements are broadcast one by one. A whose columns
// lie along memory would touch a cache line, or a page, for each of them: it is copied, a block at
// a time, to where the elements that a tile takes together lie together.
HWY_BEFORE_NAMESPACE();
namespace weir::gemm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/gemm-inl.h"

constexpr int64_t kDepth = 512, kRows = 96;

int64_t PanelWidth() { return 2 * FloatLanes(); }
// The rows of a tile fall on one or two sets of the first-level cache, which have eight places
// each, and B's panel passes through them too.
bool RowsCollide(const Matrix& a) { return kMostTileRows > 8 && a.row % 512 == 0; }
// Columns of B, below which such rows are not worth a copy.
constexpr int64_t kFewColumns = 64;
// Besides a block's elements there are some between two rows.
constexpr int64_t kGap = 16;
// Columns of A that are asked for before they are copied.
constexpr int64_t kColumnsAhead = 8;
int64_t BlockFloats(const Matrix& a, int64_t rows, int64_t depth) {
  if (a.column == 1 && !RowsCollide(a)) return 0;
  return std::min(rows, kRows) * (std::min(depth, kDepth) + kGap);
}

// Copies whole blocks of 4 rows of the panel from a matrix with rows along memory; returns how many
// rows that were.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE int64_t CopyTransposed(const float*, int64_t, int64_t, float*) { return 0; }
#else
HWY_INLINE void CopyTransposed4x4(const float* from, int64_t stride, float* to, int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + stride);
  const auto r2 = hn::LoadU(d, from + 2 * stride), r3 = hn::LoadU(d, from + 3 * stride);
  const hn::Repartition<double, decltype(d)> pairs;
  const auto a = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto b = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto e = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto f = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, a, b)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, a, b)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, e, f)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, e, f)), d, to + 3 * to_stride);
}
HWY_INLINE int64_t CopyTransposed(const float* from, int64_t column, int64_t rows, float* to) {
  const int64_t width = 2 * FloatLanes();
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    for (int64_t c = 0; c < width; c += 4)
      CopyTransposed4x4(from + c * column + i, column, to + i * width + c, width);
  }
  return i;
}
#endif

void Pack(const Matrix& b, int64_t rows, int64_t first, int64_t columns, float* to) {
  const FloatTag d;
  const int64_t width = 2 * FloatLanes();
  const float* from = b.data + first * b.column;
  for (int64_t j = 0; j < columns; j += width, to += rows * width, from += width * b.column) {
    const int64_t n = std::min(width, columns - j);
    int64_t i = 0;
    if (n == width && b.column == 1) {
      for (; i < rows; ++i) {
        hn::StoreU(hn::LoadU(d, from + i * b.row), d, to + i * width);
        hn::StoreU(hn::LoadU(d, from + i * b.row + FloatLanes()), d, to + i * width + FloatLanes());
      }
    } else if (n == width && b.row == 1) {
      i = CopyTransposed(from, b.column, rows, to);
    }
    for (; i < rows; ++i) {
      for (int64_t c = 0; c < width; ++c) {
        to[i * width + c] = c < n ? from[i * b.row + c * b.column] : 0;
      }
    }
  }
}

// A's block in groups of the rows of a tile: [group, depth, rows of the group]. A column of the
// block is read from end to end while its lines are there: columns may lie a page apart. Groups
// have a gap between them (to_row is more than depth), or they would share a few places of the
// cache.
void PackRows(const float* from, int64_t column, int64_t rows, int64_t depth, int64_t blocks,
              int64_t to_row, float* to) {
  int64_t ends[kRows];  // of groups
  for (int64_t b = 0; b < blocks; ++b) ends[b] = rows * (b + 1) / blocks;
  for (int64_t k = 0; k < depth; ++k, from += column) {
    if (k + kColumnsAhead < depth) {
      const float* const ahead = from + kColumnsAhead * column;
      for (int64_t r = 0; r < rows; r += 16) __builtin_prefetch(ahead + r);
    }
    int64_t first = 0;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t height = ends[b] - first;
      float* const group = to + first * to_row + k * height;
      if (height == kMostTileRows) {
        std::memcpy(group, from + first, kMostTileRows * sizeof(float));
      } else {
        for (int64_t r = 0; r < height; ++r) group[r] = from[first + r];
      }
      first = ends[b];
    }
  }
}

template <bool kAlongRows, bool kAdds>
HWY_INLINE void MultiplyBlock(const float* a, int64_t a_row, int64_t rows, int64_t depth,
                              const float* packed, int64_t panel_floats, int64_t columns, float* c,
                              int64_t c_row) {
  HWY_ALIGN float tile[2 * hn::MaxLanes(FloatTag()) * kMostTileRows];
  const int64_t width = 2 * FloatLanes();
  const int64_t blocks = (rows + kMostTileRows - 1) / kMostTileRows;
  for (int64_t j = 0; j < columns; j += width, packed += panel_floats) {
    const int64_t n = std::min(width, columns - j);
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t first = rows * b / blocks, height = rows * (b + 1) / blocks - first;
      const float* const from = a + first * a_row;
      float* const to = c + first * c_row + j;
      if (n == width) {
        MultiplyRows<kAlongRows, kAdds>(height, from, a_row, height, packed, depth, to, c_row);
        continue;
      }
      MultiplyRows<kAlongRows, false>(height, from, a_row, height, packed, depth, tile, width);
      for (int64_t r = 0; r < height; ++r) {
        for (int64_t i = 0; i < n; ++i)
          to[r * c_row + i] = tile[r * width + i] + (kAdds ? to[r * c_row + i] : 0);
      }
    }
  }
}

void Multiply(const Matrix& a, int64_t rows, int64_t depth, const float* packed, int64_t columns,
              bool adds, float* c, int64_t c_row, float* scratch) {
  const int64_t panel_floats = depth * 2 * FloatLanes();
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t deep = std::min(kDepth, depth - k);
    const float* const b = packed + k * 2 * FloatLanes();
    for (int64_t i = 0; i < rows; i += kRows) {
      const int64_t high = std::min(kRows, rows - i);
      const float* from = a.data + i * a.row + k * a.column;
      float* const to = c + i * c_row;
      const bool straight = a.column == 1;
      int64_t a_row = a.row;
      if (!straight) {
        a_row = deep + kGap;
        PackRows(from, a.column, high, deep, (high + kMostTileRows - 1) / kMostTileRows, a_row,
                 scratch);
        from = scratch;
      } else if (columns >= kFewColumns && RowsCollide(a)) {
        a_row = deep + kGap;
        for (int64_t r = 0; r < high; ++r) std::copy_n(from + r * a.row, deep, scratch + r * a_row);
        from = scratch;
      }
      const auto run = straight
                           ? (adds ? &MultiplyBlock<true, true> : &MultiplyBlock<true, false>)
                           : (adds ? &MultiplyBlock<false, true> : &MultiplyBlock<false, false>);
      run(from, a_row, high, deep, b, panel_floats, columns, to, c_row);
    }
    adds = true;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::gemm {

HWY_EXPORT(PanelWidth);
HWY_EXPORT(BlockFloats);
HWY_EXPORT(Pack);
HWY_EXPORT(Multiply);

int64_t PanelColumns() { return HWY_DYNAMIC_DISPATCH(PanelWidth)(); }
int64_t ScratchFloats(const Matrix& a, int64_t rows, int64_t depth) {
  return HWY_DYNAMIC_DISPATCH(BlockFloats)(a, rows, depth);
}
void Pack(const Matrix& b, int64_t rows, int64_t first, int64_t columns, float* packed) {
  HWY_DYNAMIC_DISPATCH(Pack)(b, rows, first, columns, packed);
}
void Multiply(const Matrix& a, int64_t rows, int64_t depth, const float* packed, int64_t columns,
              bool adds, float* c, int64_t c_row, float* scratch) {
  HWY_DYNAMIC_DISPATCH(Multiply)
  (a, rows, depth, packed, columns, adds, c, c_row, scratch);
}

}  // namespace weir::gemm
#endif  // HWY_ONCE
