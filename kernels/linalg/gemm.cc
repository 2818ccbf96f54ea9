#include "weir/kernels/linalg/gemm.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "weir/core/tensor/cancellation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linalg/gemm.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// The scheme of K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication",
// 2008, without its packed A: a register tile of the result has six rows of two vectors; a panel of
// B, two vectors wide and kDepth long, stays in the L1 cache; and kRows rows of A stay in the L2
// cache, from which elements are broadcast one by one. If A is column-major, each of its columns
// would touch another cache line or page: A is packed, a block at a time, so that the elements that
// a tile uses together are contiguous. A is used in place only if few columns of B would use the
// packed copy and A's columns are so short that a tile's neighbors find its lines in the cache.
//
// All panels pass through the L2 cache once per block of A, and are evicted if there are too many:
// meanwhile the tiles of a panel prefetch the next one, each its share.
HWY_BEFORE_NAMESPACE();
namespace weir::gemm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/partial_vectors-inl.h"
#include "weir/kernels/linalg/gemm-inl.h"

constexpr int64_t kDepth = 512, kRows = 96;

int64_t PanelWidth() { return 2 * FloatLanes(); }
// Rows of A with a stride that is a multiple of 2 KB map to one or two sets of the L1 cache, so six
// or all rows of a tile compete for one set with B's panel: this exceeds eight ways. If the cache
// has more ways, A is used in place.
bool HasSetConflicts(const Matrix& a) {
  static const bool few_places = sysconf(_SC_LEVEL1_DCACHE_ASSOC) <= 8;
  return kMostTileRows > 8 && few_places && a.row % 512 == 0;
}
// With fewer columns of B, copying such rows does not pay off.
constexpr int64_t kMinColumnsToCopy = 64;
// Padding between the rows of a packed block, in elements.
constexpr int64_t kGap = 16;
// Columns of A that are copied at a time. With a stride that is a multiple of 4 KB they map to one
// set of the L1 cache: as many as it has ways.
constexpr int64_t kColumnsPerPack = 8;
// The limits up to which a column-major A is used in place: the columns of B, and the rows of A.
constexpr int64_t kMaxInPlaceColumns = 64, kMaxInPlaceRows = 128;
// Tiles prefetch if they are deep and B's block leaves no room for A's in the L2 cache.
// Elsewhere prefetching costs 1% of the time, and 7% where they are shallow. AVX-512, with panels
// twice as wide, has no registers left for it.
bool ShouldPrefetch(int64_t depth, int64_t columns) {
  constexpr int64_t kDeep = 128, kFewFloats = int64_t{1} << 16;
  return HWY_MAX_BYTES < 64 && depth >= kDeep && depth * columns > kFewFloats;
}
int64_t BlockFloats(const Matrix& a, int64_t rows, int64_t depth) {
  if (a.column == 1 && !HasSetConflicts(a)) return 0;
  return std::min(rows, kRows) * (std::min(depth, kDepth) + kGap);
}

HWY_INLINE Floats LoadTail(const float* from, int64_t n) {
  return LoadPartial(FloatTag(), from, n, 0.f);
}
HWY_INLINE void StoreTail(Floats v, float* to, int64_t n) { StorePartial(FloatTag(), v, to, n); }

