#include "weir/kernels/lib/non_temporal.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lib/non_temporal.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weir::non_temporal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

bool VectorsAreLines() { return hn::MaxLanes(hn::ScalableTag<uint8_t>()) >= 64; }

void CopyLines(const uint8_t* from, uint8_t* to, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  for (size_t i = 0; i < bytes; i += hn::Lanes(d)) hn::Stream(hn::LoadU(d, from + i), d, to + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::non_temporal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::non_temporal {

HWY_EXPORT(VectorsAreLines);
HWY_EXPORT(CopyLines);

namespace {

// The share of some cores of a server's processor. The C library reports the L3 size of all cores
// of the machine.
constexpr size_t kCache = size_t{32} << 20;

}  // namespace

bool Pays(size_t bytes) {
  static const bool lines = HWY_DYNAMIC_DISPATCH(VectorsAreLines)();
  return bytes > kCache && lines;
}

void Copy(const void* from, void* to, size_t bytes) {
  const size_t lines = IsAligned(to, 0) ? bytes / kLine * kLine : 0;
  const auto* const in = static_cast<const uint8_t*>(from);
  auto* const out = static_cast<uint8_t*>(to);
  HWY_DYNAMIC_DISPATCH(CopyLines)(in, out, lines);
  std::memcpy(out + lines, in + lines, bytes - lines);
}

void Fence() { hwy::FlushStream(); }

}  // namespace weir::non_temporal
#endif  // HWY_ONCE
