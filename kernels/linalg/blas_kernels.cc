#include <algorithm>
#include <complex>

#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/linalg/blas.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linalg/blas_kernels.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// All loops are written once for the four element types, over Vector<T>: the lanes of a complex
// vector are two registers, of the real and the imaginary parts, so that a product takes four
// multiply-adds and no shuffles.
//
// The product follows K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008. A register tile of C is one or two vectors high and up to kTileColumns
// wide: each step of `k` loads the vectors of A and broadcasts one element of B after the other.
// Both operands are packed in the order in which the tiles read them, with the strides,
// conjugations and halves of complex numbers resolved: a panel of B stays in the L1 cache and a
// block of A in the L2 cache. Products with few columns, or so small that packing would take
// longer than the product, are linear combinations of A's columns.
//
// Matrices times vectors are bound by loads: four columns are processed at once, which loads and
// stores the other vector a quarter as often; add_both serves symmetric matrices, each element of
// which is loaded once for both triangles.
HWY_BEFORE_NAMESPACE();
namespace weir::blas {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/partial_vectors-inl.h"

// A vector of elements, and how many rows of it and columns a register tile has.
template <class T>
struct Vector {
  using Tag = hn::ScalableTag<T>;
  static constexpr int kTileVectors = 2, kTileColumns = HWY_MAX_BYTES >= 64 ? 12 : 6;
  static HWY_INLINE int64_t Size() { return static_cast<int64_t>(hn::Lanes(Tag())); }

  static HWY_INLINE Vector Set(T x) { return {hn::Set(Tag(), x)}; }
  static HWY_INLINE Vector Load(const T* x) { return {hn::LoadU(Tag(), x)}; }
  static HWY_INLINE Vector LoadTail(const T* x, int64_t n) {
    return {LoadPartial(Tag(), x, n, T(0))};
  }
  HWY_INLINE void Store(T* y) const { hn::StoreU(v, Tag(), y); }
  HWY_INLINE void StoreTail(T* y, int64_t n) const { StorePartial(Tag(), v, y, n); }
  // From and to packed memory.
  static HWY_INLINE Vector LoadPacked(const T* x) { return Load(x); }
  static HWY_INLINE Vector SetPacked(const T* x) { return Set(*x); }

  // *this + x y, and *this - x y.
  HWY_INLINE Vector Plus(Vector x, Vector y) const { return {hn::MulAdd(x.v, y.v, v)}; }
  HWY_INLINE Vector Minus(Vector x, Vector y) const { return {hn::NegMulAdd(x.v, y.v, v)}; }
  HWY_INLINE Vector Times(Vector x) const { return {hn::Mul(v, x.v)}; }
  HWY_INLINE Vector DividedBy(T x) const { return {hn::Div(v, hn::Set(Tag(), x))}; }
  HWY_INLINE T Sum() const { return hn::GetLane(hn::SumOfLanes(Tag(), v)); }

  hn::Vec<Tag> v;
};

template <class R>
struct Vector<std::complex<R>> {
  using T = std::complex<R>;
  using Tag = hn::ScalableTag<R>;
  static constexpr int kTileVectors = HWY_MAX_BYTES >= 64 ? 2 : 1, kTileColumns = 6;
  static HWY_INLINE int64_t Size() { return static_cast<int64_t>(hn::Lanes(Tag())); }

  static HWY_INLINE Vector Set(T x) { return {hn::Set(Tag(), x.real()), hn::Set(Tag(), x.imag())}; }
  static HWY_INLINE Vector Load(const T* x) {
    Vector y;
    hn::LoadInterleaved2(Tag(), reinterpret_cast<const R*>(x), y.re, y.im);
    return y;
  }
  static HWY_INLINE Vector LoadTail(const T* x, int64_t n) {
    T all[hn::MaxLanes(Tag())] = {};
    std::copy_n(x, n, all);
    return Load(all);
  }
  HWY_INLINE void Store(T* y) const {
    hn::StoreInterleaved2(re, im, Tag(), reinterpret_cast<R*>(y));
  }
  HWY_INLINE void StoreTail(T* y, int64_t n) const {
    T all[hn::MaxLanes(Tag())];
    Store(all);
    std::copy_n(all, n, y);
  }
  // Packed vectors hold the real parts before the imaginary parts.
  static HWY_INLINE Vector LoadPacked(const T* x) {
    const R* const parts = reinterpret_cast<const R*>(x);
    return {hn::LoadU(Tag(), parts), hn::LoadU(Tag(), parts + Size())};
  }
  static HWY_INLINE Vector SetPacked(const T* x) { return Set(*x); }

