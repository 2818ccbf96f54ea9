// The innermost loops of products of floats. A textual header without a guard, included inside each
// of Highway's target namespaces, where `hn` is hwy::HWY_NAMESPACE.

using FloatTag = hn::ScalableTag<float>;
using Floats = hn::Vec<FloatTag>;

HWY_INLINE int64_t FloatLanes() { return static_cast<int64_t>(hn::Lanes(FloatTag())); }

// Rows of a result that are held in registers, two vectors each: besides these there must be room
// for two vectors of B and one element of A.
constexpr int kMostTileRows = HWY_MAX_BYTES >= 64 ? 12 : 6;

// Rows in tiles of nearly the same height: a last one of a row would wait for its additions.
struct Tiles {
  explicit Tiles(int64_t rows)
      : count((rows + kMostTileRows - 1) / kMostTileRows),
        least(rows / count),
        taller(rows % count) {}
  int64_t Height(int64_t tile) const { return tile < taller ? least + 1 : least; }
  int64_t count, least, taller;
};

// What a tile asks for while it is computed: `from` on, a row of a panel in every so many of its
// steps.
struct Ahead {
  const float* from;
  int64_t every;
};

// Asks for two vectors.
HWY_INLINE void Prefetch(const float* from) {
  constexpr int64_t kLine = 16;
  for (int64_t i = 0; i < 2 * FloatLanes(); i += kLine) __builtin_prefetch(from + i);
}

// C[kRows, two vectors] = A[kRows, depth] B[depth, two vectors], or is added to: the sum over
// `depth` by itself first. Element (r, k) of A is at a[r * row + k] if kAlongRows, else at
// a[k * step + r]; C's rows are c_row apart. If kAhead, C is asked for first and what comes next
// meanwhile.
template <int kRows, bool kAlongRows, bool kAdds, bool kAhead>
HWY_INLINE void MultiplyTile(const float* HWY_RESTRICT a, int64_t row, int64_t step,
                             const float* HWY_RESTRICT b, int64_t depth, float* HWY_RESTRICT c,
                             int64_t c_row, Ahead ahead) {
  const FloatTag d;
  Floats left[kRows], right[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    left[r] = right[r] = hn::Zero(d);
  }
  if constexpr (kAhead) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) Prefetch(c + r * c_row);
  }
  int64_t k = 0, end = depth;
  do {
    if constexpr (kAhead) {
      Prefetch(ahead.from);
      ahead.from += 2 * FloatLanes();
      end = k + ahead.every < depth ? k + ahead.every : depth;
    }
    for (; k < end; ++k, b += 2 * FloatLanes()) {
      const Floats b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + FloatLanes());
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Floats x = hn::Set(d, kAlongRows ? a[r * row + k] : a[k * step + r]);
        left[r] = hn::MulAdd(x, b0, left[r]);
        right[r] = hn::MulAdd(x, b1, right[r]);
      }
    }
  } while (kAhead && k < depth);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    float* const to = c + r * c_row;
    hn::StoreU(kAdds ? hn::Add(left[r], hn::LoadU(d, to)) : left[r], d, to);
    float* const next = to + FloatLanes();
    hn::StoreU(kAdds ? hn::Add(right[r], hn::LoadU(d, next)) : right[r], d, next);
  }
}

// The same for up to kMostTileRows rows.
template <bool kAlongRows, bool kAdds, bool kAhead, int kRows = kMostTileRows>
HWY_INLINE void MultiplyRows(int64_t rows, const float* a, int64_t row, int64_t step,
                             const float* b, int64_t depth, float* c, int64_t c_row, Ahead ahead) {
  if constexpr (kRows > 0) {
    if (rows != kRows) {
      return MultiplyRows<kAlongRows, kAdds, kAhead, kRows - 1>(rows, a, row, step, b, depth, c,
                                                                c_row, ahead);
    }
    MultiplyTile<kRows, kAlongRows, kAdds, kAhead>(a, row, step, b, depth, c, c_row, ahead);
  }
}
