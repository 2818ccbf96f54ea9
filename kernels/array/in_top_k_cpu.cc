#include "weir/kernels/array/in_top_k.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/array/in_top_k_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// A row is read in blocks: vectors count the larger elements and collect those that are not finite.
// After each block the answer may be known, and the rest of the row is not read: if the target is
// not among the first, a few dozen elements of random ones suffice.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/partial_vectors-inl.h"

bool FewLarger(const float* row, int64_t n, float value, int64_t k) {
  constexpr int64_t kBlock = 64;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto limit = hn::Set(d, value);
  int64_t larger = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    auto finite = hn::IsFinite(limit);
    const auto count = [&](hn::Vec<decltype(d)> x) HWY_ATTR {
      larger += static_cast<int64_t>(hn::CountTrue(d, hn::Gt(x, limit)));
      finite = hn::And(finite, hn::IsFinite(x));
    };
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) count(hn::LoadU(d, row + i));
    if (i < end) count(LoadPartial(d, row + i, end - i, value));
    if (larger >= k || !hn::AllTrue(d, finite)) return false;
  }
  return larger < k;
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(FewLarger);

bool HasFewLarger(const float* row, int64_t n, float value, int64_t k) {
  return HWY_DYNAMIC_DISPATCH(FewLarger)(row, n, value, k);
}

}  // namespace weir
#endif  // HWY_ONCE
