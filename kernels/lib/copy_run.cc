#include "weir/kernels/lib/copy_run.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lib/copy_run.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void Copy(const uint8_t* from, uint8_t* to, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 2 * lanes <= bytes; i += 2 * lanes) {
    const auto a = hn::LoadU(d, from + i), b = hn::LoadU(d, from + i + lanes);
    hn::StoreU(a, d, to + i);
    hn::StoreU(b, d, to + i + lanes);
  }
  std::memcpy(to + i, from + i, bytes - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(Copy);

void internal::CopyVectors(const void* from, void* to, size_t bytes) {
  HWY_DYNAMIC_DISPATCH(Copy)
  (static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to), bytes);
}

}  // namespace weir
#endif  // HWY_ONCE
