#include "weir/kernels/array/fill_range.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/array/fill_range.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void Fill(uint64_t first, uint64_t step, int64_t n, T* to) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T start[hn::MaxLanes(d)];
  for (int64_t k = 0; k < lanes; ++k)
    start[k] = static_cast<T>(first + static_cast<uint64_t>(k) * step);
  auto v = hn::Load(d, start);
  const auto advance = hn::Set(d, static_cast<T>(static_cast<uint64_t>(lanes) * step));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes, v = hn::Add(v, advance)) hn::StoreU(v, d, to + i);
  hn::Store(v, d, start);
  for (int64_t k = 0; i + k < n; ++k) to[i + k] = start[k];
}

void Run(size_t size, uint64_t first, uint64_t step, int64_t n, void* to) {
  switch (size) {
    case 1:
      return Fill(first, step, n, static_cast<uint8_t*>(to));
    case 2:
      return Fill(first, step, n, static_cast<uint16_t*>(to));
    case 4:
      return Fill(first, step, n, static_cast<uint32_t*>(to));
    default:
      return Fill(first, step, n, static_cast<uint64_t*>(to));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(Run);

void FillRange(size_t size, uint64_t first, uint64_t step, int64_t n, void* to) {
  HWY_DYNAMIC_DISPATCH(Run)(size, first, step, n, to);
}

}  // namespace weir
#endif  // HWY_ONCE
