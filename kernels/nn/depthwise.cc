#include "weir/kernels/nn/depthwise.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/depthwise.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Each result needs as many loads as multiplications, and the processor can issue two of either per
// cycle if nothing else is in the way. So a 3x3 filter stays in nine registers while it moves along
// the row, for one vector of channels. This touches half of each cache line on the way, and the
// other half belongs to the next vector, so the loop handles blocks of pixels for which the lines
// stay in the L1 cache. At the ends of the row, and where a filter row is outside the image, taps
// are skipped; in these cases, and for other filters, each tap is loaded from the cache.
HWY_BEFORE_NAMESPACE();
namespace weir::depthwise {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/linalg/gemm-inl.h"

constexpr int64_t kPixels = 16;

// Calls fn(c) for vectors of channels that cover them; the last one may overlap its predecessor.
template <class F>
HWY_INLINE void ForEachVector(int64_t channels, F&& fn) {
  int64_t c = 0;
  for (; c + FloatLanes() <= channels; c += FloatLanes()) fn(c);
  if (c < channels) fn(channels - FloatLanes());
}

// Computes `count` pixels of one vector of channels, all of whose taps are inside: a, b and e are
// the image's rows. Passes arguments by value, since references might alias the stores.
HWY_INLINE void Multiply3x3(const float* a, const float* b, const float* e, int64_t step,
                            int64_t next, const float* f, int64_t tap, Floats bias, Floats low,
                            Floats high, float* HWY_RESTRICT to, int64_t to_step, int64_t count) {
  const FloatTag d;
  const Floats f0 = hn::LoadU(d, f), f1 = hn::LoadU(d, f + tap), f2 = hn::LoadU(d, f + 2 * tap);
  const Floats f3 = hn::LoadU(d, f + 3 * tap), f4 = hn::LoadU(d, f + 4 * tap);
  const Floats f5 = hn::LoadU(d, f + 5 * tap), f6 = hn::LoadU(d, f + 6 * tap);
  const Floats f7 = hn::LoadU(d, f + 7 * tap), f8 = hn::LoadU(d, f + 8 * tap);
  for (; count > 0; --count, a += step, b += step, e += step, to += to_step) {
    Floats y = hn::MulAdd(f0, hn::LoadU(d, a), bias);
    Floats z = hn::Mul(f1, hn::LoadU(d, a + next));
    y = hn::MulAdd(f2, hn::LoadU(d, a + 2 * next), y);
    z = hn::MulAdd(f3, hn::LoadU(d, b), z);
    y = hn::MulAdd(f4, hn::LoadU(d, b + next), y);
    z = hn::MulAdd(f5, hn::LoadU(d, b + 2 * next), z);
    y = hn::MulAdd(f6, hn::LoadU(d, e), y);
    z = hn::MulAdd(f7, hn::LoadU(d, e + next), z);
    y = hn::MulAdd(f8, hn::LoadU(d, e + 2 * next), y);
    hn::StoreU(Clamp(hn::Add(y, z), low, high), d, to);
  }
}

// Computes one pixel from those of its taps that are inside.
HWY_INLINE void MultiplyPixel(const Geometry& g, const float* const* in, const float* filter,
                              const gemm::Epilogue& epilogue, int64_t x, float* out) {
  const FloatTag d;
  const int64_t left = x * g.stride - g.pad;
  ForEachVector(g.channels, [&](int64_t c) HWY_ATTR {
    Floats y = hn::LoadU(d, epilogue.bias + c);
    const float* f = filter + c;
    for (int64_t i = 0; i < g.kernel_height; ++i) {
      if (in[i] == nullptr) {
        f += g.kernel_width * g.tap;
        continue;
      }
      int64_t at = left;
      for (int64_t j = 0; j < g.kernel_width; ++j, f += g.tap, at += g.dilation) {
        if (at >= 0 && at < g.in_width)
          y = hn::MulAdd(hn::LoadU(d, f), hn::LoadU(d, in[i] + at * g.in_pixel + c), y);
      }
    }
    y = Clamp(y, hn::Set(d, epilogue.low), hn::Set(d, epilogue.high));
    hn::StoreU(y, d, out + x * g.out_pixel + c);
  });
}

void MultiplyRow(const Geometry& g, const float* const* in, const float* filter,
                 const gemm::Epilogue& epilogue, float* out) {
  // Pixels [first, end) have all taps inside.
  const int64_t reach = (g.kernel_width - 1) * g.dilation;
  const int64_t last = g.in_width - 1 - reach + g.pad;  // x * stride of the last such pixel
  int64_t first = (g.pad + g.stride - 1) / g.stride;
  int64_t end = last < 0 ? 0 : std::min(g.out_width, last / g.stride + 1);
  const bool is_whole = g.kernel_height == 3 && g.kernel_width == 3 && in[0] != nullptr &&
                        in[1] != nullptr && in[2] != nullptr;
  if (!is_whole || first >= end) first = end = g.out_width;
  for (int64_t x = 0; x < first; ++x) MultiplyPixel(g, in, filter, epilogue, x, out);
  const FloatTag d;
  const Floats low = hn::Set(d, epilogue.low), high = hn::Set(d, epilogue.high);
  for (int64_t x = first; x < end; x += kPixels) {
    const int64_t at = (x * g.stride - g.pad) * g.in_pixel, count = std::min(kPixels, end - x);
    ForEachVector(g.channels, [&](int64_t c) HWY_ATTR {
      Multiply3x3(in[0] + at + c, in[1] + at + c, in[2] + at + c, g.stride * g.in_pixel,
                  g.dilation * g.in_pixel, filter + c, g.tap, hn::LoadU(d, epilogue.bias + c), low,
                  high, out + x * g.out_pixel + c, g.out_pixel, count);
    });
  }
  for (int64_t x = end; x < g.out_width; ++x) MultiplyPixel(g, in, filter, epilogue, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::depthwise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::depthwise {

HWY_EXPORT(FloatLanes);
HWY_EXPORT(MultiplyRow);

int64_t FewestChannels() { return HWY_DYNAMIC_DISPATCH(FloatLanes)(); }
void MultiplyRow(const Geometry& g, const float* const* in, const float* filter,
                 const gemm::Epilogue& epilogue, float* out) {
  HWY_DYNAMIC_DISPATCH(MultiplyRow)(g, in, filter, epilogue, out);
}

}  // namespace weir::depthwise
#endif  // HWY_ONCE
