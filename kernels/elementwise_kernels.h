#ifndef WEIR_KERNELS_ELEMENTWISE_KERNELS_H_
#define WEIR_KERNELS_ELEMENTWISE_KERNELS_H_

#include <type_traits>

#include "weir/core/dtype.h"
#include "weir/kernels/elementwise_loops.h"
#include "weir/kernels/scalar_math.h"

// Scalar loops for functors, and registry entries for the types without explicit vectorization. The
// compiler vectorizes the simple ones.
namespace weir {

// Calls fn(i) for every i in [0, n); fn may access only elements i. Runs in blocks of constant
// length: GCC at -O2 vectorizes no other loop (a comparison of floats takes 0.1 ns per element
// instead of 0.46).
template <class Fn>
void ForEachInBlocks(int64_t n, Fn fn) {
  constexpr int64_t kBlock = 64;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
#pragma GCC ivdep
    for (int64_t k = 0; k < kBlock; ++k) fn(i + k);
  }
  for (; i < n; ++i) fn(i);
}

template <class F>
constexpr double LoopCost() {
  if constexpr (requires { F::kCost; })
    return F::kCost;
  else
    return 0.2;
}

template <class F, class T>
void UnaryScalarLoop(const UnaryLoop&, const void* xs, void* ys, int64_t n, double) {
  const T* x = static_cast<const T*>(xs);
  T* y = static_cast<T*>(ys);
  ForEachInBlocks(n, [&](int64_t i) { y[i] = F::template Apply<ScalarMath<T>>(x[i]); });
}
template <class F, class T>
void BinaryScalarLoop(const BinaryLoop&, const void* xs, const void* ys, void* zs, int64_t n,
                      double) {
  const T *x = static_cast<const T*>(xs), *y = static_cast<const T*>(ys);
  T* z = static_cast<T*>(zs);
  ForEachInBlocks(n, [&](int64_t i) { z[i] = F::template Apply<ScalarMath<T>>(x[i], y[i]); });
}
// For functions whose result has another type: Apply(x), Apply(x, y) without M.
template <class F, class T>
void UnaryPlainLoop(const UnaryLoop&, const void* xs, void* ys, int64_t n, double) {
  using R = decltype(F::Apply(T()));
  const T* x = static_cast<const T*>(xs);
  R* y = static_cast<R*>(ys);
  ForEachInBlocks(n, [&](int64_t i) { y[i] = F::Apply(x[i]); });
}
template <class F, class T>
void BinaryPlainLoop(const BinaryLoop&, const void* xs, const void* ys, void* zs, int64_t n,
                     double) {
  using R = decltype(F::Apply(T(), T()));
  const T *x = static_cast<const T*>(xs), *y = static_cast<const T*>(ys);
  R* z = static_cast<R*>(zs);
  ForEachInBlocks(n, [&](int64_t i) { z[i] = F::Apply(x[i], y[i]); });
}

namespace internal {

template <class T>
inline constexpr bool kHasVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class F, class T, bool kFloatsToo>
void AddUnaryType(LoopRegistry* t) {
  if constexpr (!kIsNarrowFloat<T> && (kFloatsToo || !kHasVectors<T>)) {
    const double scale = IsComplex(DataTypeOf<T>::value) ? 10 : 1;
    t->AddUnary(F::kOp, DataTypeOf<T>::value, DataTypeOf<T>::value, UnaryScalarLoop<F, T>,
                scale * LoopCost<F>());
  }
}
template <class F, class T, bool kFloatsToo>
void AddBinaryType(LoopRegistry* t) {
  if constexpr (!kIsNarrowFloat<T> && (kFloatsToo || !kHasVectors<T>)) {
    const double scale = IsComplex(DataTypeOf<T>::value) ? 4 : 1;
    t->AddBinary(F::kOp, DataTypeOf<T>::value, DataTypeOf<T>::value, BinaryScalarLoop<F, T>,
                 scale * LoopCost<F>());
  }
}
// Adds the 16-bit floats of a list, which are computed by the entry for float. That entry must
// exist already.
template <class F, class... Ts>
void WidenUnary(LoopRegistry* t, List<Ts...>) {
  ((kIsNarrowFloat<Ts> ? t->WidenUnary(F::kOp, DataTypeOf<Ts>::value) : void()), ...);
}
template <class F, class... Ts>
void WidenBinary(LoopRegistry* t, List<Ts...>) {
  ((kIsNarrowFloat<Ts> ? t->WidenBinary(F::kOp, DataTypeOf<Ts>::value) : void()), ...);
}
template <class F, bool kFloatsToo, class... Ts>
void AddUnaryTypes(LoopRegistry* t, List<Ts...> types) {
  (AddUnaryType<F, Ts, kFloatsToo>(t), ...);
  WidenUnary<F>(t, types);
}
template <class F, bool kFloatsToo, class... Ts>
void AddBinaryTypes(LoopRegistry* t, List<Ts...> types) {
  (AddBinaryType<F, Ts, kFloatsToo>(t), ...);
  WidenBinary<F>(t, types);
}

}  // namespace internal

// Adds every type of F::Types except float and double, whose (vectorized) entries exist already.
template <class... Fs>
void AddUnaryOtherTypes(LoopRegistry* t) {
  (internal::AddUnaryTypes<Fs, false>(t, typename Fs::Types()), ...);
}
template <class... Fs>
void AddBinaryOtherTypes(LoopRegistry* t) {
  (internal::AddBinaryTypes<Fs, false>(t, typename Fs::Types()), ...);
}
// Adds every type of F::Types with scalar loops: for functions that have no vector form.
template <class... Fs>
void AddUnaryScalars(LoopRegistry* t) {
  (internal::AddUnaryTypes<Fs, true>(t, typename Fs::Types()), ...);
}
template <class... Fs>
void AddBinaryScalars(LoopRegistry* t) {
  (internal::AddBinaryTypes<Fs, true>(t, typename Fs::Types()), ...);
}

}  // namespace weir

#endif  // WEIR_KERNELS_ELEMENTWISE_KERNELS_H_
