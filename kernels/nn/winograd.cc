#include "weir/kernels/nn/winograd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/winograd.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Two outputs of a filter of three elements take six multiplications, or four:
//
//   y0 = m0 + m1 + m2      m0 = (d0 - d2) g0      m1 = (d1 + d2) (g0 + g1 + g2) / 2
//   y1 = m1 - m2 - m3      m3 = (d1 - d3) g2      m2 = (d2 - d1) (g0 - g1 + g2) / 2
//
// Applied to rows and to columns, 2x2 outputs of a 3x3 filter take 16 multiplications instead of
// 36. Sums over the input channels can be accumulated before the last transform, so each of the 16
// points is one matrix product, [tiles, in_channels] x [in_channels, out_channels]. The transforms
// are additions of vectors of channels: 32 for a tile's input, 24 for its output.
//
// Rounding errors are about twice those of the definition. Elements outside an output's receptive
// field do not affect it: the terms that contain them cancel before they are computed, as d3 is
// only in m3.
HWY_BEFORE_NAMESPACE();
namespace weir::winograd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "weir/kernels/linalg/gemm-inl.h"

using D = FloatTag;
using V = Floats;

HWY_INLINE int64_t Lanes() { return FloatLanes(); }

int64_t PanelLanes() { return Lanes() >= 8 ? Lanes() : 0; }

// Returns 0, or NaN for a value that is not finite or so large that its transform may not be
// finite.
constexpr float kMargin = 16;
HWY_INLINE V OverflowCheck(V x) {
  return hn::Mul(hn::Mul(x, hn::Set(D(), kMargin)), hn::Zero(D()));
}

// Loads a vector of a filter's elements, for output channels from `out` on.
HWY_INLINE V LoadFilter(const Filter& f, const float* at) {
  if (f.out_stride == 1) return hn::LoadU(D(), at);
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  for (int64_t i = 0; i < Lanes(); ++i) lanes[i] = at[i * f.out_stride];
  return hn::Load(D(), lanes);
}

// Transforms three elements to four.
HWY_INLINE void TransformFilter(V w0, V w1, V w2, V to[4]) {
  const V half = hn::Set(D(), 0.5f), rim = hn::Add(w0, w2);
  to[0] = w0;
  to[1] = hn::Mul(half, hn::Add(rim, w1));
  to[2] = hn::Mul(half, hn::Sub(rim, w1));
  to[3] = w2;
}

bool PackPanel(const Filter& f, const Geometry& g, int64_t panel, float* packed) {
  const D d;
  const int64_t columns = 2 * Lanes(), point = g.in_channels * columns;
  V check = hn::Zero(d);
  for (int64_t in = 0; in < g.in_channels; ++in) {
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t out = panel * columns + half * Lanes();
      float* const to = packed + in * columns + half * Lanes();
      if (out >= g.out_channels) {
        for (int p = 0; p < kPoints; ++p) hn::StoreU(hn::Zero(d), d, to + p * point);
        continue;
      }
      V rows[3][4], points[4];
      for (int c = 0; c < 3; ++c) {
        const float* const at =
            f.data + c * f.column_stride + in * f.in_stride + out * f.out_stride;
        const V w0 = LoadFilter(f, at), w1 = LoadFilter(f, at + f.row_stride);
        const V w2 = LoadFilter(f, at + 2 * f.row_stride);
        check = hn::Add(check,
                        hn::Add(hn::Add(OverflowCheck(w0), OverflowCheck(w1)), OverflowCheck(w2)));
        TransformFilter(w0, w1, w2, rows[c]);
      }
      for (int r = 0; r < 4; ++r) {
        TransformFilter(rows[0][r], rows[1][r], rows[2][r], points);
        for (int c = 0; c < 4; ++c) hn::StoreU(points[c], d, to + (4 * r + c) * point);
      }
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, check)) == 0;
}

void TransformInput(const Geometry& g, const float* images, int64_t first, int64_t tiles,
                    const float* zeros, float* transformed) {
  const D d;
  const int64_t stride = RowStride(g.in_channels), plane = tiles * stride;
  for (int64_t t = 0; t < tiles; ++t) {
    const Tile tile = Tile::At(g, first + t);
    const float* at[4][4];
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 4; ++c) {
        const int64_t y = 2 * tile.row - g.pad_top + r, x = 2 * tile.column - g.pad_left + c;
        const bool inside = y >= 0 && y < g.in_height && x >= 0 && x < g.in_width;
        at[r][c] = inside
                       ? images + ((tile.image * g.in_height + y) * g.in_width + x) * g.in_channels
                       : zeros;
      }
    }
    float* const to = transformed + t * stride;
    for (int64_t i = 0; i < g.in_channels; i += Lanes()) {
      V rows[4][4];
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        const V d0 = hn::LoadU(d, at[0][c] + i), d1 = hn::LoadU(d, at[1][c] + i);
        const V d2 = hn::LoadU(d, at[2][c] + i), d3 = hn::LoadU(d, at[3][c] + i);
        rows[0][c] = hn::Sub(d0, d2);
        rows[1][c] = hn::Add(d1, d2);
        rows[2][c] = hn::Sub(d2, d1);
        rows[3][c] = hn::Sub(d1, d3);
      }
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const V r0 = rows[r][0], r1 = rows[r][1], r2 = rows[r][2], r3 = rows[r][3];
        float* const out = to + 4 * r * plane + i;
        hn::StoreU(hn::Sub(r0, r2), d, out);
        hn::StoreU(hn::Add(r1, r2), d, out + plane);
        hn::StoreU(hn::Sub(r2, r1), d, out + 2 * plane);
        hn::StoreU(hn::Sub(r1, r3), d, out + 3 * plane);
      }
    }
  }
}

