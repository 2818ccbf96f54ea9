// Vectorized loops for functors. A textual header without an include guard, included inside each of
// Highway's target namespaces after vector_math-inl.h and the functors:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernels/math/xxx_cpu.cc"
//   #include "hwy/foreach_target.h"
//   #include "hwy/highway.h"
//   #include "hwy/contrib/math/math-inl.h"
//   HWY_BEFORE_NAMESPACE();
//   namespace weir {
//   namespace HWY_NAMESPACE {
//   namespace hn = hwy::HWY_NAMESPACE;
//   #include "weir/kernels/lib/vector_math-inl.h"
//   #include "weir/kernels/math/xxx-inl.h"
//   #include "weir/kernels/math/elementwise_loops-inl.h"
//   void AddXxxVectors(LoopRegistry* t) {
//     AddUnaryVectors(t, UnaryXxx());
//     AddBinaryVectors(t, BinaryXxx());
//   }
//   ...
//   HWY_EXPORT(AddXxxVectors), and HWY_DYNAMIC_DISPATCH(AddXxxVectors)(t) from AddXxxLoops, under
//   #if HWY_ONCE

#include "weir/kernels/lib/partial_vectors-inl.h"
#include "weir/kernels/lib/rounded_math-inl.h"
#include "weir/kernels/math/register_fusion-inl.h"

// The tail after the last whole vector is computed in one more vector, padded with ones.
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadTail(D d, const T* x, int64_t n) {
  return LoadPartial(d, x, n, T(1));
}

template <class F, class T, class M = VectorMath<hn::ScalableTag<T>>>
void UnaryVectorLoop(const UnaryLoop&, const void* xs, void* ys, int64_t n, double) {
  using D = hn::ScalableTag<T>;
  const D d;
  const T* x = static_cast<const T*>(xs);
  T* y = static_cast<T*>(ys);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = F::template Apply<M>(hn::LoadU(d, x + i));
    const auto b = F::template Apply<M>(hn::LoadU(d, x + i + lanes));
    hn::StoreU(a, d, y + i);
    hn::StoreU(b, d, y + i + lanes);
  }
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(F::template Apply<M>(hn::LoadU(d, x + i)), d, y + i);
  if (i < n) StorePartial(d, F::template Apply<M>(LoadTail(d, x + i, n - i)), y + i, n - i);
}

template <class F, class T, class M = VectorMath<hn::ScalableTag<T>>>
void BinaryVectorLoop(const BinaryLoop&, const void* xs, const void* ys, void* zs, int64_t n,
                      double) {
  using D = hn::ScalableTag<T>;
  const D d;
  const T *x = static_cast<const T*>(xs), *y = static_cast<const T*>(ys);
  T* z = static_cast<T*>(zs);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = F::template Apply<M>(hn::LoadU(d, x + i), hn::LoadU(d, y + i));
    const auto b = F::template Apply<M>(hn::LoadU(d, x + i + lanes), hn::LoadU(d, y + i + lanes));
    hn::StoreU(a, d, z + i);
    hn::StoreU(b, d, z + i + lanes);
  }
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(F::template Apply<M>(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, z + i);
  }
  if (i < n)
    StorePartial(d, F::template Apply<M>(LoadTail(d, x + i, n - i), LoadTail(d, y + i, n - i)),
                 z + i, n - i);
}

// One argument is a scalar.
template <class F, class T, bool kFirst>
void ScalarOperandVectorLoop(const BinaryLoop&, const void* xs, const void* ys, void* zs, int64_t n,
                             double) {
  using D = hn::ScalableTag<T>;
  using M = VectorMath<D>;
  const D d;
  const T* in = static_cast<const T*>(kFirst ? ys : xs);
  T* z = static_cast<T*>(zs);
  const hn::Vec<D> number = hn::Set(d, *static_cast<const T*>(kFirst ? xs : ys));
  const auto apply = [number](hn::Vec<D> v) HWY_ATTR {
    return kFirst ? F::template Apply<M>(number, v) : F::template Apply<M>(v, number);
  };
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = apply(hn::LoadU(d, in + i)), b = apply(hn::LoadU(d, in + i + lanes));
    hn::StoreU(a, d, z + i);
    hn::StoreU(b, d, z + i + lanes);
  }
  for (; i + lanes <= n; i += lanes) hn::StoreU(apply(hn::LoadU(d, in + i)), d, z + i);
  if (i < n) StorePartial(d, apply(LoadTail(d, in + i, n - i)), z + i, n - i);
}

