#include <algorithm>
#include <cmath>

#include "weir/kernels/lib/non_temporal.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/math/fused_elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/fused_layer_norm.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Layer normalization of rows as one op (Ba et al. 2016, section 3;
// session/passes/fuse_layer_norm.cc fuses it from small ops):
//
//   y = (x - mean) / sqrt(variance + epsilon) * scale + offset
//
// Each row is read three times: for its mean, for the sums of x - mean and of its square, and for
// the result. The second and third pass hit the core's cache, so memory is read once. The third
// pass also prefetches the next row, because hardware prefetchers do not cross pages. The square of
// the differences, unlike the mean of squares minus the squared mean, loses no precision where the
// mean is large compared with the deviation. The differences would sum to zero had the mean not
// been rounded, so their sum measures its rounding error (Chan, Golub and LeVeque 1983, equation
// 1.7).
//
// A gradient needs the mean and the factor 1 / sqrt(variance + epsilon) of each row, which are
// optional additional results.
//
// Sums use four float vectors over at most kBlock elements, so that each lane adds few of them; the
// blocks' sums are added in double. Rows with infinities, NaNs or squares that overflow have the
// same results as with the small ops.

#ifndef WEIR_KERNELS_FUSED_LAYER_NORM_ONCE_
#define WEIR_KERNELS_FUSED_LAYER_NORM_ONCE_
namespace weir::layer_norm {
// Rows of n elements. scale and offset have n elements, or are null for 1 and 0.
struct Rows {
  const float* x = nullptr;
  const float* scale = nullptr;
  const float* offset = nullptr;
  float* y = nullptr;
  float* means = nullptr;  // like `factors`: by row; or null
  float* factors = nullptr;
  int64_t n = 0;
  float epsilon = 0;
  bool streams = false;  // write y with non-temporal stores, if vectors fill cache lines
};
}  // namespace weir::layer_norm
#endif  // WEIR_KERNELS_FUSED_LAYER_NORM_ONCE_

HWY_BEFORE_NAMESPACE();
namespace weir::layer_norm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

struct Sums {
  double differences = 0, squares = 0;
};

// Returns the sum of x - mean and of its square.
template <bool kSquares>
HWY_INLINE Sums SumRow(const float* x, float mean, int64_t n) {
  constexpr int64_t kBlock = 4096;
  const D d;
  const int64_t lanes = Lanes();
  const V m = hn::Set(d, mean);
  Sums total;
  int64_t i = 0;
  while (n - i >= lanes) {
    const int64_t end = std::min(n, i + kBlock);
    V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, s0 = a0, s1 = a0, s2 = a0, s3 = a0;
    const auto add = [&](int64_t at, V& sum, V& squares) HWY_ATTR {
      const V v = hn::Sub(hn::LoadU(d, x + at), m);
      sum = hn::Add(sum, v);
      if constexpr (kSquares) squares = hn::MulAdd(v, v, squares);
    };
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      add(i, a0, s0);
      add(i + lanes, a1, s1);
      add(i + 2 * lanes, a2, s2);
      add(i + 3 * lanes, a3, s3);
    }
    for (; i + lanes <= end; i += lanes) add(i, a0, s0);
    total.differences += hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a0, a1), hn::Add(a2, a3))));
    total.squares += hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  }
  for (; i < n; ++i) {
    const float v = x[i] - mean;
    total.differences += v;
    total.squares += v * v;
  }
  return total;
}

// The corrected mean is mean + rest / factor. `next` is the next row, to prefetch.
template <bool kScale, bool kOffset, bool kStreams>
void Normalize(const Rows& r, const float* x, float mean, float rest, float factor,
               const float* next, float* y) {
  const D d;
  const int64_t lanes = Lanes();
  const V m = hn::Set(d, mean), f = hn::Set(d, factor), c = hn::Set(d, rest);
  int64_t i = 0;
  for (; i + lanes <= r.n; i += lanes) {
    V v = hn::MulSub(hn::Sub(hn::LoadU(d, x + i), m), f, c);
    if constexpr (kScale && kOffset) {
      v = hn::MulAdd(v, hn::LoadU(d, r.scale + i), hn::LoadU(d, r.offset + i));
    } else if constexpr (kScale) {
      v = hn::Mul(v, hn::LoadU(d, r.scale + i));
    } else if constexpr (kOffset) {
      v = hn::Add(v, hn::LoadU(d, r.offset + i));
    }
    hwy::Prefetch(next + i);
    if constexpr (kStreams) {
      hn::Stream(v, d, y + i);
    } else {
      hn::StoreU(v, d, y + i);
    }
  }
  for (; i < r.n; ++i) {
    float v = (x[i] - mean) * factor - rest;
    if constexpr (kScale) v *= r.scale[i];
    if constexpr (kOffset) v += r.offset[i];
    y[i] = v;
  }
}