  HWY_INLINE Vector Plus(Vector x, Vector y) const {
    return {hn::NegMulAdd(x.im, y.im, hn::MulAdd(x.re, y.re, re)),
            hn::MulAdd(x.re, y.im, hn::MulAdd(x.im, y.re, im))};
  }
  HWY_INLINE Vector Minus(Vector x, Vector y) const {
    return {hn::MulAdd(x.im, y.im, hn::NegMulAdd(x.re, y.re, re)),
            hn::NegMulAdd(x.re, y.im, hn::NegMulAdd(x.im, y.re, im))};
  }
  HWY_INLINE Vector Times(Vector x) const {
    return {hn::NegMulAdd(im, x.im, hn::Mul(re, x.re)), hn::MulAdd(im, x.re, hn::Mul(re, x.im))};
  }
  HWY_INLINE Vector DividedBy(T x) const { return Times(Set(T(1) / x)); }
  HWY_INLINE T Sum() const {
    return {hn::GetLane(hn::SumOfLanes(Tag(), re)), hn::GetLane(hn::SumOfLanes(Tag(), im))};
  }

  hn::Vec<Tag> re, im;
};

// Calls f(load, store) for each vector of m elements, where load(p) and store(v, p) access that
// vector of the elements at p.
template <class T, class F>
HWY_INLINE void ForVectors(int64_t m, const F& f) {
  using V = Vector<T>;
  const int64_t size = V::Size();
  int64_t i = 0;
  for (; i + size <= m; i += size) {
    f([i](const T* p) HWY_ATTR { return V::Load(p + i); },
      [i](V v, T* p) HWY_ATTR { v.Store(p + i); });
  }
  if (i == m) return;
  const int64_t n = m - i;
  f([i, n](const T* p) HWY_ATTR { return V::LoadTail(p + i, n); },
    [i, n](V v, T* p) HWY_ATTR { v.StoreTail(p + i, n); });
}

// ---- matrices and vectors

// y[m] += the first kColumns columns of a, times x; and z[kColumns] += their dot products with w.
template <int kColumns, bool kAdds, bool kDots, class T>
HWY_INLINE void SomeColumns(int64_t m, const T* a, int64_t step, const T* x, T* y, const T* w,
                            T* z) {
  using V = Vector<T>;
  V factors[kColumns], sums[kColumns];
#pragma GCC unroll 4
  for (int j = 0; j < kColumns; ++j) {
    if (kAdds) factors[j] = V::Set(x[j]);
    if (kDots) sums[j] = V::Set(T(0));
  }
  ForVectors<T>(m, [&](const auto& load, const auto& store) HWY_ATTR {
    V to, right;
    if (kAdds) to = load(y);
    if (kDots) right = load(w);
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      const V column = load(a + j * step);
      if (kAdds) to = to.Plus(column, factors[j]);
      if (kDots) sums[j] = sums[j].Plus(column, right);
    }
    if (kAdds) store(to, y);
  });
  if constexpr (kDots) {
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) z[j] += sums[j].Sum();
  }
}

template <bool kAdds, bool kDots, class T>
HWY_INLINE void AllColumns(int64_t m, int64_t n, const T* a, int64_t step, const T* x, T* y,
                           const T* w, T* z) {
  const auto at = [](auto* p, int64_t j, bool used) { return used ? p + j : p; };
  int64_t j = 0;
  for (; j + 4 <= n; j += 4)
    SomeColumns<4, kAdds, kDots>(m, a + j * step, step, at(x, j, kAdds), y, w, at(z, j, kDots));
  for (; j < n; ++j)
    SomeColumns<1, kAdds, kDots>(m, a + j * step, step, at(x, j, kAdds), y, w, at(z, j, kDots));
}

