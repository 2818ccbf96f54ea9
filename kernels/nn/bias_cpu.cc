#include <algorithm>
#include <complex>
#include <type_traits>
#include <vector>

#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/pieces.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/nn/channel_ops.h"

namespace weir {
namespace {

template <class T>
inline constexpr bool kVectorized = std::is_same_v<T, float> || std::is_same_v<T, double>;

// A tensor as [outer, channels, inner].
struct Channels {
  int64_t outer = 1, channels = 0, inner = 1;
};

absl::StatusOr<Channels> ChannelsOf(const Shape& shape, bool channels_first) {
  if (shape.rank() < 2)
    return InvalidArgument("Input tensor must be at least 2D: ", shape.ToString());
  Channels c;
  const int dim = channels_first ? 1 : shape.rank() - 1;
  for (int i = 0; i < dim; ++i) c.outer *= shape.dim(i);
  c.channels = shape.dim(dim);
  for (int i = dim + 1; i < shape.rank(); ++i) c.inner *= shape.dim(i);
  return c;
}

// Processes several rows of few channels at a time, with the bias repeated.
template <class T>
void AddToRows(ThreadPool& pool, const T* x, const T* bias, T* y, int64_t rows, int64_t channels) {
  constexpr int64_t kNarrow = 64, kRepeated = 256;
  std::vector<T> repeated;
  if (channels < kNarrow && rows * channels >= 4 * kRepeated) {
    const int64_t times = kRepeated / channels;
    for (int64_t i = 0; i < times; ++i) repeated.insert(repeated.end(), bias, bias + channels);
    const int64_t tail = rows % times;
    rows /= times;
    const int64_t whole = rows * times * channels;
    channel_ops::AddRow(x + whole, bias, y + whole, tail, channels);
    channels *= times;
    bias = repeated.data();
  }
  pool.ParallelFor(rows, 0.15 * channels * sizeof(T) / 4, [&](int64_t begin, int64_t end) {
    channel_ops::AddRow(x + begin * channels, bias, y + begin * channels, end - begin, channels);
  });
}

template <class T>
void AddBias(ThreadPool& pool, const T* x, const T* bias, T* y, const Channels& c) {
  if constexpr (kVectorized<T>) {
    if (c.inner == 1) return AddToRows(pool, x, bias, y, c.outer, c.channels);
  }
  pool.ParallelFor(c.outer * c.channels, 0.5 * c.inner, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T b = bias[i % c.channels];
      for (int64_t k = i * c.inner; k < (i + 1) * c.inner; ++k) y[k] = Add(x[k], b);
    }
  });
}

template <class T>
absl::Status BiasAdd(KernelContext& ctx, bool channels_first) {
  const Tensor &value = ctx.input(0), &bias = ctx.input(1);
  WEIR_ASSIGN_OR_RETURN(const Channels c, ChannelsOf(value.shape(), channels_first));
  if (bias.rank() != 1) return InvalidArgument("Biases must be 1D: ", bias.shape().ToString());
  if (bias.dim(0) != c.channels) {
    return InvalidArgument(
        "Must provide as many biases as the last dimension of the input tensor: ",
        bias.shape().ToString(), " vs. ", value.shape().ToString(),
        channels_first ? " (NCHW: as dimension 1)" : "");
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, value.shape()));
  if (y->num_elements() == 0) return absl::OkStatus();
  AddBias(ctx.pool(), value.data<T>(), bias.data<T>(), y->data<T>(), c);
  return absl::OkStatus();
}

// ---- the gradient

// Adds rows [begin, end), each `channels` wide, to the sums.
template <class T>
void AddRows(const T* x, const Channels& c, int64_t begin, int64_t end, Wide<T>* sums) {
  if constexpr (kVectorized<T>) {
    channel_ops::AddColumns(x + begin * c.channels, end - begin, c.channels, sums);
  } else {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t k = 0; k < c.channels; ++k)
        sums[k] = Add(sums[k], Wide<T>(x[r * c.channels + k]));
    }
  }
}

// Channels last: each piece of the rows has partial sums, which are then added.
template <class T>
void SumRows(ThreadPool& pool, const T* x, const Channels& c, Wide<T>* sums) {
  const double work = 0.1 * static_cast<double>(c.outer) * c.channels;
  const int64_t pieces = NumPiecesForWork(work, std::min(c.outer, kMaxPieces));
  if (pieces == 1) return AddRows(x, c, 0, c.outer, sums);
  std::vector<Wide<T>> partial(pieces * c.channels, Wide<T>(0));
  pool.ForEach(static_cast<int>(pieces), [&](int i) {
    AddRows(x, c, c.outer * i / pieces, c.outer * (i + 1) / pieces,
            partial.data() + i * c.channels);
  });
  for (int64_t i = 0; i < pieces; ++i) {
    for (int64_t k = 0; k < c.channels; ++k) sums[k] = Add(sums[k], partial[i * c.channels + k]);
  }
}

