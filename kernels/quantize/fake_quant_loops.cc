#include "weir/kernels/quantize/fake_quant_loops.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize/fake_quant_loops.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/partial_vectors-inl.h"

// Calls fn(i, phase, n) for elements [i, i + n), a vector or less, and their ranges [phase, phase +
// n).
template <class Tag, class Fn>
HWY_INLINE void ForEachVector(Tag d, const FakeQuantRanges& ranges, int64_t begin, int64_t end,
                              const Fn& fn) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = begin, phase = begin % ranges.period(); i < end; phase = 0) {
    const int64_t stop = std::min(end, i + ranges.period() - phase);
    for (; i < stop; i += lanes, phase += lanes) fn(i, phase, std::min(lanes, stop - i));
    i = stop;
  }
}
template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadSome(Tag d, const float* x, int64_t n) {
  return n == static_cast<int64_t>(hn::Lanes(d)) ? hn::LoadU(d, x) : LoadPartial(d, x, n, 0.0f);
}
template <class Tag>
HWY_INLINE void StoreSome(Tag d, hn::Vec<Tag> v, float* y, int64_t n) {
  if (n == static_cast<int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, y);
  } else {
    StorePartial(d, v, y, n);
  }
}

template <bool kDivides>
HWY_INLINE void RoundAll(const FakeQuantRanges& r, const float* x, float* y, int64_t begin,
                         int64_t end) {
  const hn::ScalableTag<float> d;
  const auto half = hn::Set(d, 0.5f), none = hn::Zero(d);
  ForEachVector(d, r, begin, end, [&](int64_t i, int64_t phase, int64_t n) HWY_ATTR {
    const auto min = hn::LoadU(d, r.min() + phase), max = hn::LoadU(d, r.max() + phase);
    const auto scale = hn::LoadU(d, r.scale() + phase), v = LoadSome(d, x + i, n);
    const auto low = hn::IfThenElse(hn::Lt(max, v), max, v);  // NaN stays
    const auto offset = hn::Sub(hn::IfThenElse(hn::Lt(low, min), min, low), min);
    const auto steps =
        kDivides ? hn::Div(offset, scale) : hn::Mul(offset, hn::LoadU(d, r.inverse() + phase));
    const auto shifted = hn::Add(hn::Sub(steps, hn::LoadU(d, r.zero() + phase)), half);
    const auto is_empty = hn::Gt(hn::LoadU(d, r.empty() + phase), none);
    StoreSome(d, hn::IfThenZeroElse(is_empty, hn::Mul(hn::Floor(shifted), scale)), y + i, n);
  });
}
void RoundByDividing(const FakeQuantRanges& r, const float* x, float* y, int64_t begin,
                     int64_t end) {
  RoundAll<true>(r, x, y, begin, end);
}
void RoundByMultiplying(const FakeQuantRanges& r, const float* x, float* y, int64_t begin,
                        int64_t end) {
  RoundAll<false>(r, x, y, begin, end);
}

void PassGradient(const FakeQuantRanges& r, const float* dy, const float* x, float* dx,
                  int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const auto none = hn::Zero(d);
  ForEachVector(d, r, begin, end, [&](int64_t i, int64_t phase, int64_t n) HWY_ATTR {
    const auto v = LoadSome(d, x + i, n), g = LoadSome(d, dy + i, n);
    const auto inside =
        hn::And(hn::Ge(v, hn::LoadU(d, r.min() + phase)), hn::Le(v, hn::LoadU(d, r.max() + phase)));
    const auto is_empty = hn::Gt(hn::LoadU(d, r.empty() + phase), none);
    StoreSome(d, hn::IfThenElse(hn::Or(inside, is_empty), g, hn::Mul(g, none)), dx + i, n);
  });
}

void AddGradient(const FakeQuantRanges& r, const float* dy, const float* x, int64_t begin,
                 int64_t end, double* below, double* above) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> d;
  const auto none = hn::Zero(d);
  ForEachVector(d, r, begin, end, [&](int64_t i, int64_t phase, int64_t n) HWY_ATTR {
    const auto v = LoadSome(d, x + i, n), g = LoadSome(d, dy + i, n);
    const auto counts = hn::Le(hn::LoadU(d, r.empty() + phase), none);
    const auto low = hn::And(counts, hn::Lt(v, hn::LoadU(d, r.min() + phase)));
    const auto high = hn::And(counts, hn::Gt(v, hn::LoadU(d, r.max() + phase)));
    const auto add = [&](auto mask, double* sums) HWY_ATTR {
      const auto term = hn::PromoteTo(dd, hn::IfThenElseZero(mask, g));
      if (n == static_cast<int64_t>(hn::Lanes(d))) {
        hn::StoreU(hn::Add(hn::LoadU(dd, sums), term), dd, sums);
      } else {
        StorePartial(dd, hn::Add(LoadPartial(dd, sums, n, 0.0), term), sums, n);
      }
    };
    add(low, below + phase);
    add(high, above + phase);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {
HWY_EXPORT(RoundByDividing);
HWY_EXPORT(RoundByMultiplying);
HWY_EXPORT(PassGradient);
HWY_EXPORT(AddGradient);

// Whole vectors of every instruction set, and for few channels so many that sums do not wait for
// each other.
int64_t PeriodOf(int64_t channels) {
  constexpr int64_t kLanes = 16, kMany = 64;
  return channels >= kMany           ? channels
         : channels < kMany / kLanes ? channels * kMany
                                     : channels * kLanes;
}

}  // namespace

FakeQuantRanges::FakeQuantRanges(const std::vector<FakeQuantRange>& channels)
    : channels_(static_cast<int64_t>(channels.size())),
      period_(std::max<int64_t>(PeriodOf(channels_), 1)),
      numbers_(kFields * (period_ + kPadding)) {
  for (int64_t i = 0; channels_ > 0 && i < period_; ++i) {
    const FakeQuantRange& r = channels[i % channels_];
    const float fields[kFields] = {r.min, r.max, r.scale, r.inverse, r.zero, r.empty ? 1.0f : 0.0f};
    for (int k = 0; k < kFields; ++k) numbers_[k * (period_ + kPadding) + i] = fields[k];
  }
}

void RoundToPoints(const FakeQuantRanges& ranges, bool divides, const float* x, float* y,
                   int64_t begin, int64_t end) {
  if (divides) {
    HWY_DYNAMIC_DISPATCH(RoundByDividing)(ranges, x, y, begin, end);
  } else {
    HWY_DYNAMIC_DISPATCH(RoundByMultiplying)(ranges, x, y, begin, end);
  }
}
void PassInRange(const FakeQuantRanges& ranges, const float* dy, const float* x, float* dx,
                 int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(PassGradient)(ranges, dy, x, dx, begin, end);
}
void AddOutOfRange(const FakeQuantRanges& ranges, const float* dy, const float* x, int64_t begin,
                   int64_t end, double* below, double* above) {
  HWY_DYNAMIC_DISPATCH(AddGradient)(ranges, dy, x, begin, end, below, above);
}

}  // namespace weir
#endif  // HWY_ONCE
