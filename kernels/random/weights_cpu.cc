#include "weir/kernels/random/weights.h"

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

void Exps(double max, double* values, int64_t n) {
  const hn::ScalableTag<double> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto low = hn::Set(d, -700.0);
  const auto weight = [&](hn::Vec<decltype(d)> x) HWY_ATTR {
    const auto below = hn::Sub(x, hn::Set(d, max));
    return hn::IfThenZeroElse(hn::Lt(below, low), hn::Exp(d, hn::Max(below, low)));
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(weight(hn::LoadU(d, values + i)), d, values + i);
  if (i < n) StorePartial(d, weight(LoadPartial(d, values + i, n - i, max)), values + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(Exps);

void ExpBelow(double max, double* values, int64_t n) { HWY_DYNAMIC_DISPATCH(Exps)(max, values, n); }

}  // namespace weir
#endif  // HWY_ONCE
