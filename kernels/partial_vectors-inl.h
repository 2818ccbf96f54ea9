// Loads and stores of what is left after the last whole vector. A textual header without a guard,
// included inside each of Highway's target namespaces, where `hn` is hwy::HWY_NAMESPACE.

// LoadRest: the first n elements at x, at least one, beside `fill`. StoreRest: the first n of v to
// y. A whole vector, if n is no less. Where the target loads and stores under a mask, memory beyond
// the end is not touched; elsewhere the elements go through a buffer. A single number is loaded and
// stored as such: what was stored under a mask is not handed to the next load before it is in the
// cache, and in a chain of scalars each op waits for the one before.
#if HWY_TARGET == HWY_AVX2 || !HWY_MEM_OPS_MIGHT_FAULT
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadRest(D d, const T* x, int64_t n, T fill) {
  const auto mask = hn::FirstN(d, static_cast<size_t>(n));
  const hn::Vec<D> some = n == 1 ? hn::Set(d, *x) : hn::MaskedLoad(mask, d, x);
  return hn::IfThenElse(mask, some, hn::Set(d, fill));
}
template <class D, class T>
HWY_INLINE void StoreRest(D d, hn::Vec<D> v, T* y, int64_t n) {
  if (n == 1) {
    *y = hn::GetLane(v);
    return;
  }
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, y);
}
#else
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadRest(D d, const T* x, int64_t n, T fill) {
  HWY_ALIGN T buffer[hn::MaxLanes(d)];
  hn::Store(hn::Set(d, fill), d, buffer);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n && i < lanes; ++i) buffer[i] = x[i];
  return hn::Load(d, buffer);
}
template <class D, class T>
HWY_INLINE void StoreRest(D d, hn::Vec<D> v, T* y, int64_t n) {
  HWY_ALIGN T buffer[hn::MaxLanes(d)];
  hn::Store(v, d, buffer);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n && i < lanes; ++i) y[i] = buffer[i];
}
#endif
