#include "weir/kernels/audio/fixed_fft.h"

#include <cmath>
#include <numbers>

// n real numbers are n / 2 complex ones, which are transformed by decimation in time with radix 4,
// and radix 2 for the last factor. Each stage divides by its radix first, so that sums do not
// overflow. Sums that overflow nevertheless wrap around.
namespace weir {

namespace {

constexpr int kOne = 32767;

int16_t Round(int32_t product) { return static_cast<int16_t>((product + (1 << 14)) >> 15); }

FixedComplex Add(FixedComplex a, FixedComplex b) {
  return {static_cast<int16_t>(a.re + b.re), static_cast<int16_t>(a.im + b.im)};
}
FixedComplex Sub(FixedComplex a, FixedComplex b) {
  return {static_cast<int16_t>(a.re - b.re), static_cast<int16_t>(a.im - b.im)};
}
// Products of int16 fit an int32, but not the sum of two with the rounding: unsigned sums wrap.
FixedComplex Mul(FixedComplex a, FixedComplex b) {
  const auto wrapped = [](int32_t x, int32_t y) {
    return static_cast<int32_t>(static_cast<uint32_t>(x) + static_cast<uint32_t>(y));
  };
  constexpr int32_t kHalf = 1 << 14;
  return {static_cast<int16_t>(wrapped(wrapped(a.re * b.re, -(a.im * b.im)), kHalf) >> 15),
          static_cast<int16_t>(wrapped(wrapped(a.re * b.im, a.im * b.re), kHalf) >> 15)};
}
FixedComplex Divide(FixedComplex a, int divisor) {
  return {Round(a.re * (kOne / divisor)), Round(a.im * (kOne / divisor))};
}
int16_t HalfOf(int v) { return static_cast<int16_t>(v >> 1); }

FixedComplex UnitRoot(double phase) {
  return {static_cast<int16_t>(std::floor(0.5 + kOne * std::cos(phase))),
          static_cast<int16_t>(std::floor(0.5 + kOne * std::sin(phase)))};
}

}  // namespace

FixedFft::FixedFft(int64_t n) : half_(n / 2), pairs_(n / 2), halves_(n / 2), out_(n / 2 + 1) {
  constexpr double kPi = std::numbers::pi;
  const auto half = static_cast<double>(half_);
  for (int64_t k = 0; k < half_; ++k) {
    twiddles_.push_back(UnitRoot(-2 * kPi * static_cast<double>(k) / half));
  }
  for (int64_t k = 0; k < half_ / 2; ++k) {
    real_twiddles_.push_back(UnitRoot(-kPi * (static_cast<double>(k + 1) / half + 0.5)));
  }
}

void FixedFft::Transform(const FixedComplex* in, FixedComplex* out, int64_t n,
                         int64_t stride) const {
  if (n == 1) {
    *out = Divide(*in, 1);
    return;
  }
  const int64_t radix = n % 4 == 0 ? 4 : 2, m = n / radix;
  for (int64_t q = 0; q < radix; ++q) {
    if (m == 1) {
      out[q] = in[q * stride];
    } else {
      Transform(in + q * stride, out + q * m, m, stride * radix);
    }
  }
  for (int64_t k = 0; k < m; ++k, ++out) {
    if (radix == 2) {
      const FixedComplex a = Divide(out[0], 2);
      const FixedComplex b = Mul(Divide(out[m], 2), twiddles_[k * stride]);
      out[m] = Sub(a, b);
      out[0] = Add(a, b);
      continue;
    }
    const FixedComplex a = Divide(out[0], 4);
    const FixedComplex b = Mul(Divide(out[m], 4), twiddles_[k * stride]);
    const FixedComplex c = Mul(Divide(out[2 * m], 4), twiddles_[2 * k * stride]);
    const FixedComplex d = Mul(Divide(out[3 * m], 4), twiddles_[3 * k * stride]);
    const FixedComplex even = Add(a, c), odd = Sub(a, c), sum = Add(b, d), rest = Sub(b, d);
    const FixedComplex turned = {rest.im, static_cast<int16_t>(-rest.re)};  // -i * rest
    out[0] = Add(even, sum);
    out[m] = Add(odd, turned);
    out[2 * m] = Sub(even, sum);
    out[3 * m] = Sub(odd, turned);
  }
}

absl::Span<const FixedComplex> FixedFft::Run(const int16_t* samples) {
  for (int64_t i = 0; i < half_; ++i) pairs_[i] = {samples[2 * i], samples[2 * i + 1]};
  Transform(pairs_.data(), halves_.data(), half_, 1);
  const FixedComplex first = Divide(halves_[0], 2);
  out_[0] = {static_cast<int16_t>(first.re + first.im), 0};
  out_[half_] = {static_cast<int16_t>(first.re - first.im), 0};
  for (int64_t k = 1; k <= half_ / 2; ++k) {
    const FixedComplex mirrored = {halves_[half_ - k].re,
                                   static_cast<int16_t>(-halves_[half_ - k].im)};
    const FixedComplex a = Divide(halves_[k], 2), b = Divide(mirrored, 2);
    const FixedComplex even = Add(a, b), odd = Mul(Sub(a, b), real_twiddles_[k - 1]);
    out_[k] = {HalfOf(even.re + odd.re), HalfOf(even.im + odd.im)};
    out_[half_ - k] = {HalfOf(even.re - odd.re), HalfOf(odd.im - even.im)};
  }
  return out_;
}

}  // namespace weir
