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
// a time, to where the elements that a tile takes together lie together. Only where few columns
// would use the copy, and A's are so short that a tile's neighbours find its lines in the cache, is
// it taken as it lies.
//
// All panels pass through the second-level cache once for each block of A, and out of it again if
// they are too many: the tiles of a panel ask for the next one meanwhile, a share each.
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
// Columns of A that are copied at a time. They may lie a multiple of 4 KB apart and fall on one set
// of the first-level cache: as many as it has places.
constexpr int64_t kTogether = 8;
// What is taken as it lies although its columns lie along memory: the columns of B, the rows of A.
constexpr int64_t kFewUses = 64, kShortColumn = 128;
// Tiles ask for what comes next if they are deep, and B's block leaves no room for A's in the
// second-level cache: elsewhere asking takes 1% of the time, and 7% where they are shallow.
bool AsksAhead(int64_t depth, int64_t columns) {
  constexpr int64_t kDeep = 128, kFewFloats = int64_t{1} << 16;
  return depth >= kDeep && depth * columns > kFewFloats;
}
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
  // A line at a time: columns may lie where they push each other out of the cache.
  constexpr int64_t kLine = 16;
  while (i + 4 <= rows) {
    const int64_t begin = i, end = std::min(rows / 4 * 4, begin + kLine);
    for (int64_t c = 0; c < width; c += 4) {
      for (i = begin; i < end; i += 4)
        CopyTransposed4x4(from + c * column + i, column, to + i * width + c, width);
    }
  }
  return i;
}
#endif

// Whole panels of a matrix whose rows lie along memory: some rows at a time from end to end, as the
// processor fetches ahead.
void CopyRows(const float* from, int64_t stride, int64_t rows, int64_t panels, float* to) {
  constexpr int64_t kSome = 8;
  const FloatTag d;
  const int64_t width = 2 * FloatLanes();
  for (int64_t begin = 0; begin < rows; begin += kSome) {
    const int64_t end = std::min(rows, begin + kSome);
    for (int64_t p = 0; p < panels; ++p) {
      for (int64_t i = begin; i < end; ++i) {
        const float* const in = from + i * stride + p * width;
        float* const out = to + (p * rows + i) * width;
        hn::StoreU(hn::LoadU(d, in), d, out);
        hn::StoreU(hn::LoadU(d, in + FloatLanes()), d, out + FloatLanes());
      }
    }
  }
}

void Pack(const Matrix& b, int64_t rows, int64_t first, int64_t columns, float* to) {
  const int64_t width = 2 * FloatLanes();
  const float* from = b.data + first * b.column;
  const int64_t whole = b.column == 1 ? columns / width : 0;
  CopyRows(from, b.row, rows, whole, to);
  from += whole * width;
  to += whole * rows * width;
  for (int64_t j = whole * width; j < columns;
       j += width, to += rows * width, from += width * b.column) {
    const int64_t n = std::min(width, columns - j);
    for (int64_t i = n == width && b.row == 1 ? CopyTransposed(from, b.column, rows, to) : 0;
         i < rows; ++i) {
      for (int64_t c = 0; c < width; ++c)
        to[i * width + c] = c < n ? from[i * b.row + c * b.column] : 0;
    }
  }
}

// A's block in groups of the rows of a tile: [group, depth, rows of the group]. Groups have a gap
// between them (to_row is more than depth), or they would share a few places of the cache.
void PackRows(const float* from, int64_t column, int64_t rows, int64_t depth, int64_t to_row,
              float* to) {
  const Tiles tiles(rows);
  for (int64_t k = 0; k < depth; k += kTogether, from += kTogether * column) {
    const int64_t some = std::min(kTogether, depth - k);
    for (int64_t t = 0, first = 0; t < tiles.count; first += tiles.Height(t++)) {
      const int64_t height = tiles.Height(t);
      const float* in = from + first;
      float* out = to + first * to_row + k * height;
      for (int64_t i = 0; i < some; ++i, in += column, out += height) {
        if (height == kMostTileRows) {
          std::memcpy(out, in, kMostTileRows * sizeof(float));
        } else {
          for (int64_t r = 0; r < height; ++r) out[r] = in[r];
        }
      }
    }
  }
}

