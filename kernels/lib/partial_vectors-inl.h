// Loads and stores of the tail after the last whole vector. A textual header without an include
// guard, included inside each of Highway's target namespaces, where `hn` is hwy::HWY_NAMESPACE.

// LoadPartial loads the first n >= 1 elements at x, padded with `fill`. StorePartial stores the
// first n lanes of v to y. Both handle a whole vector if n is at least its size. On targets with
// masked loads and stores, memory beyond the end is not accessed; on others the elements go through
// a buffer. A single element is loaded and stored as a scalar: a masked store is not forwarded to
// the next load before it reaches the cache, which would stall a chain of scalar ops.
#if HWY_TARGET == HWY_AVX2 || !HWY_MEM_OPS_MIGHT_FAULT
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadPartial(D d, const T* x, int64_t n, T fill) {
  const auto mask = hn::FirstN(d, static_cast<size_t>(n));
  const hn::Vec<D> some = n == 1 ? hn::Set(d, *x) : hn::MaskedLoad(mask, d, x);
  return hn::IfThenElse(mask, some, hn::Set(d, fill));
}
template <class D, class T>
HWY_INLINE void StorePartial(D d, hn::Vec<D> v, T* y, int64_t n) {
  if (n == 1) {
    *y = hn::GetLane(v);
    return;
  }
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, y);
}
#else
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadPartial(D d, const T* x, int64_t n, T fill) {
  HWY_ALIGN T buffer[hn::MaxLanes(d)];
  hn::Store(hn::Set(d, fill), d, buffer);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n && i < lanes; ++i) buffer[i] = x[i];
  return hn::Load(d, buffer);
}
template <class D, class T>
HWY_INLINE void StorePartial(D d, hn::Vec<D> v, T* y, int64_t n) {
  HWY_ALIGN T buffer[hn::MaxLanes(d)];
  hn::Store(v, d, buffer);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n && i < lanes; ++i) y[i] = buffer[i];
}
#endif