template <bool kScale, bool kOffset>
void EachRow(const Rows& r, int64_t begin, int64_t end) {
  const double count = static_cast<double>(r.n);
  for (int64_t row = begin; row < end; ++row) {
    const float* const x = r.x + row * r.n;
    const float mean = static_cast<float>(SumRow<false>(x, 0, r.n).differences / count);
    const Sums sums = SumRow<true>(x, mean, r.n);
    // An overflowing sum of differences carries no information.
    const double rest = std::isfinite(sums.differences) ? sums.differences / count : 0;
    // With this argument order, std::max propagates NaN.
    const double variance = std::max(sums.squares / count - rest * rest, 0.0);
    const float factor = 1 / std::sqrt(static_cast<float>(variance) + r.epsilon);
    const auto normalize =
        r.streams ? &Normalize<kScale, kOffset, true> : &Normalize<kScale, kOffset, false>;
    normalize(r, x, mean, static_cast<float>(rest) * factor, factor, row + 1 < end ? x + r.n : x,
              r.y + row * r.n);
    // Last, because means may alias x for rows of one element.
    if (r.means != nullptr) {
      r.means[row] = static_cast<float>(mean + rest);
      r.factors[row] = factor;
    }
  }
}

// Processes rows [begin, end).
void Run(const Rows& r, int64_t begin, int64_t end) {
  if (r.scale != nullptr && r.offset != nullptr) return EachRow<true, true>(r, begin, end);
  if (r.scale != nullptr) return EachRow<true, false>(r, begin, end);
  if (r.offset != nullptr) return EachRow<false, true>(r, begin, end);
  EachRow<false, false>(r, begin, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::layer_norm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace layer_norm {

HWY_EXPORT(Run);

namespace {

constexpr double kNsPerElement = 0.3;

// The attributes: which arguments are present, and how many of x's last axes form a row.
struct LayerNorm {
  bool has_scale, has_offset, has_statistics;
  int axes;
  float epsilon;

  absl::Status operator()(KernelContext& c) const {
    const Tensor& x = c.input(0);
    if (x.rank() < axes)
      return InvalidArgument("x must have at least ", axes, " dimensions, but has shape ",
                             x.shape().ToString());
    Rows rows{.n = x.shape().Sub(x.rank() - axes).num_elements(), .epsilon = epsilon};
    for (int i = 1; i < c.num_inputs(); ++i) {
      if (c.input(i).num_elements() == rows.n) continue;
      return InvalidArgument("scale and offset must have ", rows.n, " elements for x of shape ",
                             x.shape().ToString(), ", but has shape ",
                             c.input(i).shape().ToString());
    }
    WEIR_ASSIGN_OR_RETURN(Tensor* const y, c.AllocateOutput(0, x.shape()));
    if (has_statistics) {
      Shape shape = x.shape();
      for (int i = 1; i <= axes; ++i) shape.set_dim(x.rank() - i, 1);
      WEIR_ASSIGN_OR_RETURN(Tensor* const means, c.AllocateOutput(1, shape));
      WEIR_ASSIGN_OR_RETURN(Tensor* const factors, c.AllocateOutput(2, shape));
      rows.means = means->data<float>();
      rows.factors = factors->data<float>();
    }
    if (y->num_elements() == 0) return absl::OkStatus();
    rows.x = x.data<float>();
    rows.y = y->data<float>();
    rows.streams = rows.y != rows.x && non_temporal::Pays(y->num_bytes()) &&
                   non_temporal::IsAligned(rows.y, static_cast<size_t>(rows.n) * sizeof(float));
    if (has_scale) rows.scale = c.input_data<float>(1);
    if (has_offset) rows.offset = c.input_data<float>(has_scale ? 2 : 1);
    c.pool().ParallelFor(y->num_elements() / rows.n, kNsPerElement * static_cast<double>(rows.n),
                         [&](int64_t begin, int64_t end) {
                           HWY_DYNAMIC_DISPATCH(Run)(rows, begin, end);
                           if (rows.streams) non_temporal::Fence();
                         });
    return absl::OkStatus();
  }
};

absl::StatusOr<Kernel> Make(const KernelInit& init) {
  const int64_t scales = init.attr<int64_t>("num_scales"),
                offsets = init.attr<int64_t>("num_offsets"), axes = init.attr<int64_t>("axes");
  const auto statistics = init.attr<int64_t>("num_statistics");
  if (statistics != 0 && statistics != 2)
    return InvalidArgument("num_statistics must be 0 or 2, but is ", statistics);
  if (scales > 1 || offsets > 1)
    return InvalidArgument("num_scales and num_offsets must be 0 or 1, but num_scales is ", scales,
                           " and num_offsets ", offsets);
  return Kernel(LayerNorm{scales == 1, offsets == 1, statistics == 2,
                          static_cast<int>(std::min<int64_t>(axes, Shape::kMaxRank + 1)),
                          init.attr<float>("epsilon")});
}

}  // namespace
}  // namespace layer_norm

void AddFusedLayerNormKernels(KernelRegistry* r) {
  r->Add("_FusedLayerNorm", kCpu, DT_FLOAT, layer_norm::Make).InPlace({0});
}

}  // namespace weir
#endif  // HWY_ONCE
