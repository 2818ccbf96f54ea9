#include <algorithm>
#include <cmath>

#include "weir/kernels/array/fill_range.h"
#include "weir/kernels/lib/bin_counter.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/bound_search.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/ops/lib/range_size.h"

// Ranges, histograms and other small arithmetic ops.
namespace weir {

namespace {

// ---- Range, LinSpace

// Range accepts vectors of one element too.
absl::Status CheckScalars(KernelContext& c, std::initializer_list<const char*> names,
                          int most_rank) {
  int i = 0;
  for (const char* name : names) {
    if (c.input(i).num_elements() != 1 || c.input(i).rank() > most_rank) {
      return InvalidArgument(name, " must be a scalar, not shape ", c.input(i).shape().ToString());
    }
    ++i;
  }
  return absl::OkStatus();
}

template <class T>
absl::Status RunRange(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckScalars(c, {"start", "limit", "delta"}, 1));
  const T start = c.input(0).scalar<T>(), limit = c.input(1).scalar<T>(),
          delta = c.input(2).scalar<T>();
  WEIR_ASSIGN_OR_RETURN(const int64_t n, RangeSize<T>(start, limit, delta));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({n})));
  T* const y = out->data<T>();
  if constexpr (std::is_integral_v<T>) {
    const uint64_t first = static_cast<uint64_t>(start), step = static_cast<uint64_t>(delta);
    c.pool().ParallelFor(n, 0.05 * sizeof(T), [&](int64_t begin, int64_t end) {
      FillRange(sizeof(T), first + static_cast<uint64_t>(begin) * step, step, end - begin,
                y + begin);
    });
  } else {
    T v = start;
    for (const auto [begin, end] : CancellableBlocks(n)) {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = v;
        v = static_cast<T>(v + delta);
      }
    }
  }
  return absl::OkStatus();
}

template <class T>
absl::Status RunLinSpace(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckScalars(c, {"start", "stop", "num"}, 0));
  const T start = c.input(0).scalar<T>(), stop = c.input(1).scalar<T>();
  const int64_t n = c.input(2).IntAt(0);
  if (n <= 0) return InvalidArgument("Requires num > 0: ", n);
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({n})));
  T* const y = out->data<T>();
  y[0] = start;
  if (n == 1) return absl::OkStatus();
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Wide step = (static_cast<Wide>(stop) - static_cast<Wide>(start)) / static_cast<Wide>(n - 1);
  c.pool().ParallelFor(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = std::max<int64_t>(begin, 1); i < end; ++i)
      y[i] = static_cast<T>(static_cast<Wide>(start) + step * static_cast<Wide>(i));
  });
  y[n - 1] = stop;
  return absl::OkStatus();
}

// ---- histograms

template <class T>
absl::StatusOr<Kernel> MakeBucketize(const KernelInit& init) {
  const std::vector<float> boundaries = init.attr<std::vector<float>>("boundaries");
  if (!std::is_sorted(boundaries.begin(), boundaries.end()))
    return InvalidArgument("Expected sorted boundaries");
  return Kernel([boundaries](KernelContext& c) -> absl::Status {
    const Tensor& x = c.input(0);
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, x.shape()));
    const T* const in = x.data<T>();
    int32_t* const y = out->data<int32_t>();
    c.pool().ParallelFor(x.num_elements(), 5, [&](int64_t begin, int64_t end) {
      FindBounds</*kUpper=*/true>(boundaries.data(), static_cast<int64_t>(boundaries.size()),
                                  in + begin, end - begin, y + begin);
    });
    return absl::OkStatus();
  });
}

template <class T>
absl::Status RunBincount(KernelContext& c) {
  const Tensor &values = c.input(0), &size = c.input(1), &weights = c.input(2);
  if (size.num_elements() != 1 || size.rank() != 0) {
    return InvalidArgument("Shape must be rank 0 but is rank ", size.rank(),
                           " for the size of Bincount");
  }
  const int64_t n = size.IntAt(0);
  if (n < 0) return InvalidArgument("size (", n, ") must be non-negative");
  const bool weighted = weights.num_elements() > 0;
  const int32_t* const v = values.data<int32_t>();
  for (const auto [begin, end] : CancellableBlocks(values.num_elements())) {
    for (int64_t i = begin; i < end; ++i) {
      if (v[i] < 0) return InvalidArgument("Input arr must be non-negative!");
    }
  }
  if (weighted && weights.num_elements() != values.num_elements()) {
    return InvalidArgument(
        "Input indices and weights must have the same size; weights may also be empty. Shapes: ",
        values.shape().ToString(), " and ", weights.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({n})));
  const BinCounter<T, int32_t> counter(n, weighted ? weights.data<T>() : nullptr, /*binary=*/false);
  counter.CountAll(c.pool(), v, values.num_elements(), out->data<T>());
  return absl::OkStatus();
}