template <class T>
void AddColumns(int64_t m, int64_t n, const T* a, int64_t step, const T* x, T* y) {
  AllColumns<true, false, T>(m, n, a, step, x, y, nullptr, nullptr);
}
template <class T>
void AddDots(int64_t m, int64_t n, const T* a, int64_t step, const T* x, T* z) {
  AllColumns<false, true, T>(m, n, a, step, nullptr, nullptr, x, z);
}
template <class T>
void AddBoth(int64_t m, int64_t n, const T* a, int64_t step, const T* x, T* y, const T* w, T* z) {
  AllColumns<true, true, T>(m, n, a, step, x, y, w, z);
}

template <int kColumns, class T>
HWY_INLINE void SomeOuterColumns(int64_t m, const T* x, const T* y, T* a, int64_t step) {
  using V = Vector<T>;
  V factors[kColumns];
#pragma GCC unroll 4
  for (int j = 0; j < kColumns; ++j) factors[j] = V::Set(y[j]);
  ForVectors<T>(m, [&](const auto& load, const auto& store) HWY_ATTR {
    const V left = load(x);
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      store(load(a + j * step).Plus(left, factors[j]), a + j * step);
    }
  });
}
template <class T>
void AddOuter(int64_t m, int64_t n, const T* x, const T* y, T* a, int64_t step) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) SomeOuterColumns<4>(m, x, y + j, a + j * step, step);
  for (; j < n; ++j) SomeOuterColumns<1>(m, x, y + j, a + j * step, step);
}

// ---- triangular blocks

// A lower triangular block: the factors of each row, row by row, and the diagonal.
template <class T>
struct Block {
  HWY_INLINE Block(int64_t n, const View<T>& t, bool unit) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) below(i, j) = t(i, j);
      diagonal(i) = unit ? T(1) : t(i, i);
    }
  }
  HWY_INLINE T& below(int64_t i, int64_t j) { return elements.data()[i * kBlock + j]; }
  HWY_INLINE T& diagonal(int64_t i) { return below(i, i); }
  Uninitialized<T, kBlock * kBlock> elements;
};

// Forward substitution of whole rows. Real numbers are divided, since the inverse of a huge divisor
// may be flushed to zero; complex ones are multiplied by it.
template <class T>
void SolveBlock(int64_t n, int64_t columns, const View<T>& t, bool unit, T* b, int64_t row) {
  using V = Vector<T>;
  Block<T> block(n, t, unit);
  ForVectors<T>(columns, [&](const auto& load, const auto& store) HWY_ATTR {
    for (int64_t i = 0; i < n; ++i) {
      V x = load(b + i * row);
      for (int64_t j = 0; j < i; ++j) x = x.Minus(V::Set(block.below(i, j)), load(b + j * row));
      store(unit ? x : x.DividedBy(block.diagonal(i)), b + i * row);
    }
  });
}

// From the last row up: a row needs those above it.
template <class T>
void ScaleBlock(int64_t n, int64_t columns, const View<T>& t, bool unit, T* b, int64_t row) {
  using V = Vector<T>;
  Block<T> block(n, t, unit);
  ForVectors<T>(columns, [&](const auto& load, const auto& store) HWY_ATTR {
    for (int64_t i = n - 1; i >= 0; --i) {
      V x = load(b + i * row);
      if (!unit) x = x.Times(V::Set(block.diagonal(i)));
      for (int64_t j = 0; j < i; ++j) x = x.Plus(V::Set(block.below(i, j)), load(b + j * row));
      store(x, b + i * row);
    }
  });
}

// ---- products

// Blocks of A and B that are packed at a time.
constexpr int64_t kRows = 96, kDepth = 256, kColumns = 1020;

// The width of the tile for the rest of the columns: one of few, each of which is compiled.
template <class T>
HWY_INLINE int64_t TileWidth(int64_t rest) {
  constexpr int64_t kMost = Vector<T>::kTileColumns;
  if (rest >= kMost) return kMost;
  return rest > 8 ? kMost : rest > 6 ? 8 : rest > 4 ? 6 : rest > 2 ? 4 : rest;
}

// Writes element i of a packed vector of `size` elements.
template <class T>
HWY_INLINE void SetPart(T* packed, int64_t size, int64_t i, T x) {
  if constexpr (std::is_floating_point_v<T>) {
    packed[i] = x;
  } else {
    auto* const parts = reinterpret_cast<typename T::value_type*>(packed);
    parts[i] = x.real();
    parts[size + i] = x.imag();
  }
}