// Packs blocks of 4 rows of a panel of a column-major matrix by transposing; returns the number of
// rows packed.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE int64_t PackTransposed(const float*, int64_t, int64_t, float*) { return 0; }
#else
HWY_INLINE void PackTransposed4x4(const float* from, int64_t stride, float* to, int64_t to_stride) {
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
HWY_INLINE int64_t PackTransposed(const float* from, int64_t column, int64_t rows, float* to) {
  const int64_t width = 2 * FloatLanes();
  int64_t i = 0;
  // One cache line at a time: the columns may evict each other from the cache.
  constexpr int64_t kLine = 16;
  while (i + 4 <= rows) {
    const int64_t begin = i, end = std::min(rows / 4 * 4, begin + kLine);
    for (int64_t c = 0; c < width; c += 4) {
      for (i = begin; i < end; i += 4)
        PackTransposed4x4(from + c * column + i, column, to + i * width + c, width);
    }
  }
  return i;
}
#endif

// Packs whole panels of a row-major matrix: a few rows at a time over their whole length, which
// suits the hardware prefetcher.
void PackRowMajor(const float* from, int64_t stride, int64_t rows, int64_t panels, float* to) {
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

// Packs the last panel of such a matrix, with n columns, padded with zeros.
void PackRowMajorTail(const float* from, int64_t stride, int64_t rows, int64_t n, float* to) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  for (int64_t i = 0; i < rows; ++i, from += stride, to += 2 * lanes) {
    hn::StoreU(LoadTail(from, n), d, to);
    hn::StoreU(n <= lanes ? hn::Zero(d) : LoadTail(from + lanes, n - lanes), d, to + lanes);
  }
}

void PackPanels(const Matrix& b, int64_t rows, int64_t first, int64_t columns, float* to) {
  const int64_t width = 2 * FloatLanes();
  const float* from = b.data + first * b.column;
  const int64_t whole = b.column == 1 ? columns / width : 0;
  PackRowMajor(from, b.row, rows, whole, to);
  from += whole * width;
  to += whole * rows * width;
  if (b.column == 1) {
    if (whole * width < columns) PackRowMajorTail(from, b.row, rows, columns - whole * width, to);
    return;
  }
  for (int64_t j = 0; j < columns; j += width, to += rows * width, from += width * b.column) {
    const int64_t n = std::min(width, columns - j);
    for (int64_t i = n == width && b.row == 1 ? PackTransposed(from, b.column, rows, to) : 0;
         i < rows; ++i) {
      for (int64_t c = 0; c < width; ++c)
        to[i * width + c] = c < n ? from[i * b.row + c * b.column] : 0;
    }
  }
}

// Packs A's block in groups of one tile's rows: [group, depth, rows of the group]. There is padding
// between the groups (to_row exceeds depth); without it they would share a few cache sets.
void PackA(const float* from, int64_t column, int64_t rows, int64_t depth, int64_t to_row,
           float* to) {
  const RowTiles tiles(rows);
  for (int64_t k = 0; k < depth; k += kColumnsPerPack, from += kColumnsPerPack * column) {
    const int64_t some = std::min(kColumnsPerPack, depth - k);
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

// A block of A: the tile that begins at row `r` reads it from data + r * row_step, with column
// stride `step`. A `step` of 0 means the tile's height.
struct BlockOfA {
  const float* data;
  int64_t row_step, step;
};

// Stores the first n columns of a tile that is two vectors wide.
HWY_INLINE void StoreColumns(const float* tile, int64_t rows, int64_t n,
                             const TileEpilogue& epilogue, float* c, int64_t c_row) {
  const FloatTag d;
  const Floats low = hn::Set(d, epilogue.low), high = hn::Set(d, epilogue.high);
  for (int64_t first = 0; first < n; first += FloatLanes()) {
    const int64_t some = n - first;
    const Floats bias =
        epilogue.bias == nullptr ? hn::Zero(d) : LoadTail(epilogue.bias + first, some);
    for (int64_t r = 0; r < rows; ++r) {
      float* const to = c + r * c_row + first;
      Floats y = hn::LoadU(d, tile + r * 2 * FloatLanes() + first);
      if (epilogue.adds) y = hn::Add(y, LoadTail(to, some));
      if (epilogue.bias != nullptr) y = Clamp(hn::Add(y, bias), low, high);
      StoreTail(y, to, some);
    }
  }
}

// `b` holds the unpacked panels for SideWork::kPack; otherwise it is empty.
template <bool kRowMajorA, SideWork kSideWork>
void MultiplyBlock(const BlockOfA& a, int64_t rows, int64_t depth, const Matrix& b,
                   const float* packed, int64_t panel_floats, int64_t columns, float* c,
                   int64_t c_row, TileEpilogue epilogue) {
  HWY_ALIGN float tile[2 * hn::MaxLanes(FloatTag()) * kMostTileRows];
  const int64_t width = 2 * FloatLanes();
  const RowTiles tiles(rows);
  const int64_t share = depth / tiles.count * width;
  const float* const bias = epilogue.bias;
  for (int64_t j = 0; j < columns; j += width, packed += panel_floats) {
    const int64_t n = std::min(width, columns - j);
    PrefetchRange prefetch = {packed + panel_floats, tiles.count};
    if (bias != nullptr) epilogue.bias = bias + j;
    const bool packs = kSideWork == SideWork::kPack && n == width;
    if (kSideWork == SideWork::kPack && !packs)
      PackPanels(b, depth, j, n, const_cast<float*>(packed));
    for (int64_t t = 0, first = 0; t < tiles.count; ++t, prefetch.from += share) {
      const int64_t height = tiles.Height(t), step = a.step == 0 ? height : a.step;
      const float* const from = a.data + first * a.row_step;
      float* const to = c + first * c_row + j;
      first += height;
      if (packs && t == 0) {
        MultiplyRows<2, kRowMajorA, SideWork::kPack>(height, from, a.row_step, step, packed, depth,
                                                     to, c_row, epilogue, {}, {b.data + j, b.row});
        continue;
      }
      constexpr SideWork kRest = kSideWork == SideWork::kPack ? SideWork::kNone : kSideWork;
      if (n == width) {
        MultiplyRows<2, kRowMajorA, kRest>(height, from, a.row_step, step, packed, depth, to, c_row,
                                           epilogue, prefetch);
        continue;
      }
      if (n == FloatLanes()) {
        MultiplyRows<1, kRowMajorA, SideWork::kNone>(height, from, a.row_step, step, packed, depth,
                                                     to, c_row, epilogue, {});
        continue;
      }
      MultiplyRows<2, kRowMajorA, kRest>(height, from, a.row_step, step, packed, depth, tile, width,
                                         {}, prefetch);
      StoreColumns(tile, height, n, epilogue, to, c_row);
    }
  }
}

// Packs `unpacked` during the multiplication, unless it is null.
void Multiply(const Matrix& a, int64_t rows, int64_t depth, const Matrix* unpacked,
              const float* packed, int64_t columns, bool adds, float* c, int64_t c_row,
              float* scratch, const Epilogue& epilogue) {
  const int64_t panel_floats = depth * 2 * FloatLanes();
  const bool row_major = a.column == 1;
  TileEpilogue tile_epilogue = {adds, nullptr, epilogue.low, epilogue.high};
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t deep = std::min(kDepth, depth - k);
    const bool prefetch = ShouldPrefetch(deep, columns);
    using enum SideWork;
    const auto run =
        row_major ? (prefetch ? &MultiplyBlock<true, kPrefetch> : &MultiplyBlock<true, kNone>)
                  : (prefetch ? &MultiplyBlock<false, kPrefetch> : &MultiplyBlock<false, kNone>);
    const auto first_run = row_major ? &MultiplyBlock<true, kPack> : &MultiplyBlock<false, kPack>;
    if (k + deep == depth) tile_epilogue.bias = epilogue.bias;
    for (int64_t i = 0; i < rows; i += kRows) {
      ThrowIfCancelled();
      const int64_t high = std::min(kRows, rows - i);
      const float* const from = a.data + i * a.row + k * a.column;
      BlockOfA left = {from, a.row, a.column};
      if (!row_major && (columns > kMaxInPlaceColumns || a.column > kMaxInPlaceRows)) {
        left = {scratch, deep + kGap, 0};
        PackA(from, a.column, high, deep, left.row_step, scratch);
      } else if (row_major && columns >= kMinColumnsToCopy && HasSetConflicts(a)) {
        left = {scratch, deep + kGap, 1};
        for (int64_t r = 0; r < high; ++r)
          std::copy_n(from + r * a.row, deep, scratch + r * left.row_step);
      }
      const bool packs = i == 0 && unpacked != nullptr;
      const Matrix b =
          packs ? Matrix{unpacked->data + k * unpacked->row, unpacked->row, 1} : Matrix();
      (packs ? first_run : run)(left, high, deep, b, packed + k * 2 * FloatLanes(), panel_floats,
                                columns, c + i * c_row, c_row, tile_epilogue);
    }
    tile_epilogue.adds = true;
  }
}

// Products with few rows are bound by reading B, and packing B would take longer still. If B is
// row-major, a few of its rows at a time are scaled and added to the rows of C, which stay in the
// L1 cache. If B is column-major, each element of C is a dot product. Two rows of A are processed
// at once, as many as fit the registers.

// C[kRows, n] += A[kRows, kDepth] B[kDepth, n].
template <int kRows, int kDepth>
HWY_INLINE void AddScaledRows(const Matrix& a, const float* a_data, const float* b, int64_t b_row,
                              int64_t n, float* c, int64_t c_row) {
  const FloatTag d;
  Floats x[kRows][kDepth];
  for (int r = 0; r < kRows; ++r) {
    for (int k = 0; k < kDepth; ++k) x[r][k] = hn::Set(d, a_data[r * a.row + k * a.column]);
  }
  int64_t j = 0;
  for (; j + FloatLanes() <= n; j += FloatLanes()) {
    Floats y[kRows];
    for (int r = 0; r < kRows; ++r) y[r] = hn::LoadU(d, c + r * c_row + j);
#pragma GCC unroll 8
    for (int k = 0; k < kDepth; ++k) {
      const Floats row = hn::LoadU(d, b + k * b_row + j);
      for (int r = 0; r < kRows; ++r) y[r] = hn::MulAdd(x[r][k], row, y[r]);
    }
    for (int r = 0; r < kRows; ++r) hn::StoreU(y[r], d, c + r * c_row + j);
  }
  if (j == n) return;
  for (int r = 0; r < kRows; ++r) {
    float* const to = c + r * c_row + j;
    Floats y = LoadTail(to, n - j);
    for (int k = 0; k < kDepth; ++k) y = hn::MulAdd(x[r][k], LoadTail(b + k * b_row + j, n - j), y);
    StoreTail(y, to, n - j);
  }
}

void MultiplyRowMajor(const Matrix& a, int64_t rows, int64_t depth, const float* b, int64_t b_row,
                      int64_t columns, float* c, int64_t c_row) {
  constexpr int kSome = 4, kMore = 8;
  for (int64_t k = 0, some = rows == 1 ? kMore : kSome; k < depth; k += some) {
    while (k + some > depth) some = some == kMore ? kSome : 1;
    for (int64_t i = 0; i < rows;) {
      const bool two = i + 2 <= rows;
      const float* const at = a.data + i * a.row + k * a.column;
      const auto add = some == 1       ? (two ? &AddScaledRows<2, 1> : &AddScaledRows<1, 1>)
                       : some == kMore ? &AddScaledRows<1, kMore>
                       : two           ? &AddScaledRows<2, kSome>
                                       : &AddScaledRows<1, kSome>;
      add(a, at, b + k * b_row, b_row, columns, c + i * c_row, c_row);
      i += two ? 2 : 1;
    }
  }
}

// Accumulates the products at k of rows of A and columns of B into sums[kRows][kColumns]: a whole
// vector, or a tail of `some` elements.
template <int kRows, int kColumns, bool kWhole>
HWY_INLINE void AccumulateDotProducts(const float* a, int64_t a_row, const float* b,
                                      int64_t b_column, int64_t some,
                                      Floats (&sums)[kRows][kColumns]) {
  const FloatTag d;
  Floats x[kRows];
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
    const float* const from = a + r * a_row;
    x[r] = kWhole ? hn::LoadU(d, from) : LoadTail(from, some);
  }
#pragma GCC unroll 8
  for (int j = 0; j < kColumns; ++j) {
    const float* const from = b + j * b_column;
    const Floats y = kWhole ? hn::LoadU(d, from) : LoadTail(from, some);
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) sums[r][j] = hn::MulAdd(x[r], y, sums[r][j]);
  }
}