template <class T>
absl::Status RunHistogram(KernelContext& c) {
  const Tensor &values = c.input(0), &range = c.input(1), &nbins = c.input(2);
  if (range.rank() != 1 || range.dim(0) != 2) {
    return InvalidArgument("value_range should be a vector of 2 elements, but is ",
                           range.shape().ToString());
  }
  if (nbins.rank() != 0)
    return InvalidArgument("nbins should be a scalar, but has shape ", nbins.shape().ToString());
  const int64_t n = nbins.IntAt(0);
  const double low = static_cast<double>(range.data<T>()[0]),
               high = static_cast<double>(range.data<T>()[1]);
  if (!(low < high))
    return InvalidArgument("value_range should satisfy value_range[0] < value_range[1], but got [",
                           low, ", ", high, "]");
  if (n <= 0) return InvalidArgument("nbins should be a positive number, but got ", n);
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({n})));
  std::vector<int64_t> counts(n, 0);
  const double scale = static_cast<double>(n) / (high - low);
  for (const T v : values.flat<T>()) {
    ThrowIfCancelled();
    const double at = (static_cast<double>(v) - low) * scale;
    if (std::isnan(at)) return InvalidArgument("Histogram values must not contain NaN");
    ++counts[at > 0 ? std::min(n - 1, static_cast<int64_t>(std::min(at, 9e18))) : 0];
  }
  if (out->dtype() == DT_INT32) {
    std::copy(counts.begin(), counts.end(), out->data<int32_t>());
  } else {
    std::copy(counts.begin(), counts.end(), out->data<int64_t>());
  }
  return absl::OkStatus();
}

template <class T>
absl::Status RunCross(KernelContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  if (a.shape() != b.shape()) {
    return InvalidArgument("Both inputs must be of same shape: ", a.shape().ToString(), " vs. ",
                           b.shape().ToString());
  }
  if (a.rank() < 1 || a.dim(a.rank() - 1) != 3) {
    return InvalidArgument("Cross-products are only defined for 3-element vectors; got shape ",
                           a.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, a.shape()));
  // Narrow integers are computed in int and truncated; wider ones are computed as unsigned numbers,
  // which wrap around.
  using Wide =
      std::conditional_t<!std::is_integral_v<T>,
                         std::conditional_t<std::is_same_v<T, double>, double, float>, uint64_t>;
  const T *x = a.data<T>(), *y = b.data<T>();
  T* z = out->data<T>();
  for (int64_t i = 0; i < a.num_elements(); i += 3) {
    const Wide x0 = Wide(x[i]), x1 = Wide(x[i + 1]), x2 = Wide(x[i + 2]);
    const Wide y0 = Wide(y[i]), y1 = Wide(y[i + 1]), y2 = Wide(y[i + 2]);
    z[i] = static_cast<T>(x1 * y2 - x2 * y1);
    z[i + 1] = static_cast<T>(x2 * y0 - x0 * y2);
    z[i + 2] = static_cast<T>(x0 * y1 - x1 * y0);
  }
  return absl::OkStatus();
}

template <class... Ts>
void AddRanges(KernelRegistry* r, List<Ts...>) {
  (r->Add("Range", kCpu, TypeConstraints{{"Tidx", DataTypeOf<Ts>::value}}, RunRange<Ts>)
       .HostArgs({"start", "limit", "delta"}),
   ...);
}
template <class... Ts>
void AddLinSpaces(KernelRegistry* r, List<Ts...>) {
  (r->Add("LinSpace", kCpu, DataTypeOf<Ts>::value, RunLinSpace<Ts>)
       .HostArgs({"start", "stop", "num"}),
   ...);
}
template <class... Ts>
void AddCrosses(KernelRegistry* r, List<Ts...>) {
  (r->Add("Cross", kCpu, DataTypeOf<Ts>::value, RunCross<Ts>), ...);
}
template <class... Ts>
void AddHistograms(KernelRegistry* r, List<Ts...>) {
  (r->Add("Bucketize", kCpu, DataTypeOf<Ts>::value, MakeBucketize<Ts>), ...);
  (r->Add("Bincount", kCpu, DataTypeOf<Ts>::value, RunBincount<Ts>), ...);
  (r->Add("HistogramFixedWidth", kCpu, DataTypeOf<Ts>::value, RunHistogram<Ts>), ...);
}

}  // namespace

void AddSequenceCpu(KernelRegistry* r) {
  AddRanges(r, JoinLists<Floats, SignedIntegers, List<uint16_t, uint32_t, uint64_t>>{});
  AddLinSpaces(r, Floats{});
  AddCrosses(r, RealNumbers{});
  AddHistograms(r, List<int32_t, int64_t, float, double>{});
}

}  // namespace weir
