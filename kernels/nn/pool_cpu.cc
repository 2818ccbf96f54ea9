#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/nn/image_operand.h"
#include "weir/kernels/nn/pool.h"
#include "weir/kernels/nn/pool_rows.h"

namespace weir {
namespace {

bool IsGradient(PoolKind kind) { return kind == PoolKind::kMaxGrad || kind == PoolKind::kAvgGrad; }

// 1 / the number of pixels inside the image, for each window.
template <class C>
std::vector<C> WindowScales(const PoolShape& s) {
  std::vector<int64_t> counts[3];  // along each dimension
  for (int i = 0; i < 3; ++i) {
    for (int64_t at = 0; at < s.out[i]; ++at) {
      const auto [begin, end] = s.WindowAt(i, at);
      counts[i].push_back(end - begin);
    }
  }
  std::vector<C> scales;
  scales.reserve(static_cast<size_t>(s.out_pixels()));
  for (const int64_t z : counts[0]) {
    for (const int64_t y : counts[1]) {
      for (const int64_t x : counts[2])
        scales.push_back(C(1) / static_cast<C>(std::max<int64_t>(z * y * x, 1)));
    }
  }
  return scales;
}

// Computes `rows` independent rows of each image on the pool's threads; `cost` is that of one row.
template <class C>
void RunRows(ThreadPool& pool, PoolKind kind, const PoolShape& s, int64_t rows, double cost,
             const C* a, const C* b, C* out) {
  pool.ParallelFor(s.batch * rows, cost, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t image = begin / rows, first = begin % rows;
      const int64_t count = std::min(end - begin, rows - first);
      PoolRows(kind, s, {image, first, first + count, 0, s.channels}, a, b, out);
      begin += count;
    }
  });
}

// Splits a pooling into slices for the thread pool. Rows of windows that share no input pixels are
// independent, and so are the rows of an average's gradient. If the windows of a maximum's gradient
// overlap, their rows are not independent, so each slice is an image or some channels of one.
template <class C>
void RunPool(ThreadPool& pool, PoolKind kind, const PoolShape& s, const C* a, const C* b, C* out) {
  const double cost = 0.3 * static_cast<double>(s.taps()) * s.out[2] * s.channels;
  const int64_t rows = s.out[0] * s.out[1];
  if (kind == PoolKind::kAvgGrad) {
    const std::vector<C> scales = WindowScales<C>(s);
    const int64_t in_rows = s.in[0] * s.in[1];
    return RunRows(pool, kind, s, in_rows, cost * rows / in_rows, a, scales.data(), out);
  }
  if (kind != PoolKind::kMaxGrad || s.tiles()) return RunRows(pool, kind, s, rows, cost, a, b, out);
  constexpr int64_t kChannels = 64;
  const int64_t blocks =
      s.batch < 2 * pool.num_threads() ? (s.channels + kChannels - 1) / kChannels : 1;
  const int64_t width = blocks == 1 ? s.channels : kChannels;
  pool.ParallelFor(s.batch, 0.2 * s.in_pixels() * s.channels, [&](int64_t begin, int64_t end) {
    const int64_t size = s.in_pixels() * s.channels;
    std::memset(out + begin * size, 0, (end - begin) * size * sizeof(C));
  });
  pool.ParallelFor(s.batch * blocks, cost * rows / blocks, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * width;
      PoolRows(kind, s, {i / blocks, 0, rows, first, std::min(first + width, s.channels)}, a, b,
               out);
    }
  });
}

// Reads the shape from AvgPoolGrad's first input.
absl::StatusOr<Shape> ReadShape(const Tensor& sizes, int rank) {
  if (sizes.rank() != 1 || sizes.num_elements() != rank) {
    return InvalidArgument("out_backprop and orig_input_shape must be ", rank,
                           "-dimensional, but orig_input_shape is ", sizes.shape().ToString());
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < rank; ++i) {
    dims.push_back(sizes.IntAt(i));
    if (dims.back() < 0)
      return InvalidArgument("orig_input_shape must not be negative, but has ", dims.back());
  }
  return Shape::Make(dims);
}

