#include "weir/kernels/image/color_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/image/color_rows.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weir::color_rows {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V Num(float c) { return hn::Set(D(), c); }

struct Color {
  V first, second, third;
};

// Applies f to vectors of pixels; those of the last one that are missing are zero.
template <class F>
HWY_INLINE void ForEachColor(const float* HWY_RESTRICT in, int64_t n, float* HWY_RESTRICT out,
                             const F& f) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto convert = [&](const float* from, float* to) HWY_ATTR {
    Color c;
    hn::LoadInterleaved3(d, from, c.first, c.second, c.third);
    const Color y = f(c);
    hn::StoreInterleaved3(y.first, y.second, y.third, d, to);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) convert(in + 3 * i, out + 3 * i);
  if (i < n) {
    HWY_ALIGN float rest[3 * hn::MaxLanes(D())] = {};
    std::copy(in + 3 * i, in + 3 * n, rest);
    convert(rest, rest);
    std::copy_n(rest, 3 * (n - i), out + 3 * i);
  }
}

// As std::max and std::min: the first operand unless the second one is beyond it.
HWY_INLINE V Larger(V a, V b) { return hn::IfThenElse(hn::Lt(a, b), b, a); }
HWY_INLINE V Smaller(V a, V b) { return hn::IfThenElse(hn::Lt(b, a), b, a); }

HWY_INLINE Color ToHsv(const Color& c) {
  const V red = c.first, green = c.second, blue = c.third, zero = Num(0);
  const V value = Larger(Larger(red, green), blue);
  const V range = hn::Sub(value, Smaller(Smaller(red, green), blue));
  const V saturation = hn::IfThenElseZero(hn::Gt(value, zero), hn::Div(range, value));
  const V norm = hn::Div(Num(1), hn::Mul(Num(6), range));
  const V from_red = hn::Mul(norm, hn::Sub(green, blue));
  const V from_green = hn::Add(hn::Mul(norm, hn::Sub(blue, red)), Num(2.0f / 6.0f));
  const V from_blue = hn::Add(hn::Mul(norm, hn::Sub(red, green)), Num(4.0f / 6.0f));
  V hue = hn::IfThenElse(hn::Eq(red, value), from_red,
                         hn::IfThenElse(hn::Eq(green, value), from_green, from_blue));
  hue = hn::IfThenElseZero(hn::Gt(range, zero), hue);
  return {hn::IfThenElse(hn::Lt(hue, zero), hn::Add(hue, Num(1)), hue), saturation, value};
}

HWY_INLINE Color ToRgb(const Color& c) {
  const V turn = hn::Mul(c.first, Num(6)), saturation = c.second, value = c.third;
  const auto part = [&](V share) HWY_ATTR {
    const V clamped = hn::IfThenElse(hn::Lt(share, Num(0)), Num(0),
                                     hn::IfThenElse(hn::Gt(share, Num(1)), Num(1), share));
    return hn::Mul(hn::Add(hn::Sub(Num(1), saturation), hn::Mul(saturation, clamped)), value);
  };
  const auto distance = [&](float from) HWY_ATTR { return hn::Abs(hn::Sub(turn, Num(from))); };
  return {part(hn::Sub(distance(3), Num(1))), part(hn::Sub(Num(2), distance(2))),
          part(hn::Sub(Num(2), distance(4)))};
}

HWY_INLINE hn::Mask<D> IsEither(V v, float a, float b) {
  return hn::Or(hn::Eq(v, Num(a)), hn::Eq(v, Num(b)));
}

