#include "weir/kernels/lib/narrow_floats.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lib/narrow_floats.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// The conversions of numeric_types.h, step by step, on vectors of 32 bits. The processor's own
// instructions for halves (F16C) keep the payloads of NaNs, which the scalar conversions do not,
// and the baseline lacks them; these few integer operations are no slower than memory.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DU = hn::RebindToUnsigned<DF>;
using DN = hn::Rebind<uint16_t, DU>;
using VF = hn::Vec<DF>;
using VU = hn::Vec<DU>;

HWY_INLINE VU Bits(uint32_t bits) { return hn::Set(DU(), bits); }

struct HalfVectors {
  static HWY_INLINE VU Widen(VU h) {
    const VU sign = hn::ShiftLeft<16>(hn::And(h, Bits(0x8000)));
    const VU magnitude = hn::ShiftLeft<13>(hn::And(h, Bits(0x7fff)));
    const VU exponent = hn::And(h, Bits(0x7c00)), least = Bits(0x38800000);
    const VF excess =
        hn::Sub(hn::BitCast(DF(), hn::Add(magnitude, least)), hn::BitCast(DF(), least));
    const VU rebias =
        hn::IfThenElse(hn::Eq(exponent, Bits(0x7c00)), Bits(0x70000000), Bits(0x38000000));
    const VU size = hn::IfThenElse(hn::Eq(exponent, Bits(0)), hn::BitCast(DU(), excess),
                                   hn::Add(magnitude, rebias));
    return hn::Or(sign, size);
  }
  static HWY_INLINE VU Narrow(VU bits) {
    const VU sign = hn::And(hn::ShiftRight<16>(bits), Bits(0x8000));
    const VU x = hn::And(bits, Bits(0x7fffffff));
    const VF rounded = hn::Add(hn::BitCast(DF(), x), hn::Set(DF(), 0.5f));
    const VU subnormal = hn::Sub(hn::BitCast(DU(), rounded), Bits(0x3f000000));
    const VU odd = hn::And(hn::ShiftRight<13>(x), Bits(1));
    const VU normal = hn::ShiftRight<13>(hn::Add(x, hn::Add(odd, Bits(0xc8000fff))));
    VU size = hn::IfThenElse(hn::Lt(x, Bits(0x38800000)), subnormal, normal);
    size = hn::IfThenElse(hn::Gt(x, Bits(0x477fefff)), Bits(0x7c00), size);
    size = hn::IfThenElse(hn::Gt(x, Bits(0x7f800000)), Bits(0x7e00), size);
    return hn::Or(sign, size);
  }
};

struct Bfloat16Vectors {
  static HWY_INLINE VU Widen(VU b) { return hn::ShiftLeft<16>(b); }
  static HWY_INLINE VU Narrow(VU bits) {
    const VU odd = hn::And(hn::ShiftRight<16>(bits), Bits(1));
    const VU rounded = hn::Add(bits, hn::Add(odd, Bits(0x7fff)));
    const auto is_nan = hn::Gt(hn::And(bits, Bits(0x7fffffff)), Bits(0x7f800000));
    return hn::ShiftRight<16>(hn::IfThenElse(is_nan, hn::Or(bits, Bits(0x400000)), rounded));
  }
};

// The tail of fewer elements than a vector has is computed one by one, by the same conversions of
// one number.
template <class Vectors, class N>
HWY_INLINE void WidenAll(const N* from, float* to, int64_t n) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(DF()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto narrow = hn::LoadU(DN(), reinterpret_cast<const uint16_t*>(from + i));
    hn::StoreU(hn::BitCast(DF(), Vectors::Widen(hn::PromoteTo(DU(), narrow))), DF(), to + i);
  }
  for (; i < n; ++i) to[i] = from[i];
}
template <class Vectors, class N>
HWY_INLINE void NarrowAll(const float* from, N* to, int64_t n) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(DF()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VU narrow = Vectors::Narrow(hn::BitCast(DU(), hn::LoadU(DF(), from + i)));
    hn::StoreU(hn::TruncateTo(DN(), narrow), DN(), reinterpret_cast<uint16_t*>(to + i));
  }
  for (; i < n; ++i) to[i] = N(from[i]);
}

void WidenHalf(const half* from, float* to, int64_t n) { WidenAll<HalfVectors>(from, to, n); }
void WidenBfloat16(const bfloat16* from, float* to, int64_t n) {
  WidenAll<Bfloat16Vectors>(from, to, n);
}
void NarrowHalf(const float* from, half* to, int64_t n) { NarrowAll<HalfVectors>(from, to, n); }
void NarrowBfloat16(const float* from, bfloat16* to, int64_t n) {
  NarrowAll<Bfloat16Vectors>(from, to, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {
HWY_EXPORT(WidenHalf);
HWY_EXPORT(WidenBfloat16);
HWY_EXPORT(NarrowHalf);
HWY_EXPORT(NarrowBfloat16);
}  // namespace

void Widen(const half* from, float* to, int64_t n) { HWY_DYNAMIC_DISPATCH(WidenHalf)(from, to, n); }
void Widen(const bfloat16* from, float* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(WidenBfloat16)(from, to, n);
}
void Narrow(const float* from, half* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(NarrowHalf)(from, to, n);
}
void Narrow(const float* from, bfloat16* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(NarrowBfloat16)(from, to, n);
}

}  // namespace weir
#endif  // HWY_ONCE