// Packs rows of A as vectors: packed[vectors, k], where the rows after the last are zero.
template <class T>
void PackRows(int64_t m, int64_t k, const View<T>& a, T* packed) {
  const int64_t size = Vector<T>::Size();
  for (int64_t i = 0; i < m; i += size, packed += k * size) {
    const int64_t rows = std::min(size, m - i);
    const View<T> from = a.At(i, 0);
    if (rows < size) std::fill_n(packed, k * size, T(0));
    if (std::is_floating_point_v<T> && a.row == 1 && rows == size) {
      for (int64_t p = 0; p < k; ++p)
        Vector<T>::Load(from.data + p * a.column).Store(packed + p * size);
    } else if (a.row == 1) {
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t r = 0; r < rows; ++r) SetPart(packed + p * size, size, r, from(r, p));
      }
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t p = 0; p < k; ++p) SetPart(packed + p * size, size, r, from(r, p));
      }
    }
  }
}

// Packs columns of B as tiles: packed[tiles, k, width], where the columns after the last are zero.
template <class T>
void PackColumns(int64_t n, int64_t k, const View<T>& b, T* packed) {
  for (int64_t j = 0; j < n;) {
    const int64_t width = TileWidth<T>(n - j), some = std::min(width, n - j);
    const View<T> from = b.At(0, j);
    if (some < width) std::fill_n(packed, k * width, T(0));
    if (b.row == 1) {
      for (int64_t c = 0; c < some; ++c) {
        for (int64_t p = 0; p < k; ++p) packed[p * width + c] = from(p, c);
      }
    } else {
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t c = 0; c < some; ++c) packed[p * width + c] = from(p, c);
      }
    }
    packed += k * width;
    j += width;
  }
}

// c[rows, columns] += alpha a b for a register tile of kVectors x kWidth.
template <int kVectors, int kWidth, class T>
void MultiplyTile(int64_t k, T alpha, const T* HWY_RESTRICT a, const T* HWY_RESTRICT b,
                  int64_t rows, int64_t columns, T* HWY_RESTRICT c, int64_t step) {
  using V = Vector<T>;
  const int64_t size = V::Size();
  V sums[kWidth][kVectors];
#pragma GCC unroll 16
  for (int j = 0; j < kWidth; ++j) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[j][v] = V::Set(T(0));
  }
  const T* const next = a + k * size;
  for (int64_t p = 0; p < k; ++p) {
    V left[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) left[v] = V::LoadPacked((v == 0 ? a : next) + p * size);
#pragma GCC unroll 16
    for (int j = 0; j < kWidth; ++j) {
      const V right = V::SetPacked(b + p * kWidth + j);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[j][v] = sums[j][v].Plus(left[v], right);
    }
  }
  const V factor = V::Set(alpha);
#pragma GCC unroll 16
  for (int j = 0; j < kWidth; ++j) {
    if (j >= columns) return;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      T* const to = c + j * step + v * size;
      const int64_t some = rows - v * size;
      if (some >= size) {
        V::Load(to).Plus(sums[j][v], factor).Store(to);
      } else {
        V::LoadTail(to, some).Plus(sums[j][v], factor).StoreTail(to, some);
      }
    }
  }
}

template <int kVectors, class T>
HWY_INLINE auto TileOf(int64_t width) {
  switch (width) {
    case 1:
      return &MultiplyTile<kVectors, 1, T>;
    case 2:
      return &MultiplyTile<kVectors, 2, T>;
    case 4:
      return &MultiplyTile<kVectors, 4, T>;
    case 6:
      return &MultiplyTile<kVectors, 6, T>;
    case 8:
      if constexpr (Vector<T>::kTileColumns > 8) return &MultiplyTile<kVectors, 8, T>;
  }
  return &MultiplyTile<kVectors, Vector<T>::kTileColumns, T>;
}

