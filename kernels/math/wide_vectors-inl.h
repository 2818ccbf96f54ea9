// Loops of functions that vectors of doubles compute, for double, and for float, which has
// TensorFlow's type but is rounded once, at the end. A textual header without an include guard,
// included inside each of Highway's target namespaces after vector_math-inl.h.
//
// A function is F::Apply on vectors V, with as many arguments as the loop has. It may run in
// iterations until the last lane is done, as a lane's result depends on no other.

#include "weir/kernels/lib/partial_vectors-inl.h"

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
using M = VectorMath<D>;

template <class T>
using WideTag = hn::Rebind<T, D>;

template <class T>
HWY_INLINE V ToWide(hn::Vec<WideTag<T>> v) {
  if constexpr (std::is_same_v<T, double>) {
    return v;
  } else {
    return hn::PromoteTo(D(), v);
  }
}
template <class T>
HWY_INLINE hn::Vec<WideTag<T>> FromWide(V v) {
  if constexpr (std::is_same_v<T, double>) {
    return v;
  } else {
    return hn::DemoteTo(WideTag<T>(), v);
  }
}

// The tail is one more vector, padded with ones.
template <class F, class T>
void WideUnaryLoop(const UnaryLoop&, const void* xs, void* ys, int64_t n, double) {
  const WideTag<T> d;
  const T* x = static_cast<const T*>(xs);
  T* y = static_cast<T*>(ys);
  const auto apply = [](hn::Vec<WideTag<T>> v)
                         HWY_ATTR { return FromWide<T>(F::Apply(ToWide<T>(v))); };
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(apply(hn::LoadU(d, x + i)), d, y + i);
  if (i < n) StorePartial(d, apply(LoadPartial(d, x + i, n - i, T(1))), y + i, n - i);
}

// The second argument's tail is padded with ones too.
template <class F, class T>
void WideBinaryLoop(const BinaryLoop&, const void* xs, const void* ys, void* zs, int64_t n,
                    double) {
  const WideTag<T> d;
  const T *x = static_cast<const T*>(xs), *y = static_cast<const T*>(ys);
  T* z = static_cast<T*>(zs);
  const auto apply = [](hn::Vec<WideTag<T>> a, hn::Vec<WideTag<T>> b)
                         HWY_ATTR { return FromWide<T>(F::Apply(ToWide<T>(a), ToWide<T>(b))); };
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(apply(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, z + i);
  if (i < n) {
    const auto a = LoadPartial(d, x + i, n - i, T(1)), b = LoadPartial(d, y + i, n - i, T(1));
    StorePartial(d, apply(a, b), z + i, n - i);
  }
}

// Returns `fast` in lanes where `usual` is set; in other lanes the slow function of those of x and
// y.
template <class Slow>
HWY_INLINE V FixSpecialPairs(V x, V y, hn::Mask<D> usual, V fast, Slow slow) {
  if (HWY_LIKELY(hn::AllTrue(D(), usual))) return fast;
  HWY_ALIGN double first[hn::MaxLanes(D())];
  HWY_ALIGN double second[hn::MaxLanes(D())];
  hn::Store(x, D(), first);
  hn::Store(y, D(), second);
  HWY_ALIGN double good[hn::MaxLanes(D())];
  hn::Store(M::If(usual, M::Num(1), M::Num(0)), D(), good);
  HWY_ALIGN double out[hn::MaxLanes(D())];
  hn::Store(fast, D(), out);
  for (size_t i = 0; i < hn::Lanes(D()); ++i) {
    if (good[i] == 0) out[i] = slow(first[i], second[i]);
  }
  return hn::Load(D(), out);
}
