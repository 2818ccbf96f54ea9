// Loops over vectors for functors. A textual header without a guard, included inside each of
// Highway's target namespaces after vector_math-inl.h and elementwise-inl.h:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernels/xxx_cpu.cc"
//   #include "hwy/foreach_target.h"
//   #include "hwy/highway.h"
//   #include "hwy/contrib/math/math-inl.h"
//   HWY_BEFORE_NAMESPACE();
//   namespace weir {
//   namespace HWY_NAMESPACE {
//   namespace hn = hwy::HWY_NAMESPACE;
//   #include "weir/kernels/vector_math-inl.h"
//   #include "weir/kernels/elementwise-inl.h"
//   #include "weir/kernels/spans-inl.h"
//   void AddXxx(SpanTable* t) { AddUnaryVectors<Exp, Log>(t); }
//   ...
//   HWY_EXPORT(AddXxx), and HWY_DYNAMIC_DISPATCH(AddXxx)(t) from AddXxxSpans, under #if HWY_ONCE

// What is left after the last whole vector is computed in one more, filled up with ones. Where the
// target loads and stores under a mask, memory beyond the end is not touched; elsewhere the
// elements go through a buffer. A single number is loaded and stored as such: what was stored under
// a mask is not handed to the next load before it is in the cache, and in a chain of scalars each
// op waits for the one before.
#if HWY_TARGET == HWY_AVX2 || !HWY_MEM_OPS_MIGHT_FAULT
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadRest(D d, const T* x, int64_t n) {
  if (n == 1) return hn::Set(d, *x);
  const auto mask = hn::FirstN(d, static_cast<size_t>(n));
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x), hn::Set(d, T(1)));
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
HWY_INLINE hn::Vec<D> LoadRest(D d, const T* x, int64_t n) {
  HWY_ALIGN T buffer[hn::MaxLanes(d)];
  hn::Store(hn::Set(d, T(1)), d, buffer);
  for (int64_t i = 0; i < n; ++i) buffer[i] = x[i];
  return hn::Load(d, buffer);
}
template <class D, class T>
HWY_INLINE void StoreRest(D d, hn::Vec<D> v, T* y, int64_t n) {
  HWY_ALIGN T buffer[hn::MaxLanes(d)];
  hn::Store(v, d, buffer);
  for (int64_t i = 0; i < n; ++i) y[i] = buffer[i];
}
#endif

template <class F, class T>
void UnaryVectorLoop(const UnarySpan&, const void* xs, void* ys, int64_t n, double) {
  using D = hn::ScalableTag<T>;
  using M = VectorMath<D>;
  const D d;
  const T* x = static_cast<const T*>(xs);
  T* y = static_cast<T*>(ys);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(F::template Apply<M>(hn::LoadU(d, x + i)), d, y + i);
  if (i < n) StoreRest(d, F::template Apply<M>(LoadRest(d, x + i, n - i)), y + i, n - i);
}

template <class F, class T>
void BinaryVectorLoop(const BinarySpan&, const void* xs, const void* ys, void* zs, int64_t n,
                      double) {
  using D = hn::ScalableTag<T>;
  using M = VectorMath<D>;
  const D d;
  const T *x = static_cast<const T*>(xs), *y = static_cast<const T*>(ys);
  T* z = static_cast<T*>(zs);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(F::template Apply<M>(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, z + i);
  }
  if (i < n)
    StoreRest(d, F::template Apply<M>(LoadRest(d, x + i, n - i), LoadRest(d, y + i, n - i)), z + i,
              n - i);
}

// With the op's parameter as a further argument: Apply<M>(x, p), Apply<M>(x, y, p).
template <class F, class T>
void UnaryVectorLoopP(const UnarySpan&, const void* xs, void* ys, int64_t n, double p) {
  using D = hn::ScalableTag<T>;
  using M = VectorMath<D>;
  const D d;
  const T* x = static_cast<const T*>(xs);
  T* y = static_cast<T*>(ys);
  const hn::Vec<D> param = M::Num(p);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(F::template Apply<M>(hn::LoadU(d, x + i), param), d, y + i);
  if (i < n) StoreRest(d, F::template Apply<M>(LoadRest(d, x + i, n - i), param), y + i, n - i);
}
template <class F, class T>
void BinaryVectorLoopP(const BinarySpan&, const void* xs, const void* ys, void* zs, int64_t n,
                       double p) {
  using D = hn::ScalableTag<T>;
  using M = VectorMath<D>;
  const D d;
  const T *x = static_cast<const T*>(xs), *y = static_cast<const T*>(ys);
  T* z = static_cast<T*>(zs);
  const hn::Vec<D> param = M::Num(p);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(F::template Apply<M>(hn::LoadU(d, x + i), hn::LoadU(d, y + i), param), d, z + i);
  }
  if (i < n) {
    StoreRest(d, F::template Apply<M>(LoadRest(d, x + i, n - i), LoadRest(d, y + i, n - i), param),
              z + i, n - i);
  }
}

// Entries for float and double.
template <class... Fs>
void AddUnaryVectors(SpanTable* t) {
  (t->AddUnary(Fs::kOp, DT_FLOAT, DT_FLOAT, UnaryVectorLoop<Fs, float>, SpanCost<Fs>()), ...);
  (t->AddUnary(Fs::kOp, DT_DOUBLE, DT_DOUBLE, UnaryVectorLoop<Fs, double>, 2 * SpanCost<Fs>()),
   ...);
}
template <class... Fs>
void AddBinaryVectors(SpanTable* t) {
  (t->AddBinary(Fs::kOp, DT_FLOAT, DT_FLOAT, BinaryVectorLoop<Fs, float>, SpanCost<Fs>()), ...);
  (t->AddBinary(Fs::kOp, DT_DOUBLE, DT_DOUBLE, BinaryVectorLoop<Fs, double>, 2 * SpanCost<Fs>()),
   ...);
}
