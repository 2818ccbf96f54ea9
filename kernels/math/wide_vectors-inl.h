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