// C[kRows, kColumns] = or += dot products of a row-major A and a column-major B.
template <int kRows, int kColumns>
HWY_INLINE void SumAlongColumns(const float* a, int64_t a_row, const float* b, int64_t b_column,
                                int64_t depth, bool adds, float* c, int64_t c_row) {
  const FloatTag d;
  Floats sums[kRows][kColumns];
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) sums[r][j] = hn::Zero(d);
  }
  int64_t k = 0;
  for (; k + FloatLanes() <= depth; k += FloatLanes())
    AccumulateDotProducts<kRows, kColumns, true>(a + k, a_row, b + k, b_column, depth - k, sums);
  if (k < depth)
    AccumulateDotProducts<kRows, kColumns, false>(a + k, a_row, b + k, b_column, depth - k, sums);
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) {
      const float sum = hn::GetLane(hn::SumOfLanes(d, sums[r][j]));
      c[r * c_row + j] = sum + (adds ? c[r * c_row + j] : 0);
    }
  }
}

void MultiplyColumnMajor(const float* a, int64_t a_row, int64_t rows, int64_t depth, const float* b,
                         int64_t b_column, int64_t columns, bool adds, float* c, int64_t c_row) {
  constexpr int kSome = 4;
  for (int64_t j = 0; j < columns;) {
    const bool some = j + kSome <= columns;
    for (int64_t i = 0; i < rows;) {
      const bool two = i + 2 <= rows;
      const auto sum = some ? (two ? &SumAlongColumns<2, kSome> : &SumAlongColumns<1, kSome>)
                            : (two ? &SumAlongColumns<2, 1> : &SumAlongColumns<1, 1>);
      sum(a + i * a_row, a_row, b + j * b_column, b_column, depth, adds, c + i * c_row + j, c_row);
      i += two ? 2 : 1;
    }
    j += some ? kSome : 1;
  }
}