template <class T>
void MultiplyPacked(int64_t m, int64_t n, int64_t k, T alpha, const T* a, const T* b, T* c,
                    int64_t step) {
  constexpr int kVectors = Vector<T>::kTileVectors;
  const int64_t size = Vector<T>::Size();
  for (int64_t j = 0; j < n;) {
    const int64_t width = TileWidth<T>(n - j), columns = std::min(width, n - j);
    const auto tall = TileOf<kVectors, T>(width), low = TileOf<1, T>(width);
    for (int64_t i = 0; i < m;) {
      const bool is_tall = m - i > size;
      (is_tall ? tall : low)(k, alpha, a + i * k, b, m - i, columns, c + j * step + i, step);
      i += is_tall ? kVectors * size : size;
    }
    b += k * width;
    j += width;
  }
}

// Linear combinations of A's columns or, if A is row-major, dot products: for small products.
template <class T>
void MultiplySmall(int64_t m, int64_t n, int64_t k, T alpha, const View<T>& a, const View<T>& b,
                   T* c, int64_t step) {
  Uninitialized<T, kDepth> memory;
  T* const factors = memory.data();
  for (int64_t p = 0; p < k; p += kDepth) {
    const int64_t some = std::min(kDepth, k - p);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < some; ++i) factors[i] = Product(alpha, b(p + i, j));
      if (a.row == 1) {
        AddColumns<T>(m, some, a.data + p * a.column, a.column, factors, c + j * step);
      } else {
        AddDots<T>(some, m, a.data + p, a.row, factors, c + j * step);
      }
    }
  }
}

template <class T>
void Multiply(int64_t m, int64_t n, int64_t k, T alpha, const View<T>& a, const View<T>& b, T* c,
              int64_t step) {
  constexpr int64_t kFewColumns = 2, kSmall = 1024;
  const bool in_place = !a.conjugate && (a.row == 1 || a.column == 1);
  if (in_place && (n <= kFewColumns || m * n * k <= kSmall)) {
    return MultiplySmall(m, n, k, alpha, a, b, c, step);
  }
  const int64_t size = Vector<T>::Size();
  const int64_t high = (std::min(m, kRows) + size - 1) / size * size;
  const int64_t deep = std::min(k, kDepth), wide = std::min(n, kColumns) + Vector<T>::kTileColumns;
  Scratch<T> scratch(deep * (high + wide));
  T* const left = scratch.data();
  T* const right = left + deep * high;
  for (int64_t j = 0; j < n; j += kColumns) {
    const int64_t columns = std::min(kColumns, n - j);
    for (int64_t p = 0; p < k; p += kDepth) {
      const int64_t depth = std::min(kDepth, k - p);
      PackColumns(columns, depth, b.At(p, j), right);
      for (int64_t i = 0; i < m; i += kRows) {
        ThrowIfCancelled();
        const int64_t rows = std::min(kRows, m - i);
        PackRows(rows, depth, a.At(i, p), left);
        MultiplyPacked(rows, columns, depth, alpha, left, right, c + j * step + i, step);
      }
    }
  }
}

template <class T>
constexpr Kernels<T> kKernels = {&Multiply<T>, &AddColumns<T>, &AddDots<T>,   &AddBoth<T>,
                                 &AddOuter<T>, &SolveBlock<T>, &ScaleBlock<T>};

const Kernels<float>* Floats() { return &kKernels<float>; }
const Kernels<double>* Doubles() { return &kKernels<double>; }
const Kernels<std::complex<float>>* ComplexFloats() { return &kKernels<std::complex<float>>; }
const Kernels<std::complex<double>>* ComplexDoubles() { return &kKernels<std::complex<double>>; }

}  // namespace HWY_NAMESPACE
}  // namespace weir::blas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::blas {

HWY_EXPORT(Floats);
HWY_EXPORT(Doubles);
HWY_EXPORT(ComplexFloats);
HWY_EXPORT(ComplexDoubles);

template <>
const Kernels<float>& KernelsOf() {
  return *HWY_DYNAMIC_DISPATCH(Floats)();
}
template <>
const Kernels<double>& KernelsOf() {
  return *HWY_DYNAMIC_DISPATCH(Doubles)();
}
template <>
const Kernels<std::complex<float>>& KernelsOf() {
  return *HWY_DYNAMIC_DISPATCH(ComplexFloats)();
}
template <>
const Kernels<std::complex<double>>& KernelsOf() {
  return *HWY_DYNAMIC_DISPATCH(ComplexDoubles)();
}

}  // namespace weir::blas
#endif  // HWY_ONCE
