#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/scalar_math.h"

// Cumulative sums, products and log-sum-exps along one dimension, and the positions of extreme
// elements. A tensor is viewed as [outer, axis, inner]; runs of `inner` elements are processed side
// by side, so that memory is read in order.
namespace weir {

namespace {

struct Axis {
  int64_t outer = 1, length = 1, inner = 1;
};

absl::StatusOr<Axis> AxisOf(const Shape& shape, const Tensor& axis, const char* what) {
  if (axis.rank() != 0) {
    return InvalidArgument(what, " must be a scalar, but has shape ", axis.shape().ToString());
  }
  const int64_t rank = shape.rank(), a = axis.IntAt(0);
  if (a < -rank || a >= rank) {
    return InvalidArgument("Expected ", what, " in the range [", -rank, ", ", rank, "), but got ",
                           a);
  }
  const int at = static_cast<int>(a < 0 ? a + rank : a);
  Axis out;
  for (int i = 0; i < rank; ++i)
    (i < at ? out.outer : i == at ? out.length : out.inner) *= shape.dim(i);
  return out;
}

template <class T>
struct SumScan {
  static Wide<T> Start() { return Wide<T>(0); }
  static Wide<T> Step(Wide<T> acc, Wide<T> x) { return ScalarMath<Wide<T>>::Add(acc, x); }
};
template <class T>
struct ProductScan {
  static Wide<T> Start() { return Wide<T>(1); }
  static Wide<T> Step(Wide<T> acc, Wide<T> x) { return ScalarMath<Wide<T>>::Mul(acc, x); }
};
template <class T>
struct LogSumExpScan {
  static Wide<T> Start() { return -std::numeric_limits<Wide<T>>::infinity(); }
  static Wide<T> Step(Wide<T> acc, Wide<T> x) {
    if (std::isnan(acc) || std::isnan(x)) return acc + x;
    const Wide<T> high = std::max(acc, x), low = std::min(acc, x);
    if (std::isinf(high)) return high;
    return high + std::log1p(std::exp(low - high));
  }
};

template <class F, class T>
void ScanBlock(const T* x, T* y, int64_t length, int64_t inner, int64_t width, bool exclusive,
               bool reverse) {
  std::vector<Wide<T>> acc(width, F::Start());
  for (const auto [begin, end] : CancellableBlocks(length)) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = (reverse ? length - 1 - k : k) * inner;
      for (int64_t i = 0; i < width; ++i) {
        const Wide<T> next = F::Step(acc[i], static_cast<Wide<T>>(x[at + i]));
        y[at + i] = static_cast<T>(exclusive ? acc[i] : next);
        acc[i] = next;
      }
    }
  }
}

template <class F, class T>
absl::StatusOr<Kernel> MakeScan(const KernelInit& init) {
  const bool exclusive = init.attr<bool>("exclusive"), reverse = init.attr<bool>("reverse");
  return Kernel([exclusive, reverse](KernelContext& c) -> absl::Status {
    const Tensor& x = c.input(0);
    WEIR_ASSIGN_OR_RETURN(const Axis axis, AxisOf(x.shape(), c.input(1), "scan axis"));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, x.shape()));
    if (x.num_elements() == 0) return absl::OkStatus();
    constexpr int64_t kWidth = 256;
    const int64_t blocks = (axis.inner + kWidth - 1) / kWidth;
    const T* const in = x.data<T>();
    T* const y = out->data<T>();
    const double cost = 2.0 * static_cast<double>(axis.length * std::min(axis.inner, kWidth));
    c.pool().ParallelFor(axis.outer * blocks, cost, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t from = b % blocks * kWidth,
                      offset = b / blocks * axis.length * axis.inner + from;
        ScanBlock<F, T>(in + offset, y + offset, axis.length, axis.inner,
                        std::min(kWidth, axis.inner - from), exclusive, reverse);
      }
    });
    return absl::OkStatus();
  });
}

template <template <class> class F, class... Ts>
void AddScans(KernelRegistry* r, const char* op, List<Ts...>) {
  (r->Add(op, kCpu, DataTypeOf<Ts>::value, MakeScan<F<Ts>, Ts>).HostArgs({"axis"}).InPlace({0}),
   ...);
}