template <class T>
absl::Status Pool(KernelContext& ctx, const PoolAttributes& attributes, PoolKind kind) {
  Shape image;
  if (kind == PoolKind::kAvgGrad) {
    WEIR_ASSIGN_OR_RETURN(image, ReadShape(ctx.input(0), attributes.layout.rank));
  } else {
    image = ctx.input(0).shape();
  }
  WEIR_ASSIGN_OR_RETURN(const PoolShape s, PoolShape::Make(ctx, attributes, image));
  const bool to_image = IsGradient(kind),
             is_max_grad = kind == PoolKind::kMaxGrad || kind == PoolKind::kMaxGradGrad;
  const bool across_channels =
      s.output.dim(attributes.layout.channel) != image.dim(attributes.layout.channel);
  if (across_channels && kind != PoolKind::kMax) {
    return Unimplemented("Non-spatial pooling is not yet supported, except for MaxPool");
  }
  if (is_max_grad) WEIR_RETURN_IF_ERROR(CheckShape(ctx.input(1), s.output, "orig_output"));
  if (kind == PoolKind::kMaxGrad) WEIR_RETURN_IF_ERROR(CheckShape(ctx.input(2), s.output, "grad"));
  if (kind == PoolKind::kMaxGradGrad) WEIR_RETURN_IF_ERROR(CheckShape(ctx.input(2), image, "grad"));
  if (kind == PoolKind::kAvgGrad) WEIR_RETURN_IF_ERROR(CheckShape(ctx.input(1), s.output, "grad"));

  WEIR_ASSIGN_OR_RETURN(Tensor * result, ctx.AllocateOutput(0, to_image ? image : s.output));
  if (result->num_elements() == 0) return absl::OkStatus();
  if (s.output.num_elements() == 0) {
    std::memset(result->raw(), 0, result->num_bytes());
    return absl::OkStatus();
  }
  ImageOperand<T> a, b, out;
  const bool turned = s.channels_first;
  WEIR_RETURN_IF_ERROR(
      a.Read(ctx, ctx.input(kind == PoolKind::kAvgGrad ? 1 : 0), turned, s.batch, s.channels));
  if (is_max_grad) WEIR_RETURN_IF_ERROR(b.Read(ctx, ctx.input(2), turned, s.batch, s.channels));
  WEIR_RETURN_IF_ERROR(out.Prepare(ctx, *result, turned));
  RunPool<Wide<T>>(ctx.pool(), kind, s, a.data(), b.data(), out.data());
  return out.Write(ctx, *result, turned, s.batch, s.channels);
}

template <class T>
KernelFactory Factory(PoolKind kind) {
  return [kind](const KernelInit& init) -> absl::StatusOr<Kernel> {
    WEIR_ASSIGN_OR_RETURN(const PoolAttributes attributes, PoolAttributes::Read(init.node));
    // MaxPool3DGrad allows inputs of another type than the gradient; this kernel does not support
    // that.
    const DataType input = init.node.attr_or<DataType>("TInput", DataTypeOf<T>::value);
    if (input != DataTypeOf<T>::value) {
      return InvalidArgument("No OpKernel was registered to support Op '", init.node.op_name(),
                             "' with TInput=", DataTypeName(input),
                             " and T=", DataTypeName(DataTypeOf<T>::value));
    }
    return Kernel([attributes, kind](KernelContext& ctx) -> absl::Status {
      return Pool<T>(ctx, attributes, kind);
    });
  };
}

template <class... Ts>
void AddPools(KernelRegistry* r, absl::string_view op, PoolKind kind,
              std::vector<std::string> host_args, List<Ts...>) {
  (r->Add(op, kCpu, DataTypeOf<Ts>::value, Factory<Ts>(kind)).HostArgs(host_args), ...);
}

}  // namespace

void AddPoolCpu(KernelRegistry* r) {
  const std::vector<std::string> none, sizes = {"ksize", "strides"}, shape = {"orig_input_shape"};
  using MaxPoolTypes =
      List<half, bfloat16, float, double, int32_t, int64_t, uint8_t, int16_t, int8_t, uint16_t>;
  AddPools(r, "MaxPool", PoolKind::kMax, none, MaxPoolTypes());
  AddPools(r, "MaxPoolV2", PoolKind::kMax, sizes, MaxPoolTypes());
  AddPools(r, "MaxPoolGrad", PoolKind::kMaxGrad, none, RealNumbers());
  AddPools(r, "MaxPoolGradV2", PoolKind::kMaxGrad, sizes, RealNumbers());
  AddPools(r, "MaxPoolGradGrad", PoolKind::kMaxGradGrad, none, RealNumbers());
  AddPools(r, "MaxPoolGradGradV2", PoolKind::kMaxGradGrad, sizes, RealNumbers());
  AddPools(r, "MaxPool3D", PoolKind::kMax, none, List<half, bfloat16, float>());
  AddPools(r, "MaxPool3DGrad", PoolKind::kMaxGrad, none, List<half, bfloat16, float>());
  AddPools(r, "MaxPool3DGradGrad", PoolKind::kMaxGradGrad, none, RealNumbers());
  AddPools(r, "AvgPool", PoolKind::kAvg, none, Floats());
  AddPools(r, "AvgPoolGrad", PoolKind::kAvgGrad, shape, Floats());
  AddPools(r, "AvgPool3D", PoolKind::kAvg, none, Floats());
  AddPools(r, "AvgPool3DGrad", PoolKind::kAvgGrad, shape, Floats());
}

}  // namespace weir
