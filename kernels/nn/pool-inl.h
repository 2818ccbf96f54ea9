// Included once for each Highway target: the include guard toggles.
#if defined(WEIR_KERNELS_NN_POOL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEIR_KERNELS_NN_POOL_INL_H_
#undef WEIR_KERNELS_NN_POOL_INL_H_
#else
#define WEIR_KERNELS_NN_POOL_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/nn/pool_rows.h"

// Pooling in terms of a "lanes" policy L: vectors of the target, or single elements. An Index is a
// position within a window, lane by lane.
HWY_BEFORE_NAMESPACE();
namespace weir::pool::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One element at a time: for tail loops, and for types that are not vectorized.
template <class T>
struct OneLane {
  using Element = T;
  using Value = T;
  using Index = int64_t;
  static int64_t Lanes() { return 1; }
  static Value Load(const T* p) { return *p; }
  static void Store(Value v, T* p) { *p = v; }
  static Value Set(T v) { return v; }
  static Value Add(Value a, Value b) { return ScalarMath<T>::Add(a, b); }
  static Value Mul(Value a, Value b) { return static_cast<T>(a * b); }
  static Index SetIndex(int64_t i) { return i; }
  static bool Greater(Value a, Value b) { return a > b; }
  static bool Same(Index a, Index b) { return a == b; }
  template <class V>
  static V Pick(bool mask, V a, V b) {
    return mask ? a : b;
  }
};

// Vectors of the target. Positions within a window have the elements' own type.
template <class T>
struct Vectors {
  using Element = T;
  using D = hn::ScalableTag<T>;
  using Value = hn::Vec<D>;
  using Index = Value;
  static HWY_INLINE int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(D())); }
  static HWY_INLINE Value Load(const T* p) { return hn::LoadU(D(), p); }
  static HWY_INLINE void Store(Value v, T* p) { hn::StoreU(v, D(), p); }
  static HWY_INLINE Value Set(T v) { return hn::Set(D(), v); }
  static HWY_INLINE Value Add(Value a, Value b) { return hn::Add(a, b); }
  static HWY_INLINE Value Mul(Value a, Value b) { return hn::Mul(a, b); }
  static HWY_INLINE Index SetIndex(int64_t i) { return hn::Set(D(), static_cast<T>(i)); }
  static HWY_INLINE hn::Mask<D> Greater(Value a, Value b) { return hn::Gt(a, b); }
  static HWY_INLINE hn::Mask<D> Same(Index a, Index b) { return hn::Eq(a, b); }
  static HWY_INLINE Value Pick(hn::Mask<D> mask, Value a, Value b) {
    return hn::IfThenElse(mask, a, b);
  }
};

// kTimes as many lanes as L has, side by side, so that the loops over a window's pixels, which cost
// more than a vector's arithmetic, run once for several vectors. Each lane is computed as in L. For
// loops without positions: those need too many registers.
template <class L, int kTimes>
struct Times {
  template <class V>
  struct Group {
    V v[kTimes];
  };
  using Element = typename L::Element;
  using Value = Group<typename L::Value>;
  static HWY_INLINE int64_t Lanes() { return kTimes * L::Lanes(); }
  // Returns the results of f(i) as a group.
  template <class F>
  static HWY_INLINE auto Each(const F& f) {
    Group<decltype(f(0))> group;
#pragma GCC unroll 8
    for (int i = 0; i < kTimes; ++i) group.v[i] = f(i);
    return group;
  }
  static HWY_INLINE Value Load(const Element* p) {
    return Each([&](int i) HWY_ATTR { return L::Load(p + i * L::Lanes()); });
  }
  static HWY_INLINE void Store(const Value& x, Element* p) {
#pragma GCC unroll 8
    for (int i = 0; i < kTimes; ++i) L::Store(x.v[i], p + i * L::Lanes());
  }
  static HWY_INLINE Value Set(Element e) {
    return Each([&](int) HWY_ATTR { return L::Set(e); });
  }
  static HWY_INLINE Value Add(const Value& a, const Value& b) {
    return Each([&](int i) HWY_ATTR { return L::Add(a.v[i], b.v[i]); });
  }
  static HWY_INLINE Value Mul(const Value& a, const Value& b) {
    return Each([&](int i) HWY_ATTR { return L::Mul(a.v[i], b.v[i]); });
  }
  static HWY_INLINE auto Greater(const Value& a, const Value& b) {
    return Each([&](int i) HWY_ATTR { return L::Greater(a.v[i], b.v[i]); });
  }
  template <class M>
  static HWY_INLINE Value Pick(const M& mask, const Value& a, const Value& b) {
    return Each([&](int i) HWY_ATTR { return L::Pick(mask.v[i], a.v[i], b.v[i]); });
  }
};

// The part of a window that is inside the image.
struct Clipped {
  int64_t begin[3], end[3];
  int64_t count() const { return (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]); }
};