// ---- ArgMax, ArgMin

// Returns whether b replaces a. Any number replaces a NaN at the beginning.
template <class T, bool kMax>
bool IsBetter(T a, T b) {
  return (kMax ? b > a : b < a) || (a != a && b == b);
}

// The branch stores the index. Selecting between two indices in each iteration takes four times as
// long as predicting that no element is better.
template <class T, bool kMax>
ABSL_ATTRIBUTE_NOINLINE void ArgExtremeOfRow(const T* x, int64_t length, int64_t* index) {
  T best = x[0];
  *index = 0;
  for (int64_t k = 1; k < length; ++k) {
    if (IsBetter<T, kMax>(best, x[k])) {
      best = x[k];
      *index = k;
    }
  }
}

template <class T, bool kMax>
void ArgExtreme(const T* x, int64_t length, int64_t inner, int64_t* index) {
  if (inner == 1) {
    ArgExtremeOfRow<T, kMax>(x, length, index);
    return;
  }
  std::fill_n(index, inner, 0);
  std::vector<T> best(x, x + inner);
  for (int64_t k = 1; k < length; ++k) {
    ThrowIfCancelledAt(k);
    const T* row = x + k * inner;
    for (int64_t i = 0; i < inner; ++i) {
      if (!IsBetter<T, kMax>(best[i], row[i])) continue;
      best[i] = row[i];
      index[i] = k;
    }
  }
}

template <class T, bool kMax>
absl::Status RunArg(KernelContext& c) {
  const Tensor& x = c.input(0);
  if (c.input(1).rank() != 0) {
    return InvalidArgument("dim must be a scalar, but received tensor of shape: ",
                           c.input(1).shape().ToString());
  }
  const int64_t rank = x.rank(), a = c.input(1).IntAt(0), dim = a < 0 ? a + rank : a;
  if (rank == 0 || dim < 0 || dim >= rank) {
    return InvalidArgument("Expected dimension in the range [", -rank, ", ", rank, "), but got ",
                           a);
  }
  WEIR_ASSIGN_OR_RETURN(const Axis axis, AxisOf(x.shape(), c.input(1), "dimension"));
  if (axis.length == 0) {
    return InvalidArgument("Reduction axis ", dim, " is empty in shape ", x.shape().ToString());
  }
  Shape shape = x.shape();
  shape.RemoveDim(static_cast<int>(dim));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  const T* const in = x.data<T>();
  const double cost = 1.0 * static_cast<double>(axis.length * axis.inner);
  c.pool().ParallelFor(axis.outer, cost, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> index(axis.inner);
    for (int64_t o = begin; o < end; ++o) {
      ArgExtreme<T, kMax>(in + o * axis.length * axis.inner, axis.length, axis.inner, index.data());
      DispatchType(out->dtype(), List<int16_t, uint16_t, int32_t, int64_t>{}, [&]<class I>() {
        I* const y = out->data<I>() + o * axis.inner;
        for (int64_t i = 0; i < axis.inner; ++i) y[i] = static_cast<I>(index[i]);
      });
    }
  });
  return absl::OkStatus();
}

template <class... Ts>
void AddArgs(KernelRegistry* r, List<Ts...>) {
  (r->Add("ArgMax", kCpu, DataTypeOf<Ts>::value, RunArg<Ts, true>).HostArgs({"dimension"}), ...);
  (r->Add("ArgMin", kCpu, DataTypeOf<Ts>::value, RunArg<Ts, false>).HostArgs({"dimension"}), ...);
}

}  // namespace

void AddScanCpu(KernelRegistry* r) {
  AddScans<SumScan>(r, "Cumsum", Numbers{});
  AddScans<ProductScan>(r, "Cumprod", Numbers{});
  AddScans<LogSumExpScan>(r, "CumulativeLogsumexp", Floats{});
  AddArgs(r, RealNumbers{});
  AddArgs(r, List<bool>{});
}

}  // namespace weir