// As ExtremesOf, RotateHue and ColorInSector in color_cpu.cc; a hue that is not a number is in no
// sector. Between -6 and 12 the remainder of a division by 6 is one exact addition.
HWY_INLINE Color Rotated(const Color& c, float turns) {
  const V red = c.first, green = c.second, blue = c.third;
  const auto rises = hn::Lt(red, green);
  const V high = hn::IfThenElse(rises, green, red), low = hn::IfThenElse(rises, red, green);
  const auto below = hn::Lt(blue, low), above = hn::Gt(blue, high);
  const V largest = hn::IfThenElse(above, blue, high), smallest = hn::IfThenElse(below, blue, low);
  const V middle = hn::IfThenElse(below, low, hn::IfThenElse(above, high, blue));
  const auto by = [&](float one, float two, float three) HWY_ATTR {
    return hn::IfThenElse(below, Num(one), hn::IfThenElse(above, Num(two), Num(three)));
  };
  const V sector = hn::IfThenElse(rises, by(1, 3, 2), by(0, 4, 5));
  const V range = hn::Sub(largest, smallest), ratio = hn::Div(hn::Sub(middle, smallest), range);
  const auto is_even = hn::Or(IsEither(sector, 0, 2), hn::Eq(sector, Num(4)));
  const V turned = hn::Add(sector, hn::IfThenElse(is_even, ratio, hn::Sub(Num(1), ratio)));
  V hue = hn::Add(hn::IfThenZeroElse(hn::Eq(largest, smallest), turned), Num(turns * 6));
  hue = hn::IfThenElse(hn::Ge(hue, Num(6)), hn::Sub(hue, Num(6)), hue);
  hue = hn::IfThenElse(hn::Lt(hue, Num(0)), hn::Add(hue, Num(6)), hue);
  hue = hn::IfThenElse(hn::Ge(hue, Num(6)), hn::Sub(hue, Num(6)), hue);
  const V to = hn::Trunc(hue), rest = hn::Sub(hue, to);
  const auto is_odd = hn::Or(IsEither(to, 1, 3), hn::Eq(to, Num(5)));
  const V share = hn::IfThenElse(is_odd, hn::Sub(Num(1), rest), rest);
  const V between = hn::Add(smallest, hn::Mul(share, range));
  const auto pick = [&](hn::Mask<D> first, V a, hn::Mask<D> second, V b, V other) HWY_ATTR {
    return hn::IfThenElse(first, a, hn::IfThenElse(second, b, other));
  };
  return {pick(IsEither(to, 1, 4), between, IsEither(to, 2, 3), smallest, largest),
          pick(IsEither(to, 1, 2), largest, IsEither(to, 0, 3), between, smallest),
          pick(IsEither(to, 0, 1), smallest, IsEither(to, 3, 4), largest, between)};
}

void HsvOf(const float* rgb, int64_t n, float* hsv) {
  ForEachColor(rgb, n, hsv, [](const Color& c) HWY_ATTR { return ToHsv(c); });
}
void RgbOf(const float* hsv, int64_t n, float* rgb) {
  ForEachColor(hsv, n, rgb, [](const Color& c) HWY_ATTR { return ToRgb(c); });
}

void Rotate(const float* rgb, float turns, int64_t n, float* out) {
  ForEachColor(rgb, n, out, [turns](const Color& c) HWY_ATTR { return Rotated(c, turns); });
}

void AddDoubles(const float* HWY_RESTRICT x, int64_t n, double* HWY_RESTRICT sums) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> floats;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto more = hn::PromoteTo(d, hn::LoadU(floats, x + i));
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), more), d, sums + i);
  }
  for (; i < n; ++i) sums[i] += static_cast<double>(x[i]);
}

void Scale(const float* HWY_RESTRICT x, const float* HWY_RESTRICT means, float factor, int64_t n,
           float* HWY_RESTRICT out) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V mean = hn::LoadU(d, means + i), difference = hn::Sub(hn::LoadU(d, x + i), mean);
    hn::StoreU(hn::Add(mean, hn::Mul(Num(factor), difference)), d, out + i);
  }
  for (; i < n; ++i) out[i] = means[i] + factor * (x[i] - means[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::color_rows
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::color_rows {

HWY_EXPORT(HsvOf);
HWY_EXPORT(RgbOf);
HWY_EXPORT(Rotate);
HWY_EXPORT(AddDoubles);
HWY_EXPORT(Scale);

void RgbToHsv(const float* rgb, int64_t n, float* hsv) { HWY_DYNAMIC_DISPATCH(HsvOf)(rgb, n, hsv); }
void HsvToRgb(const float* hsv, int64_t n, float* rgb) { HWY_DYNAMIC_DISPATCH(RgbOf)(hsv, n, rgb); }
void RotateHue(const float* rgb, float turns, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(Rotate)(rgb, turns, n, out);
}
void AddToSums(const float* x, int64_t n, double* sums) {
  HWY_DYNAMIC_DISPATCH(AddDoubles)(x, n, sums);
}
void ScaleDifferences(const float* x, const float* means, float factor, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(Scale)(x, means, factor, n, out);
}

}  // namespace weir::color_rows
#endif  // HWY_ONCE
