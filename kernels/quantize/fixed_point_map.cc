#include "weir/kernels/quantize/fixed_point_map.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize/fixed_point_map.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// The sum x * scale / 2^32 + offset needs up to 96 bits, but only for integers whose result is
// clamped, and these are known beforehand: the map is monotone, so the other integers are an
// interval, whose ends a binary search finds. Inside of it the sum fits 24 bits, and 32-bit
// arithmetic that wraps around gives it. With scale = high * 2^32 + low, where low is signed,
//
//   floor(x * scale / 2^32) = x * high + floor(x * low / 2^32)

#ifndef WEIR_KERNELS_FIXED_POINT_MAP_ONCE_
#define WEIR_KERNELS_FIXED_POINT_MAP_ONCE_
namespace weir {

struct FixedPointConstants {
  int32_t scale_low, scale_high, offset;
  int32_t first_inside, last_inside;
  int32_t below, above;
};

}  // namespace weir
#endif  // WEIR_KERNELS_FIXED_POINT_MAP_ONCE_

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the number of integers that were mapped: all but less than a vector.
#if HWY_TARGET == HWY_SCALAR
int64_t MapVectors(const FixedPointConstants&, const int32_t*, int64_t, uint8_t*) { return 0; }
#else
int64_t MapVectors(const FixedPointConstants& c, const int32_t* x, int64_t n, uint8_t* y) {
  const hn::ScalableTag<int32_t> d;
  const hn::RepartitionToWide<hn::RebindToUnsigned<decltype(d)>> wide;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto low = hn::Set(d, c.scale_low), high = hn::Set(d, c.scale_high);
  const auto first = hn::Set(d, c.first_inside), last = hn::Set(d, c.last_inside);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto odd_elements = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, v)));
    const auto even = hn::ShiftRight<32>(hn::BitCast(wide, hn::MulEven(v, low)));
    const auto odd = hn::MulEven(odd_elements, low);
    const auto product = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, even));
    const auto sum = hn::Add(hn::Add(hn::Mul(v, high), product), hn::Set(d, c.offset));
    const auto inside = hn::ShiftRight<16>(sum);
    const auto capped = hn::IfThenElse(hn::Gt(v, last), hn::Set(d, c.above), inside);
    const auto result = hn::IfThenElse(hn::Lt(v, first), hn::Set(d, c.below), capped);
    hn::StoreU(hn::DemoteTo(bytes, result), bytes, y + i);
  }
  return i;
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(MapVectors);

namespace {

constexpr int64_t kLowest = std::numeric_limits<int32_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int32_t>::max();

// Returns the first 32-bit integer for which `is_past` holds; kHighest + 1 if there is none.
template <class IsPast>
int64_t FindFirst(const IsPast& is_past) {
  int64_t first = kLowest, last = kHighest + 1;
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (is_past(middle)) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

}  // namespace

FixedPointMap::FixedPointMap(int64_t scale, __int128 offset)
    : scale_low_(static_cast<int32_t>(scale)),
      scale_high_(static_cast<int32_t>((scale - scale_low_) >> 32)),
      offset_(static_cast<int32_t>(offset)),
      below_(scale < 0 ? 255 : 0),
      above_(scale < 0 ? 0 : 255) {
  constexpr int64_t kEnd = 256 << 16;  // of the sums that are not clamped
  const auto sum = [&](int64_t x) { return ((static_cast<__int128>(x) * scale) >> 32) + offset; };
  first_inside_ = FindFirst([&](int64_t x) { return scale < 0 ? sum(x) < kEnd : sum(x) >= 0; });
  first_above_ = FindFirst([&](int64_t x) { return scale < 0 ? sum(x) < 0 : sum(x) >= kEnd; });
}

void FixedPointMap::Apply(const int32_t* x, int64_t n, uint8_t* y) const {
  if (first_inside_ > kHighest) {
    std::fill_n(y, n, below_);
    return;
  }
  if (first_above_ <= kLowest) {
    std::fill_n(y, n, above_);
    return;
  }
  const FixedPointConstants constants = {scale_low_,
                                         scale_high_,
                                         offset_,
                                         static_cast<int32_t>(first_inside_),
                                         static_cast<int32_t>(first_above_ - 1),
                                         below_,
                                         above_};
  for (int64_t i = HWY_DYNAMIC_DISPATCH(MapVectors)(constants, x, n, y); i < n; ++i) {
    const int64_t product = (int64_t{x[i]} * scale_low_) >> 32;
    const int64_t sum = int64_t{x[i]} * scale_high_ + product + offset_;
    const uint8_t inside = static_cast<uint8_t>(static_cast<uint32_t>(sum) >> 16);
    y[i] = x[i] < first_inside_ ? below_ : x[i] >= first_above_ ? above_ : inside;
  }
}

}  // namespace weir
#endif  // HWY_ONCE