// C[rows, n] = or += sums.
void AddRows(const float* sums, int64_t rows, int64_t n, bool adds, float* c, int64_t c_row) {
  const FloatTag d;
  for (int64_t r = 0; r < rows; ++r, sums += n, c += c_row) {
    int64_t j = 0;
    for (; j + FloatLanes() <= n; j += FloatLanes()) {
      const Floats y = hn::LoadU(d, sums + j);
      hn::StoreU(adds ? hn::Add(y, hn::LoadU(d, c + j)) : y, d, c + j);
    }
    for (; j < n; ++j) c[j] = sums[j] + (adds ? c[j] : 0);
  }
}

void MultiplyFewRows(const Matrix& a, int64_t rows, int64_t depth, const Matrix& b, int64_t columns,
                     bool adds, float* c, int64_t c_row) {
  if (b.column != 1) {
    if (a.column == 1) {
      MultiplyColumnMajor(a.data, a.row, rows, depth, b.data, b.column, columns, adds, c, c_row);
      return;
    }
    std::vector<float> row_major_a(static_cast<size_t>(rows * depth));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < depth; ++k)
        row_major_a[i * depth + k] = a.data[i * a.row + k * a.column];
    }
    MultiplyColumnMajor(row_major_a.data(), depth, rows, depth, b.data, b.column, columns, adds, c,
                        c_row);
    return;
  }
  // Processes as many columns at a time as keep C in the cache; long rows are read faster. Sums
  // over more than kDepth elements are made of partial sums, which bounds the rounding error.
  constexpr int64_t kCachedFloats = 8192;
  const int64_t wide = std::max<int64_t>(1, kCachedFloats / std::max<int64_t>(1, rows));
  const bool parts = adds || depth > kDepth;
  std::vector<float> sums(parts ? static_cast<size_t>(rows * std::min(wide, columns)) : 0);
  for (int64_t j = 0; j < columns; j += wide) {
    const int64_t n = std::min(wide, columns - j);
    if (!parts) {
      for (int64_t i = 0; i < rows; ++i) std::fill_n(c + i * c_row + j, n, 0.0f);
      MultiplyRowMajor(a, rows, depth, b.data + j, b.row, n, c + j, c_row);
      continue;
    }
    for (int64_t k = 0; k < depth; k += kDepth) {
      const Matrix left = {a.data + k * a.column, a.row, a.column};
      std::fill(sums.begin(), sums.end(), 0.0f);
      MultiplyRowMajor(left, rows, std::min(kDepth, depth - k), b.data + k * b.row + j, b.row, n,
                       sums.data(), n);
      AddRows(sums.data(), rows, n, adds || k > 0, c + j, c_row);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::gemm {

HWY_EXPORT(PanelWidth);
HWY_EXPORT(BlockFloats);
HWY_EXPORT(PackPanels);
HWY_EXPORT(Multiply);
HWY_EXPORT(MultiplyFewRows);

int64_t PanelColumns() { return HWY_DYNAMIC_DISPATCH(PanelWidth)(); }
int64_t ScratchFloats(const Matrix& a, int64_t rows, int64_t depth) {
  return HWY_DYNAMIC_DISPATCH(BlockFloats)(a, rows, depth);
}
void Pack(const Matrix& b, int64_t rows, int64_t first, int64_t columns, float* packed) {
  HWY_DYNAMIC_DISPATCH(PackPanels)(b, rows, first, columns, packed);
}
void Multiply(const Matrix& a, int64_t rows, int64_t depth, const float* packed, int64_t columns,
              bool adds, float* c, int64_t c_row, float* scratch, const Epilogue& epilogue) {
  HWY_DYNAMIC_DISPATCH(Multiply)
  (a, rows, depth, nullptr, packed, columns, adds, c, c_row, scratch, epilogue);
}

void PackAndMultiply(const Matrix& a, int64_t rows, int64_t depth, const Matrix& b, int64_t first,
                     int64_t columns, float* packed, bool adds, float* c, int64_t c_row,
                     float* scratch, const Epilogue& epilogue) {
  if (b.column != 1) {
    Pack(b, depth, first, columns, packed);
    return Multiply(a, rows, depth, packed, columns, adds, c, c_row, scratch, epilogue);
  }
  const Matrix unpacked = {b.data + first, b.row, 1};
  HWY_DYNAMIC_DISPATCH(Multiply)
  (a, rows, depth, &unpacked, packed, columns, adds, c, c_row, scratch, epilogue);
}

void MultiplyFewRows(const Matrix& a, int64_t rows, int64_t depth, const Matrix& b, int64_t columns,
                     bool adds, float* c, int64_t c_row) {
  HWY_DYNAMIC_DISPATCH(MultiplyFewRows)(a, rows, depth, b, columns, adds, c, c_row);
}

}  // namespace weir::gemm
#endif  // HWY_ONCE