inline Clipped Clip(const PoolShape& s, int64_t z, int64_t y, int64_t x) {
  Clipped c;
  const int64_t at[3] = {z, y, x};
  for (int i = 0; i < 3; ++i) {
    const auto [begin, end] = s.WindowAt(i, at[i]);
    c.begin[i] = begin;
    c.end[i] = end;
  }
  return c;
}

// The windows of which the pixel at `at` is part, along dimension `i`.
inline void Cover(const PoolShape& s, int i, int64_t at, Clipped* windows) {
  const int64_t last = at + s.pad_before[i], first = last - s.window[i] + 1;
  windows->end[i] = std::min(s.out[i], last / s.stride[i] + 1);
  windows->begin[i] =
      std::min(windows->end[i], first <= 0 ? int64_t{0} : (first + s.stride[i] - 1) / s.stride[i]);
}

// Calls fn(offset of the pixel) for each pixel of the window, in order, in an image of extents
// `grid` with `channels` channels.
template <class F>
inline void ForEachPixel(const PoolShape::Spatial& grid, int64_t channels, const Clipped& w,
                         F&& fn) {
  for (int64_t z = w.begin[0]; z < w.end[0]; ++z) {
    for (int64_t y = w.begin[1]; y < w.end[1]; ++y) {
      int64_t offset = ((z * grid[1] + y) * grid[2] + w.begin[2]) * channels;
      for (int64_t x = w.begin[2]; x < w.end[2]; ++x, offset += channels) fn(offset);
    }
  }
}
// The same for the input image.
template <class F>
inline void ForEachPixel(const PoolShape& s, const Clipped& w, F&& fn) {
  ForEachPixel(s.in, s.channels, w, fn);
}

// Calls fn(window, offset of the output pixel) for each output pixel of the slice.
template <class F>
inline void ForEachWindow(const PoolShape& s, const PoolSlice& slice, F&& fn) {
  for (int64_t row = slice.begin; row < slice.end; ++row) {
    for (int64_t x = 0; x < s.out[2]; ++x) {
      fn(Clip(s, row / s.out[1], row % s.out[1], x),
         ((slice.image * s.out[0] * s.out[1] + row) * s.out[2] + x) * s.channels);
    }
  }
}

// Calls block(B(), c) for blocks of channels from *c on, as long as a whole one is left.
template <class B, class F>
inline void ForEachWholeBlock(int64_t last, int64_t* c, F&& block) {
  for (; *c + B::Lanes() <= last; *c += B::Lanes()) block(B(), *c);
}

// Calls block for the channels of the slice from c on, with vectors as far as possible, and OneLane
// for the tail.
template <class L, class F>
inline void ForEachVector(const PoolSlice& slice, int64_t c, F&& block) {
  using One = OneLane<typename L::Element>;
  if constexpr (!std::is_same_v<L, One>) ForEachWholeBlock<L>(slice.last, &c, block);
  ForEachWholeBlock<One>(slice.last, &c, block);
}

// Calls block for all channels of the slice, with groups of vectors as far as possible.
template <class L, class F>
inline void ForEachBlock(const PoolSlice& slice, F&& block) {
  int64_t c = slice.first;
  if constexpr (!std::is_same_v<L, OneLane<typename L::Element>>) {
    ForEachWholeBlock<Times<L, 4>>(slice.last, &c, block);
    ForEachWholeBlock<Times<L, 2>>(slice.last, &c, block);
  }
  ForEachVector<L>(slice, c, block);
}

template <class T>
inline const T* ImageOf(const PoolShape& s, const PoolSlice& slice, const T* x) {
  return x + slice.image * s.in_pixels() * s.channels;
}
template <class T>
inline T* ImageOf(const PoolShape& s, const PoolSlice& slice, T* x) {
  return x + slice.image * s.in_pixels() * s.channels;
}

template <class L, class T>
void MaxPool(const PoolShape& s, const PoolSlice& slice, const T* x, T* y) {
  x = ImageOf(s, slice, x);
  ForEachWindow(s, slice, [&](const Clipped& window, int64_t to) HWY_ATTR {
    ForEachBlock<L>(slice, [&](auto lanes, int64_t c) HWY_ATTR {
      using B = decltype(lanes);
      typename B::Value best = B::Set(std::numeric_limits<T>::lowest());
      ForEachPixel(s, window, [&](int64_t offset) HWY_ATTR {
        const typename B::Value v = B::Load(x + offset + c);
        best = B::Pick(B::Greater(v, best), v, best);
      });
      B::Store(best, y + to + c);
    });
  });
}

// Returns the position of the first maximum of the window, lane by lane: the number of its pixel.
template <class B, class T>
inline typename B::Index FirstMaximum(const PoolShape& s, const Clipped& window, const T* x) {
  typename B::Value best = B::Set(T(0));
  typename B::Index where = B::SetIndex(0);
  int64_t i = 0;
  ForEachPixel(s, window, [&](int64_t offset) HWY_ATTR {
    const typename B::Value v = B::Load(x + offset);
    if (i == 0) {
      best = v;
    } else {
      const auto greater = B::Greater(v, best);
      best = B::Pick(greater, v, best);
      where = B::Pick(greater, B::SetIndex(i), where);
    }
    ++i;
  });
  return where;
}