// Computes the 2x2 elements of one tile and one vector of channels from the products at `from`.
HWY_INLINE void TransformBack(const float* from, int64_t plane, V y[2][2]) {
  const D d;
  V rows[2][4];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const V m0 = hn::LoadU(d, from + c * plane), m1 = hn::LoadU(d, from + (4 + c) * plane);
    const V m2 = hn::LoadU(d, from + (8 + c) * plane), m3 = hn::LoadU(d, from + (12 + c) * plane);
    rows[0][c] = hn::Add(hn::Add(m0, m1), m2);
    rows[1][c] = hn::Sub(hn::Sub(m1, m2), m3);
  }
#pragma GCC unroll 2
  for (int r = 0; r < 2; ++r) {
    y[r][0] = hn::Add(hn::Add(rows[r][0], rows[r][1]), rows[r][2]);
    y[r][1] = hn::Sub(hn::Sub(rows[r][1], rows[r][2]), rows[r][3]);
  }
}

void MultiplyPanel(const Geometry& g, const float* transformed, const float* packed, int64_t panel,
                   int64_t first, int64_t tiles, float* products, const Output& o) {
  const D d;
  const int64_t columns = 2 * Lanes(), stride = RowStride(g.in_channels);
  const RowTiles blocks(tiles);
  for (int p = 0; p < kPoints; ++p) {
    const float* const a = transformed + p * tiles * stride;
    const float* const b = packed + p * g.in_channels * columns;
    float* const c = products + p * tiles * columns;
    for (int64_t i = 0, row = 0; i < blocks.count; row += blocks.Height(i++)) {
      MultiplyRows<2, true, SideWork::kNone>(blocks.Height(i), a + row * stride, stride, 1, b,
                                             g.in_channels, c + row * columns, columns, {}, {});
    }
  }
  const int64_t begin = panel * columns, end = std::min(begin + columns, g.out_channels);
  for (int64_t t = 0; t < tiles; ++t) {
    const Tile tile = Tile::At(g, first + t);
    const int64_t rows = tile.Height(g), cols = tile.Width(g);
    for (int64_t channel = begin; channel < end; channel += Lanes()) {
      V y[2][2];
      TransformBack(products + t * columns + (channel - begin), tiles * columns, y);
      const V bias = o.bias != nullptr ? hn::LoadU(d, o.bias + channel) : hn::Zero(d);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          const int64_t at = tile.Pixel(g, r, c) * g.out_channels + channel;
          V v = hn::Add(y[r][c], bias);
          if (o.addend != nullptr) v = hn::Add(v, hn::LoadU(d, o.addend + at));
          hn::StoreU(v, d, o.result + at);
        }
      }
    }
  }
}

bool AllFinite(const float* x, int64_t n) {
  const D d;
  V sum = hn::Zero(d), s1 = sum, s2 = sum, s3 = sum;
  int64_t i = 0;
  for (; i + 4 * Lanes() <= n; i += 4 * Lanes()) {
    sum = hn::Add(sum, OverflowCheck(hn::LoadU(d, x + i)));
    s1 = hn::Add(s1, OverflowCheck(hn::LoadU(d, x + i + Lanes())));
    s2 = hn::Add(s2, OverflowCheck(hn::LoadU(d, x + i + 2 * Lanes())));
    s3 = hn::Add(s3, OverflowCheck(hn::LoadU(d, x + i + 3 * Lanes())));
  }
  float rest = 0;
  for (; i < n; ++i) rest += x[i] * kMargin * 0;
  const V all = hn::Add(hn::Add(sum, s1), hn::Add(s2, s3));
  return hn::GetLane(hn::SumOfLanes(d, all)) + rest == 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::winograd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::winograd {

HWY_EXPORT(PanelLanes);
HWY_EXPORT(PackPanel);
HWY_EXPORT(TransformInput);
HWY_EXPORT(MultiplyPanel);
HWY_EXPORT(AllFinite);

int64_t ChannelUnit() { return HWY_DYNAMIC_DISPATCH(PanelLanes)(); }
int64_t PanelColumns() { return 2 * ChannelUnit(); }
bool PackPanel(const Filter& filter, const Geometry& g, int64_t panel, float* packed) {
  return HWY_DYNAMIC_DISPATCH(PackPanel)(filter, g, panel, packed);
}
void TransformInput(const Geometry& g, const float* images, int64_t first, int64_t tiles,
                    const float* zeros, float* transformed) {
  HWY_DYNAMIC_DISPATCH(TransformInput)(g, images, first, tiles, zeros, transformed);
}
void MultiplyPanel(const Geometry& g, const float* transformed, const float* packed, int64_t panel,
                   int64_t first, int64_t tiles, float* products, const Output& output) {
  HWY_DYNAMIC_DISPATCH(MultiplyPanel)
  (g, transformed, packed, panel, first, tiles, products, output);
}
bool AllFinite(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(AllFinite)(x, n); }

}  // namespace weir::winograd
#endif  // HWY_ONCE