// Channels first: each channel is a sum over contiguous runs.
template <class T>
void SumPlanes(ThreadPool& pool, const T* x, const Channels& c, Wide<T>* sums) {
  pool.ParallelFor(c.channels, 0.5 * static_cast<double>(c.outer) * c.inner,
                   [&](int64_t begin, int64_t end) {
                     for (int64_t k = begin; k < end; ++k) {
                       for (int64_t n = 0; n < c.outer; ++n) {
                         const T* from = x + (n * c.channels + k) * c.inner;
                         Wide<T> plane(0);
                         for (int64_t i = 0; i < c.inner; ++i) plane = Add(plane, Wide<T>(from[i]));
                         sums[k] = Add(sums[k], plane);
                       }
                     }
                   });
}

template <class T>
absl::Status BiasAddGrad(KernelContext& ctx, bool channels_first) {
  const Tensor& dy = ctx.input(0);
  WEIR_ASSIGN_OR_RETURN(const Channels c, ChannelsOf(dy.shape(), channels_first));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape({c.channels})));
  std::fill_n(out->data<T>(), c.channels, T(0));
  if (dy.num_elements() == 0) return absl::OkStatus();
  const auto sum_into = [&](Wide<T>* sums) {
    c.inner == 1 ? SumRows(ctx.pool(), dy.data<T>(), c, sums)
                 : SumPlanes(ctx.pool(), dy.data<T>(), c, sums);
  };
  if constexpr (std::is_same_v<T, Wide<T>>) {
    sum_into(out->data<T>());
  } else {
    std::vector<Wide<T>> sums(c.channels, 0);
    sum_into(sums.data());
    for (int64_t k = 0; k < c.channels; ++k) out->data<T>()[k] = T(sums[k]);
  }
  return absl::OkStatus();
}

bool ChannelsFirst(const KernelInit& init) {
  return init.node.attr_or<std::string>("data_format", "NHWC") == "NCHW";
}

// ---- L2Loss

template <class T>
absl::Status L2Loss(KernelContext& ctx) {
  const Tensor& t = ctx.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  const T* const data = t.data<T>();
  const int64_t n = t.num_elements();
  const int64_t pieces = std::clamp<int64_t>(n / (1 << 17), 1, 2 * kMaxPieces);
  std::vector<double> sums(pieces, 0.0);
  ctx.pool().ForEach(static_cast<int>(pieces), [&](int i) {
    const int64_t begin = n * i / pieces, end = n * (i + 1) / pieces;
    if constexpr (kVectorized<T>) {
      sums[i] = channel_ops::SumOfSquares(data + begin, end - begin);
    } else {
      for (int64_t k = begin; k < end; ++k)
        sums[i] += static_cast<double>(float(data[k])) * float(data[k]);
    }
  });
  double total = 0;
  for (double s : sums) total += s;
  *out->data<T>() = T(total / 2);
  return absl::OkStatus();
}

template <class... Ts>
void AddBiasOps(KernelRegistry* r, List<Ts...>) {
  const auto add = []<class T>(const KernelInit& init) -> absl::StatusOr<Kernel> {
    return Kernel(
        [first = ChannelsFirst(init)](KernelContext& ctx) { return BiasAdd<T>(ctx, first); });
  };
  const auto grad = []<class T>(const KernelInit& init) -> absl::StatusOr<Kernel> {
    return Kernel(
        [first = ChannelsFirst(init)](KernelContext& ctx) { return BiasAddGrad<T>(ctx, first); });
  };
  const auto make = []<class T, class F>(F factory) {
    return [factory](const KernelInit& init) { return factory.template operator()<T>(init); };
  };
  for (const char* op : {"BiasAdd", "BiasAddV1"}) {
    (r->Add(op, kCpu, DataTypeOf<Ts>::value, make.template operator()<Ts>(add)).InPlace({0}), ...);
  }
  (r->Add("BiasAddGrad", kCpu, DataTypeOf<Ts>::value, make.template operator()<Ts>(grad)), ...);
}

template <class... Ts>
void AddL2Loss(KernelRegistry* r, List<Ts...>) {
  (r->Add("L2Loss", kCpu, DataTypeOf<Ts>::value, L2Loss<Ts>), ...);
}

}  // namespace

void AddBiasCpu(KernelRegistry* r) {
  AddBiasOps(r, Numbers());
  AddL2Loss(r, Floats());
}

}  // namespace weir