template <class L, class T>
void MaxPoolGrad(const PoolShape& s, const PoolSlice& slice, const T* x, const T* dy, T* dx) {
  x = ImageOf(s, slice, x);
  dx = ImageOf(s, slice, dx);
  const bool tiles = s.tiles();
  ForEachWindow(s, slice, [&](const Clipped& window, int64_t from) HWY_ATTR {
    ForEachVector<L>(slice, slice.first, [&](auto lanes, int64_t c) HWY_ATTR {
      using B = decltype(lanes);
      const typename B::Index where = FirstMaximum<B>(s, window, x + c);
      const typename B::Value gradient = B::Load(dy + from + c), zero = B::Set(T(0));
      int64_t i = 0;
      ForEachPixel(s, window, [&](int64_t offset) HWY_ATTR {
        typename B::Value v = B::Pick(B::Same(where, B::SetIndex(i++)), gradient, zero);
        if (!tiles) v = B::Add(v, B::Load(dx + offset + c));
        B::Store(v, dx + offset + c);
      });
    });
  });
}

template <class L, class T>
void MaxPoolGradGrad(const PoolShape& s, const PoolSlice& slice, const T* x, const T* grad, T* y) {
  x = ImageOf(s, slice, x);
  grad = ImageOf(s, slice, grad);
  ForEachWindow(s, slice, [&](const Clipped& window, int64_t to) HWY_ATTR {
    ForEachVector<L>(slice, slice.first, [&](auto lanes, int64_t c) HWY_ATTR {
      using B = decltype(lanes);
      const typename B::Index where = FirstMaximum<B>(s, window, x + c);
      typename B::Value picked = B::Set(T(0));
      int64_t i = 0;
      ForEachPixel(s, window, [&](int64_t offset) HWY_ATTR {
        picked = B::Pick(B::Same(where, B::SetIndex(i++)), B::Load(grad + offset + c), picked);
      });
      B::Store(picked, y + to + c);
    });
  });
}

template <class L, class T>
void AvgPool(const PoolShape& s, const PoolSlice& slice, const T* x, T* y) {
  x = ImageOf(s, slice, x);
  ForEachWindow(s, slice, [&](const Clipped& window, int64_t to) HWY_ATTR {
    const T scale = T(1) / static_cast<T>(std::max<int64_t>(window.count(), 1));
    ForEachBlock<L>(slice, [&](auto lanes, int64_t c) HWY_ATTR {
      using B = decltype(lanes);
      typename B::Value sum = B::Set(T(0));
      ForEachPixel(s, window,
                   [&](int64_t offset) HWY_ATTR { sum = B::Add(sum, B::Load(x + offset + c)); });
      B::Store(B::Mul(sum, B::Set(scale)), y + to + c);
    });
  });
}

// Each pixel of the input adds up the gradients of the windows that it is part of, in their order.
// Windows that add to their pixels would read and write each pixel once for each of its windows.
template <class L, class T>
void AvgPoolGrad(const PoolShape& s, const PoolSlice& slice, const T* dy, const T* scales, T* dx) {
  dy += slice.image * s.out_pixels() * s.channels;
  dx = ImageOf(s, slice, dx);
  Clipped windows;
  for (int64_t row = slice.begin; row < slice.end; ++row) {
    Cover(s, 0, row / s.in[1], &windows);
    Cover(s, 1, row % s.in[1], &windows);
    for (int64_t x = 0; x < s.in[2]; ++x) {
      Cover(s, 2, x, &windows);
      T* const to = dx + (row * s.in[2] + x) * s.channels;
      ForEachBlock<L>(slice, [&](auto lanes, int64_t c) HWY_ATTR {
        using B = decltype(lanes);
        typename B::Value sum = B::Set(T(0));
        ForEachPixel(s.out, 1, windows, [&](int64_t window) HWY_ATTR {
          const typename B::Value gradient = B::Load(dy + window * s.channels + c);
          sum = B::Add(B::Mul(gradient, B::Set(scales[window])), sum);
        });
        B::Store(sum, to + c);
      });
    }
  }
}

// Computes the slice with the lanes policy L.
template <class L, class T = typename L::Element>
void Run(PoolKind kind, const PoolShape& s, const PoolSlice& slice, const T* a, const T* b,
         T* out) {
  switch (kind) {
    case PoolKind::kMax:
      return MaxPool<L>(s, slice, a, out);
    case PoolKind::kMaxGrad:
      return MaxPoolGrad<L>(s, slice, a, b, out);
    case PoolKind::kMaxGradGrad:
      return MaxPoolGradGrad<L>(s, slice, a, b, out);
    case PoolKind::kAvg:
      return AvgPool<L>(s, slice, a, out);
    case PoolKind::kAvgGrad:
      return AvgPoolGrad<L>(s, slice, a, b, out);
  }
}

}  // namespace weir::pool::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // WEIR_KERNELS_NN_POOL_INL_H_
