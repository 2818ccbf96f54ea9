// The microkernels of the float GEMM. A textual header without an include guard, included inside
// each of Highway's target namespaces, where `hn` is hwy::HWY_NAMESPACE.

using FloatTag = hn::ScalableTag<float>;
using Floats = hn::Vec<FloatTag>;

HWY_INLINE int64_t FloatLanes() { return static_cast<int64_t>(hn::Lanes(FloatTag())); }

// The maximum height of a register tile, which is two vectors wide: the registers must also hold
// two vectors of B and one broadcast element of A.
constexpr int kMostTileRows = HWY_MAX_BYTES >= 64 ? 12 : 6;

// Divides rows into register tiles of nearly equal height: a last tile of one row would be bound by
// the latency of its additions.
struct RowTiles {
  explicit RowTiles(int64_t rows)
      : count((rows + kMostTileRows - 1) / kMostTileRows),
        least(rows / count),
        taller(rows % count) {}
  int64_t Height(int64_t tile) const { return tile < taller ? least + 1 : least; }
  int64_t count, least, taller;
};

// The memory that a tile prefetches: starting at `from`, one panel row per `every` iterations.
struct PrefetchRange {
  const float* from;
  int64_t every;
};

// Prefetches two vectors.
HWY_INLINE void Prefetch(const float* from) {
  constexpr int64_t kLine = 16;
  for (int64_t i = 0; i < 2 * FloatLanes(); i += kLine) __builtin_prefetch(from + i);
}

// The epilogue of a register tile: gemm::Epilogue with `bias` at the tile's first column. Null
// bias: no bias and no clamping.
struct TileEpilogue {
  bool adds = false;
  const float* bias = nullptr;
  float low = 0, high = 0;
};

// Propagates NaN: vector min and max return the second operand if the operands are unordered.
HWY_INLINE Floats Clamp(Floats x, Floats low, Floats high) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  x = hn::IfThenElse(hn::Lt(x, low), low, x);
  return hn::IfThenElse(hn::Lt(high, x), high, x);
#else
  return hn::Min(high, hn::Max(low, x));
#endif
}

// Work that the microkernel interleaves with the multiplication.
enum class SideWork {
  kNone,
  kPrefetch,  // its tile of C, and the next panel of B
  kPack,      // a panel of B, on its first use
};

// The unpacked panel that a tile packs, and its row stride.
struct UnpackedPanel {
  const float* from;
  int64_t row;
};

// The microkernel: C[kRows, kVectors vectors] = A[kRows, depth] B[depth, kVectors vectors], or C +=
// it; the sum over `depth` is computed first. Element (r, k) of A is at a[r * row + k] if
// kRowMajorA, else at a[k * step + r]. B's row stride is two vectors, C's is c_row.
template <int kRows, int kVectors, bool kRowMajorA, SideWork kSideWork>
HWY_INLINE void MultiplyTile(const float* HWY_RESTRICT a, int64_t row, int64_t step,
                             const float* HWY_RESTRICT b, int64_t depth, float* HWY_RESTRICT c,
                             int64_t c_row, const TileEpilogue& epilogue, PrefetchRange prefetch,
                             UnpackedPanel unpacked) {
  constexpr bool kPrefetches = kSideWork == SideWork::kPrefetch;
  const FloatTag d;
  Floats sums[kVectors][kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[v][r] = hn::Zero(d);
  }
  if constexpr (kPrefetches) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) Prefetch(c + r * c_row);
  }
  int64_t k = 0, end = depth;
  do {
    if constexpr (kPrefetches) {
      Prefetch(prefetch.from);
      prefetch.from += 2 * FloatLanes();
      end = k + prefetch.every < depth ? k + prefetch.every : depth;
    }
    for (; k < end; ++k, b += 2 * FloatLanes()) {
      Floats right[kVectors];
      if constexpr (kSideWork == SideWork::kPack) {
        // The hardware does not prefetch rows with a large stride.
        constexpr int64_t kRowsAhead = 16;
        Prefetch(unpacked.from + (k + kRowsAhead < depth ? kRowsAhead * unpacked.row : 0));
        for (int v = 0; v < kVectors; ++v) {
          right[v] = hn::LoadU(d, unpacked.from + v * FloatLanes());
          hn::StoreU(right[v], d, const_cast<float*>(b) + v * FloatLanes());
        }
        unpacked.from += unpacked.row;
      } else {
        for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * FloatLanes());
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Floats x = hn::Set(d, kRowMajorA ? a[r * row + k] : a[k * step + r]);
        for (int v = 0; v < kVectors; ++v) sums[v][r] = hn::MulAdd(x, right[v], sums[v][r]);
      }
    }
  } while (kPrefetches && k < depth);
  if (epilogue.adds) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v)
        sums[v][r] = hn::Add(sums[v][r], hn::LoadU(d, c + r * c_row + v * FloatLanes()));
    }
  }
  if (epilogue.bias != nullptr) {
    Floats bias[kVectors];
    for (int v = 0; v < kVectors; ++v) bias[v] = hn::LoadU(d, epilogue.bias + v * FloatLanes());
    const Floats low = hn::Set(d, epilogue.low), high = hn::Set(d, epilogue.high);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v)
        sums[v][r] = Clamp(hn::Add(sums[v][r], bias[v]), low, high);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v][r], d, c + r * c_row + v * FloatLanes());
  }
}

// Dispatches to the microkernel for `rows` rows, up to kMostTileRows.
template <int kVectors, bool kRowMajorA, SideWork kSideWork, int kRows = kMostTileRows>
HWY_INLINE void MultiplyRows(int64_t rows, const float* a, int64_t row, int64_t step,
                             const float* b, int64_t depth, float* c, int64_t c_row,
                             const TileEpilogue& epilogue, PrefetchRange prefetch,
                             UnpackedPanel unpacked = {}) {
  if constexpr (kRows > 0) {
    if (rows != kRows) {
      return MultiplyRows<kVectors, kRowMajorA, kSideWork, kRows - 1>(
          rows, a, row, step, b, depth, c, c_row, epilogue, prefetch, unpacked);
    }
    MultiplyTile<kRows, kVectors, kRowMajorA, kSideWork>(a, row, step, b, depth, c, c_row, epilogue,
                                                         prefetch, unpacked);
  }
}