// A block of A: the tile that begins at `row` takes it from data + row * row_step, one column after
// the other a `step` apart; 0: as many as the tile has rows.
struct Left {
  const float* data;
  int64_t row_step, step;
};

template <bool kAlongRows, bool kAhead>
void MultiplyBlock(const Left& a, int64_t rows, int64_t depth, const float* packed,
                   int64_t panel_floats, int64_t columns, float* c, int64_t c_row, TileEnd end) {
  HWY_ALIGN float tile[2 * hn::MaxLanes(FloatTag()) * kMostTileRows];
  const int64_t width = 2 * FloatLanes();
  const Tiles tiles(rows);
  const int64_t share = depth / tiles.count * width;
  const float* const bias = end.bias;
  for (int64_t j = 0; j < columns; j += width, packed += panel_floats) {
    const int64_t n = std::min(width, columns - j);
    Ahead ahead = {packed + panel_floats, tiles.count};
    if (bias != nullptr) end.bias = bias + j;
    for (int64_t t = 0, first = 0; t < tiles.count; ++t, ahead.from += share) {
      const int64_t height = tiles.Height(t), step = a.step == 0 ? height : a.step;
      const float* const from = a.data + first * a.row_step;
      float* const to = c + first * c_row + j;
      first += height;
      if (n == width) {
        MultiplyRows<2, kAlongRows, kAhead>(height, from, a.row_step, step, packed, depth, to,
                                            c_row, end, ahead);
        continue;
      }
      if (n == FloatLanes()) {
        MultiplyRows<1, kAlongRows, false>(height, from, a.row_step, step, packed, depth, to, c_row,
                                           end, {});
        continue;
      }
      MultiplyRows<2, kAlongRows, kAhead>(height, from, a.row_step, step, packed, depth, tile,
                                          width, {}, ahead);
      for (int64_t r = 0; r < height; ++r) {
        for (int64_t i = 0; i < n; ++i) {
          float y = tile[r * width + i] + (end.adds ? to[r * c_row + i] : 0);
          if (bias != nullptr) {
            y += end.bias[i];
            y = y < end.low ? end.low : end.high < y ? end.high : y;
          }
          to[r * c_row + i] = y;
        }
      }
    }
  }
}

void Multiply(const Matrix& a, int64_t rows, int64_t depth, const float* packed, int64_t columns,
              bool adds, float* c, int64_t c_row, float* scratch, const Finish& finish) {
  const int64_t panel_floats = depth * 2 * FloatLanes();
  const bool straight = a.column == 1;
  TileEnd end = {adds, nullptr, finish.low, finish.high};
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t deep = std::min(kDepth, depth - k);
    const bool ahead = AsksAhead(deep, columns);
    const auto run = straight
                         ? (ahead ? &MultiplyBlock<true, true> : &MultiplyBlock<true, false>)
                         : (ahead ? &MultiplyBlock<false, true> : &MultiplyBlock<false, false>);
    if (k + deep == depth) end.bias = finish.bias;
    for (int64_t i = 0; i < rows; i += kRows) {
      const int64_t high = std::min(kRows, rows - i);
      const float* const from = a.data + i * a.row + k * a.column;
      Left left = {from, a.row, a.column};
      if (!straight && (columns > kFewUses || a.column > kShortColumn)) {
        left = {scratch, deep + kGap, 0};
        PackRows(from, a.column, high, deep, left.row_step, scratch);
      } else if (straight && columns >= kFewColumns && RowsCollide(a)) {
        left = {scratch, deep + kGap, 1};
        for (int64_t r = 0; r < high; ++r)
          std::copy_n(from + r * a.row, deep, scratch + r * left.row_step);
      }
      run(left, high, deep, packed + k * 2 * FloatLanes(), panel_floats, columns, c + i * c_row,
          c_row, end);
    }
    end.adds = true;
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
              bool adds, float* c, int64_t c_row, float* scratch, const Finish& finish) {
  HWY_DYNAMIC_DISPATCH(Multiply)
  (a, rows, depth, packed, columns, adds, c, c_row, scratch, finish);
}

}  // namespace weir::gemm
#endif  // HWY_ONCE
