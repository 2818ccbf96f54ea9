#include "weir/kernels/nn/lrn_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/lrn_rows.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Every channel of a pixel needs a sum over its neighbors. Neighboring channels are neighboring
// lanes: one vector of sums is the sum of the 2 * radius + 1 vectors that begin at the channels
// from c - radius to c + radius. A running sum, which drops one element and adds one, would be one
// chain of dependent additions, and its errors would grow along the channels; these sums add in the
// order of the definition, whatever the vectors' size.
//
// The elements to add are first written to a buffer with zeros between pixels, so that no sum has
// bounds to check; adding the zeros changes nothing. Zeros after a pixel are those before the next
// one. The buffer holds a tile of pixels, as much as fits the L1 cache with the operands: were the
// sums of a pixel to follow its own elements at once, their loads, each of which overlaps two
// earlier stores, would wait until those have reached the cache.
//
// The powers -1/2, -3/4 and -1, which networks use, are square roots and quotients; all others come
// from the C library.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/partial_vectors-inl.h"

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Calls f(c, count) for each vector of the channels, of which `count` lanes are channels.
template <class F>
HWY_INLINE void ForEachVector(int64_t n, const F& f) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t c = 0;
  for (; c + lanes <= n; c += lanes) f(c, lanes);
  if (c < n) f(c, n - c);
}
HWY_INLINE V LoadSome(const float* x, int64_t count) {
  return count == static_cast<int64_t>(hn::Lanes(D())) ? hn::LoadU(D(), x)
                                                       : LoadPartial(D(), x, count, 0.0f);
}
HWY_INLINE void StoreSome(V v, float* y, int64_t count) {
  if (count == static_cast<int64_t>(hn::Lanes(D()))) {
    hn::StoreU(v, D(), y);
  } else {
    StorePartial(D(), v, y, count);
  }
}

// A tile of pixels with zeros around each.
class PaddedTile {
 public:
  PaddedTile(const Lrn& lrn, int64_t n)
      : reach_(std::min(lrn.radius, n)),
        stride_(n + reach_),
        pixels_(std::max<int64_t>(1, kElements / stride_)),
        buffer_(static_cast<size_t>(pixels_ * stride_ + reach_) + hn::MaxLanes(D())) {}

  int64_t pixels() const { return pixels_; }
  float* Pixel(int64_t i) { return buffer_.data() + i * stride_ + reach_; }
  // The sums around the channels from c on of a pixel. Lanes after the last channel are arbitrary.
  HWY_INLINE V SumsAt(int64_t i, int64_t c) const {
    const float* const from = buffer_.data() + i * stride_ + c;
    V sum = hn::Zero(D());
    for (int64_t k = 0; k <= 2 * reach_; ++k) sum = hn::Add(sum, hn::LoadU(D(), from + k));
    return sum;
  }

 private:
  static constexpr int64_t kElements = 2048;
  const int64_t reach_, stride_, pixels_;
  std::vector<float> buffer_;
};

// norm^-beta.
HWY_INLINE V Power(const Lrn& lrn, V norm) {
  const V one = hn::Set(D(), 1.0f);
  if (lrn.beta == 0.5f) return hn::Div(one, hn::Sqrt(norm));
  if (lrn.beta == 0.75f) {
    const V root = hn::Sqrt(norm);
    return hn::Div(one, hn::Mul(root, hn::Sqrt(root)));
  }
  if (lrn.beta == 1) return hn::Div(one, norm);
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(norm, D(), lanes);
  for (size_t i = 0; i < hn::Lanes(D()); ++i) lanes[i] = std::pow(lanes[i], -lrn.beta);
  return hn::Load(D(), lanes);
}

HWY_INLINE V Norm(const Lrn& lrn, V sum) {
  return hn::Add(hn::Set(D(), lrn.bias), hn::Mul(hn::Set(D(), lrn.alpha), sum));
}

// Writes the squares of the tile's pixels from x on.
HWY_INLINE void WriteSquares(int64_t pixels, int64_t n, const float* x, PaddedTile* tile) {
  for (int64_t i = 0; i < pixels; ++i) {
    ForEachVector(n, [&](int64_t c, int64_t count) HWY_ATTR {
      const V v = LoadSome(x + i * n + c, count);
      StoreSome(hn::Mul(v, v), tile->Pixel(i) + c, count);
    });
  }
}

void Forward(const Lrn& lrn, int64_t pixels, int64_t n, const float* x, float* y) {
  PaddedTile squares(lrn, n);
  while (pixels > 0) {
    const int64_t some = std::min(pixels, squares.pixels());
    WriteSquares(some, n, x, &squares);
    for (int64_t i = 0; i < some; ++i) {
      ForEachVector(n, [&](int64_t c, int64_t count) HWY_ATTR {
        const V power = Power(lrn, Norm(lrn, squares.SumsAt(i, c)));
        StoreSome(hn::Mul(LoadSome(x + i * n + c, count), power), y + i * n + c, count);
      });
    }
    pixels -= some;
    x += some * n;
    y += some * n;
  }
}

void Backward(const Lrn& lrn, int64_t pixels, int64_t n, const float* dy, const float* x,
              const float* y, float* dx) {
  PaddedTile squares(lrn, n), ratios(lrn, n);
  const V scale = hn::Set(D(), 2 * lrn.alpha * lrn.beta);
  while (pixels > 0) {
    const int64_t some = std::min(pixels, squares.pixels());
    WriteSquares(some, n, x, &squares);
    // The first term, and the elements of the second one's sums.
    for (int64_t i = 0; i < some; ++i) {
      ForEachVector(n, [&](int64_t c, int64_t count) HWY_ATTR {
        const int64_t at = i * n + c;
        const V norm = Norm(lrn, squares.SumsAt(i, c)), d = LoadSome(dy + at, count);
        StoreSome(hn::Div(hn::Mul(d, LoadSome(y + at, count)), norm), ratios.Pixel(i) + c, count);
        StoreSome(hn::Mul(d, Power(lrn, norm)), dx + at, count);
      });
    }
    for (int64_t i = 0; i < some; ++i) {
      ForEachVector(n, [&](int64_t c, int64_t count) HWY_ATTR {
        const int64_t at = i * n + c;
        const V term = hn::Mul(hn::Mul(scale, LoadSome(x + at, count)), ratios.SumsAt(i, c));
        StoreSome(hn::Sub(LoadSome(dx + at, count), term), dx + at, count);
      });
    }
    pixels -= some;
    dy += some * n;
    x += some * n;
    y += some * n;
    dx += some * n;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);

void LrnForward(const Lrn& lrn, int64_t pixels, int64_t n, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(Forward)(lrn, pixels, n, x, y);
}
void LrnBackward(const Lrn& lrn, int64_t pixels, int64_t n, const float* dy, const float* x,
                 const float* y, float* dx) {
  HWY_DYNAMIC_DISPATCH(Backward)(lrn, pixels, n, dy, x, y, dx);
}

}  // namespace weir
#endif  // HWY_ONCE
