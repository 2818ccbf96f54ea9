#ifndef WEIR_KERNELS_MATH_ELEMENTWISE_KERNELS_H_
#define WEIR_KERNELS_MATH_ELEMENTWISE_KERNELS_H_

#include <type_traits>

#include "weir/core/tensor/dtype.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/math/elementwise_loops.h"
#include "weir/kernels/math/functor.h"

// Scalar loops for functors, and registry entries for the types without explicit vectorization. The
// compiler vectorizes the simple ones.
namespace weir {

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

template <class F, class T>
constexpr bool HasVectorLoop() {
  return F::kVectorized && std::is_floating_point_v<T> && kContains<T, typename F::Types>;
}

// Rejects integers that an op is not defined for.
template <IntegerDomain kDomain, class T>
absl::Status CheckSecondInput(const Tensor&, const Tensor& y) {
  for (const T v : y.flat<T>()) {
    if (kDomain == IntegerDomain::kNonzero && v == T(0))
      return InvalidArgument("Integer division by zero");
    if (kDomain == IntegerDomain::kNonnegative && v < T(0))
      return InvalidArgument("Integers to negative integer powers are not allowed");
  }
  return absl::OkStatus();
}

// Add the entry of a functor for one type. Its elements cost `scale` times as much as a float.
template <class F, class T>
UnaryLoop& AddUnaryLoop(LoopRegistry* t, UnaryLoop::Fn run, double scale) {
  constexpr DataType kType = DataTypeOf<T>::value;
  UnaryLoop& loop = t->AddUnary(F::kOp, kType, kType, run, scale * F::kCost);
  loop.param = F::kParam;
  return loop;
}
template <class F, class T>
BinaryLoop& AddBinaryLoop(LoopRegistry* t, BinaryLoop::Fn run, double scale) {
  constexpr DataType kType = DataTypeOf<T>::value;
  BinaryLoop& loop = t->AddBinary(F::kOp, kType, kType, run, scale * F::kCost);
  loop.param = F::kParam;
  loop.broadcasts = F::kBroadcasts;
  if constexpr (std::is_integral_v<T> && F::kSecondInput != IntegerDomain::kAll)
    loop.check = CheckSecondInput<F::kSecondInput, T>;
  return loop;
}

template <class F, class T>
void AddUnaryScalarLoop(LoopRegistry* t) {
  if constexpr (!kIsNarrowFloat<T> && !HasVectorLoop<F, T>())
    AddUnaryLoop<F, T>(t, UnaryScalarLoop<F, T>, ScalarMath<T>::kComplex ? 10 : 1);
}
template <class F, class T>
void AddBinaryScalarLoop(LoopRegistry* t) {
  if constexpr (!kIsNarrowFloat<T> && !HasVectorLoop<F, T>())
    AddBinaryLoop<F, T>(t, BinaryScalarLoop<F, T>, ScalarMath<T>::kComplex ? 4 : 1);
}
// Add the 16-bit floats of a list, which are computed by the entry for float. That entry must exist
// already.
template <class... Ts>
void WidenUnary(LoopRegistry* t, const char* op, List<Ts...>) {
  ((kIsNarrowFloat<Ts> ? t->WidenUnary(op, DataTypeOf<Ts>::value) : void()), ...);
}
template <class... Ts>
void WidenBinary(LoopRegistry* t, const char* op, List<Ts...>) {
  ((kIsNarrowFloat<Ts> ? t->WidenBinary(op, DataTypeOf<Ts>::value) : void()), ...);
}
template <class F, class... Ts>
void AddUnaryTypes(LoopRegistry* t, List<Ts...> types) {
  (AddUnaryScalarLoop<F, Ts>(t), ...);
  if constexpr (!F::kRoundsSteps) WidenUnary(t, F::kOp, types);
}
template <class F, class... Ts>
void AddBinaryTypes(LoopRegistry* t, List<Ts...> types) {
  (AddBinaryScalarLoop<F, Ts>(t), ...);
  if constexpr (!F::kRoundsSteps) WidenBinary(t, F::kOp, types);
}

}  // namespace internal

// Add every type of functors' Types that has no entry with a vector loop. Those entries exist
// already.
template <class... Fs>
void AddUnaryOtherTypes(LoopRegistry* t, Functors<Fs...>) {
  (internal::AddUnaryTypes<Fs>(t, typename Fs::Types()), ...);
}
template <class... Fs>
void AddBinaryOtherTypes(LoopRegistry* t, Functors<Fs...>) {
  (internal::AddBinaryTypes<Fs>(t, typename Fs::Types()), ...);
}

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_ELEMENTWISE_KERNELS_H_
