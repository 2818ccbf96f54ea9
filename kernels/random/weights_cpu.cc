#include "weir/kernels/random/weights.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random/weights_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/partial_vectors-inl.h"

// Not a NaN either.
template <class D>
HWY_INLINE hn::Mask<D> IsFinite(D d, hn::Vec<D> x) {
  return hn::Le(hn::Abs(x), hn::Set(d, std::numeric_limits<hn::TFromD<D>>::max()));
}

template <class T>
double Largest(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T infinity = std::numeric_limits<T>::infinity();
  const auto none = hn::Set(d, -infinity);
  auto largest = none;
  const auto add = [&](hn::Vec<decltype(d)> v) HWY_ATTR {
    largest = hn::Max(largest, hn::IfThenElse(IsFinite(d, v), v, none));
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) add(hn::LoadU(d, x + i));
  if (i < n) add(LoadPartial(d, x + i, n - i, infinity));
  const T found = hn::GetLane(hn::MaxOfLanes(d, largest));
  return found == -infinity ? std::numeric_limits<double>::lowest() : static_cast<double>(found);
}

template <class D, class V>
HWY_INLINE hn::Vec<D> Widen(D d, V x) {
  if constexpr (sizeof(hn::TFromV<V>) == sizeof(double)) {
    return x;
  } else {
    return hn::PromoteTo(d, x);
  }
}

template <class T>
double Exps(double max, const T* x, int64_t n, double* weights) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<T, decltype(d)> from;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto low = hn::Set(d, -700.0);
  auto sum = hn::Zero(d);
  const auto weigh = [&](hn::Vec<decltype(from)> v) HWY_ATTR {
    const auto logit = Widen(d, v);
    const auto below = hn::Sub(logit, hn::Set(d, max));
    const auto counts = hn::And(IsFinite(d, logit), hn::Ge(below, low));
    const auto weight = hn::IfThenElseZero(counts, hn::Exp(d, hn::IfThenElse(counts, below, low)));
    sum = hn::Add(sum, weight);
    return weight;
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(weigh(hn::LoadU(from, x + i)), d, weights + i);
  if (i < n) {
    const T none = -std::numeric_limits<T>::infinity();
    StorePartial(d, weigh(LoadPartial(from, x + i, n - i, none)), weights + i, n - i);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

double LargestFloat(const float* x, int64_t n) { return Largest(x, n); }
double LargestDouble(const double* x, int64_t n) { return Largest(x, n); }
double ExpsOfFloats(double max, const float* x, int64_t n, double* weights) {
  return Exps(max, x, n, weights);
}
double ExpsOfDoubles(double max, const double* x, int64_t n, double* weights) {
  return Exps(max, x, n, weights);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(LargestFloat);
HWY_EXPORT(LargestDouble);
HWY_EXPORT(ExpsOfFloats);
HWY_EXPORT(ExpsOfDoubles);

double LargestFinite(const float* logits, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(LargestFloat)(logits, n);
}
double LargestFinite(const double* logits, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(LargestDouble)(logits, n);
}
double ExpBelow(double max, const float* logits, int64_t n, double* weights) {
  return HWY_DYNAMIC_DISPATCH(ExpsOfFloats)(max, logits, n, weights);
}
double ExpBelow(double max, const double* logits, int64_t n, double* weights) {
  return HWY_DYNAMIC_DISPATCH(ExpsOfDoubles)(max, logits, n, weights);
}

}  // namespace weir
#endif  // HWY_ONCE