// With the op's parameter as an additional argument: Apply<M>(x, p), Apply<M>(x, y, p).
template <class F, class T, class M = VectorMath<hn::ScalableTag<T>>>
void UnaryVectorLoopP(const UnaryLoop&, const void* xs, void* ys, int64_t n, double p) {
  using D = hn::ScalableTag<T>;
  const D d;
  const T* x = static_cast<const T*>(xs);
  T* y = static_cast<T*>(ys);
  const hn::Vec<D> param = M::Num(p);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(F::template Apply<M>(hn::LoadU(d, x + i), param), d, y + i);
  if (i < n) StorePartial(d, F::template Apply<M>(LoadTail(d, x + i, n - i), param), y + i, n - i);
}
template <class F, class T, class M = VectorMath<hn::ScalableTag<T>>>
void BinaryVectorLoopP(const BinaryLoop&, const void* xs, const void* ys, void* zs, int64_t n,
                       double p) {
  using D = hn::ScalableTag<T>;
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
    StorePartial(d,
                 F::template Apply<M>(LoadTail(d, x + i, n - i), LoadTail(d, y + i, n - i), param),
                 z + i, n - i);
  }
}

template <class F, class T, class M>
constexpr UnaryLoop::Fn UnaryVectorFn() {
  if constexpr (F::kParam == nullptr)
    return UnaryVectorLoop<F, T, M>;
  else
    return UnaryVectorLoopP<F, T, M>;
}
// Functors state the cost of a float.
constexpr size_t kFloatBytes = 4;
template <class F, class T>
void AddUnaryVector(LoopRegistry* t) {
  if constexpr (internal::HasVectorLoop<F, T>()) {
    const UnaryLoop::Fn run = UnaryVectorFn<F, T, VectorMath<hn::ScalableTag<T>>>();
    UnaryLoop& loop = internal::AddUnaryLoop<F, T>(t, run, sizeof(T) / kFloatBytes);
    if constexpr (F::kStage) loop.stage = Stages<T>::template UnaryStage<F>();
  }
}
template <class F, class T, class M>
constexpr BinaryLoop::Fn BinaryVectorFn() {
  if constexpr (F::kParam == nullptr)
    return BinaryVectorLoop<F, T, M>;
  else
    return BinaryVectorLoopP<F, T, M>;
}
template <class F, class T>
void AddBinaryVector(LoopRegistry* t) {
  if constexpr (internal::HasVectorLoop<F, T>()) {
    const BinaryLoop::Fn run = BinaryVectorFn<F, T, VectorMath<hn::ScalableTag<T>>>();
    BinaryLoop& loop = internal::AddBinaryLoop<F, T>(t, run, sizeof(T) / kFloatBytes);
    if constexpr (F::kScalarLoops) {
      loop.scalar_first = ScalarOperandVectorLoop<F, T, true>;
      loop.scalar_second = ScalarOperandVectorLoop<F, T, false>;
    }
    if constexpr (F::kStage) loop.stages = Stages<T>::template StagesOf<F>();
  }
}

// Add the entries of 16-bit floats whose steps are rounded.
template <class F, class... Ns>
void AddUnaryRounded(LoopRegistry* t, List<Ns...>) {
  using M = VectorMath<hn::ScalableTag<float>>;
  if constexpr (F::kRoundsSteps) {
    (t->WidenUnary(F::kOp, DataTypeOf<Ns>::value, UnaryVectorFn<F, float, RoundedMath<M, Ns>>()),
     ...);
  }
}
template <class F, class... Ns>
void AddBinaryRounded(LoopRegistry* t, List<Ns...>) {
  using M = VectorMath<hn::ScalableTag<float>>;
  if constexpr (F::kRoundsSteps) {
    (t->WidenBinary(F::kOp, DataTypeOf<Ns>::value, BinaryVectorFn<F, float, RoundedMath<M, Ns>>()),
     ...);
  }
}

// Add the entries for float and double of functors that have vector forms, and those of 16-bit
// floats whose steps are rounded.
template <class... Fs>
void AddUnaryVectors(LoopRegistry* t, Functors<Fs...>) {
  (AddUnaryVector<Fs, float>(t), ...);
  (AddUnaryVector<Fs, double>(t), ...);
  (AddUnaryRounded<Fs>(t, NarrowFloats()), ...);
}
template <class... Fs>
void AddBinaryVectors(LoopRegistry* t, Functors<Fs...>) {
  (AddBinaryVector<Fs, float>(t), ...);
  (AddBinaryVector<Fs, double>(t), ...);
  (AddBinaryRounded<Fs>(t, NarrowFloats()), ...);
}
