#include <cmath>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/quantize/quantize.h"
#include "weir/kernels/quantize/uniform.h"

// Uniform quantization and the elementwise ops on uniformly quantized tensors.
namespace weir {

absl::StatusOr<UniformParams> ReadUniformParams(const KernelContext& c, int first,
                                                const Shape& shape, int64_t axis) {
  const Tensor &scales = c.input(first), &zero_points = c.input(first + 1);
  if (scales.shape() != zero_points.shape()) {
    return InvalidArgument("scales and zero_points shape must be same, but given scales shape ",
                           scales.shape().ToString(), " and zero_points shape ",
                           zero_points.shape().ToString());
  }
  if (axis < -1 || axis >= shape.rank()) {
    return InvalidArgument("quantization_axis must be -1 or in range [0, input.rank), but given ",
                           axis);
  }
  if (axis == -1 && scales.rank() != 0) {
    return InvalidArgument(
        "If quantization_axis is -1, scales and zero_points must be scalar tensors, but given "
        "shape ",
        scales.shape().ToString());
  }
  if (axis >= 0 && (scales.rank() != 1 || scales.dim(0) != shape.dim(static_cast<int>(axis)))) {
    return InvalidArgument(
        "If quantization_axis is not -1, scales and zero_points must be a tensor of rank 1 and the "
        "size must be equal to the input.dim_size(quantization_axis), but given quantization_axis ",
        axis, ", scales shape ", scales.shape().ToString(), " and input shape ", shape.ToString());
  }
  return UniformParams{scales.data<float>(), zero_points.data<int32_t>(), axis >= 0 ? 1 : 0};
}

absl::Status CheckScales(const KernelContext& c, int i) {
  for (const float scale : c.input(i).flat<float>()) {
    if (scale > 0) continue;
    return InvalidArgument(c.node().op().inputs()[i].name,
                           ": scales elements must be all positive, but one is ", scale);
  }
  return absl::OkStatus();
}

absl::StatusOr<UniformRange> UniformRange::Read(const Node& node, const std::string& prefix) {
  WEIR_ASSIGN_OR_RETURN(const int min, NarrowAttr(node, prefix + "quantization_min_val"));
  WEIR_ASSIGN_OR_RETURN(const int max, NarrowAttr(node, prefix + "quantization_max_val"));
  return UniformRange{min, max};
}

absl::StatusOr<FixedPointFactor> FixedPointFactor::Make(double factor) {
  if (!std::isfinite(factor) || factor <= 0) {
    return InvalidArgument("double_multiplier must be a positive finite number. Given ", factor);
  }
  FixedPointFactor f;
  constexpr int64_t kOne = int64_t{1} << 31;
  const double fraction = std::frexp(factor, &f.shift_);
  int64_t bits = static_cast<int64_t>(std::round(fraction * kOne));
  if (bits == kOne) {
    bits /= 2;
    ++f.shift_;
  }
  if (f.shift_ < -31) {
    f.shift_ = 0;
    bits = 0;
  }
  if (f.shift_ > 30) {
    f.shift_ = 30;
    bits = kOne - 1;
  }
  f.fraction_ = static_cast<int32_t>(bits);
  return f;
}

namespace {

// ---- UniformQuantize and UniformDequantize

template <class T>
absl::StatusOr<Kernel> MakeQuantize(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const UniformRange range, UniformRange::Read(init.node, ""));
  const auto axis = init.attr<int64_t>("quantization_axis");
  if (axis < -1) return InvalidArgument("quantization_axis must be >= -1, given: ", axis);
  return Kernel([=](KernelContext& c) -> absl::Status {
    const Tensor& x = c.input(0);
    WEIR_ASSIGN_OR_RETURN(const UniformParams params, ReadUniformParams(c, 1, x.shape(), axis));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, x.shape()));
    Channels::Along(x.shape(), axis)
        .ForEachRun(c.pool(), 2,
                    [&, from = x.data<float>(), to = out->data<T>()](int64_t begin, int64_t end,
                                                                     int64_t channel) {
                      const float inverse = 1.0f / params.scale(channel);
                      for (int64_t i = begin; i < end; ++i) {
                        to[i].value = static_cast<Word<T>>(
                            QuantizeUniformly(from[i], inverse, params.zero_point(channel), range));
                      }
                    });
    return absl::OkStatus();
  });
}

template <class T>
absl::StatusOr<Kernel> MakeDequantize(const KernelInit& init) {
  const auto axis = init.attr<int64_t>("quantization_axis");
  return Kernel([=](KernelContext& c) -> absl::Status {
    const Tensor& x = c.input(0);
    WEIR_ASSIGN_OR_RETURN(const UniformParams params, ReadUniformParams(c, 1, x.shape(), axis));
    WEIR_RETURN_IF_ERROR(CheckScales(c, 1));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, x.shape()));
    Channels::Along(x.shape(), axis)
        .ForEach(c.pool(), 1,
                 [&, from = x.data<T>(), to = out->data<float>()](int64_t i, int64_t channel) {
                   const int64_t q = int64_t{from[i].value} - params.zero_point(channel);
                   to[i] = static_cast<float>(SaturateTo32(q)) * params.scale(channel);
                 });
    return absl::OkStatus();
  });
}

// ---- UniformRequantize

// Returns the factors from one scale to another for each of `count` channels.
absl::StatusOr<std::vector<FixedPointFactor>> Factors(const UniformParams& from,
                                                      const UniformParams& to, int64_t count) {
  std::vector<FixedPointFactor> factors(count);
  for (int64_t i = 0; i < count; ++i) {
    WEIR_ASSIGN_OR_RETURN(factors[i],
                          FixedPointFactor::Make(static_cast<double>(from.scale(i)) / to.scale(i)));
  }
  return factors;
}

template <class T>
absl::StatusOr<Kernel> MakeRequantize(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const UniformRange range, UniformRange::Read(init.node, "output_"));
  const auto in = init.attr<int64_t>("input_quantization_axis");
  const auto out_axis = init.attr<int64_t>("output_quantization_axis");
  if (in >= 0 && out_axis >= 0 && in != out_axis) {
    return InvalidArgument(
        "If input and output is both per-axis quantized, the quantization axis must be same.");
  }
  return Kernel([=](KernelContext& c) -> absl::Status {
    const Tensor& x = c.input(0);
    WEIR_ASSIGN_OR_RETURN(const UniformParams from, ReadUniformParams(c, 1, x.shape(), in));
    WEIR_ASSIGN_OR_RETURN(const UniformParams to, ReadUniformParams(c, 3, x.shape(), out_axis));
    WEIR_RETURN_IF_ERROR(CheckScales(c, 1));
    WEIR_RETURN_IF_ERROR(CheckScales(c, 3));
    const Channels channels = Channels::Along(x.shape(), std::max(in, out_axis));
    WEIR_ASSIGN_OR_RETURN(const auto factors, Factors(from, to, channels.count));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, x.shape()));
    channels.ForEach(
        c.pool(), 2, [&, q = x.data<T>(), result = out->data<qint8>()](int64_t i, int64_t channel) {
          const int32_t scaled =
              factors[channel].Multiply(int64_t{q[i].value} - from.zero_point(channel));
          result[i].value =
              static_cast<int8_t>(range.Clamp(int64_t{scaled} + to.zero_point(channel)));
        });
    return absl::OkStatus();
  });
}

// ---- UniformQuantizedAdd

// An operand of a sum, requantized to the scale of the output.
struct Operand {
  const int32_t* data;
  UniformParams params;
  Dims strides;          // in the output's dimensions; 0 where the operand is broadcast
  Dims channel_strides;  // 1 at the quantization axis, if the operand has more than one channel
  std::vector<FixedPointFactor> factors;  // for each channel of the output, or of the operand
  bool by_output = false;

  int64_t At(absl::Span<const int64_t> index, int64_t out_channel) const {
    int64_t at = 0, channel = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      at += index[d] * strides[d];
      channel += index[d] * channel_strides[d];
    }
    return factors[by_output ? out_channel : channel].Multiply(int64_t{data[at]} -
                                                               params.zero_point(channel));
  }
};

// `axis` is that of the operand. If the output has an axis too, it is the same one.
absl::StatusOr<Operand> MakeOperand(const Tensor& x, const UniformParams& params, int64_t axis,
                                    const Shape& out, const UniformParams& out_params,
                                    int64_t out_channels) {
  Operand operand{static_cast<const int32_t*>(x.raw()), params};
  const int lead = out.rank() - x.rank();
  const Dims strides = StridesOf(x.shape());
  operand.strides.resize(out.rank(), 0);
  operand.channel_strides.resize(out.rank(), 0);
  for (int d = 0; d < x.rank(); ++d) {
    if (x.dim(d) == 1) continue;
    operand.strides[lead + d] = strides[d];
    if (d == axis) operand.channel_strides[lead + d] = 1;
  }
  const int64_t channels = axis >= 0 ? x.dim(static_cast<int>(axis)) : 1;
  operand.by_output = out_params.stride != 0;
  operand.factors.resize(operand.by_output ? out_channels : channels);
  for (size_t i = 0; i < operand.factors.size(); ++i) {
    const int64_t channel = static_cast<int64_t>(i);
    const double from = params.scale(channels == 1 ? 0 : channel);
    WEIR_ASSIGN_OR_RETURN(operand.factors[i],
                          FixedPointFactor::Make(from / out_params.scale(channel)));
  }
  return operand;
}

absl::StatusOr<Kernel> MakeAdd(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const UniformRange range, UniformRange::Read(init.node, "output_"));
  const auto left = init.attr<int64_t>("lhs_quantization_axis"),
             right = init.attr<int64_t>("rhs_quantization_axis"),
             axis = init.attr<int64_t>("output_quantization_axis");
  return Kernel([=](KernelContext& c) -> absl::Status {
    const Tensor &x = c.input(0), &y = c.input(1);
    WEIR_ASSIGN_OR_RETURN(const UniformParams px, ReadUniformParams(c, 2, x.shape(), left));
    WEIR_ASSIGN_OR_RETURN(const UniformParams py, ReadUniformParams(c, 4, y.shape(), right));
    const absl::StatusOr<Shape> shape = BroadcastShapes(x.shape(), y.shape());
    if (!shape.ok()) {
      return InvalidArgument("Cannot Add tensors of shapes: ", x.shape().ToString(),
                             y.shape().ToString());
    }
    WEIR_ASSIGN_OR_RETURN(const UniformParams pz, ReadUniformParams(c, 6, *shape, axis));
    for (const auto& [tensor, operand_axis] : {std::pair{&x, left}, std::pair{&y, right}}) {
      if (operand_axis >= 0 && axis >= 0 && tensor->rank() - operand_axis != shape->rank() - axis) {
        return InvalidArgument(
            "If an operand and the output are both per-axis quantized, the quantization axis must "
            "match.");
      }
    }
    for (const int i : {2, 4, 6}) WEIR_RETURN_IF_ERROR(CheckScales(c, i));
    const Channels channels = Channels::Along(*shape, axis);
    WEIR_ASSIGN_OR_RETURN(const Operand a, MakeOperand(x, px, left, *shape, pz, channels.count));
    WEIR_ASSIGN_OR_RETURN(const Operand b, MakeOperand(y, py, right, *shape, pz, channels.count));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, *shape));
    channels.ForEach(c.pool(), 10, [&, to = out->data<qint32>()](int64_t i, int64_t channel) {
      Dims index(shape->rank());
      for (int64_t d = shape->rank() - 1, rest = i; d >= 0; --d) {
        index[d] = rest % shape->dim(static_cast<int>(d));
        rest /= shape->dim(static_cast<int>(d));
      }
      to[i].value =
          range.Clamp(a.At(index, channel) + b.At(index, channel) + pz.zero_point(channel));
    });
    return absl::OkStatus();
  });
}

// ---- UniformQuantizedClipByValue

absl::StatusOr<Kernel> MakeClip(const KernelInit& init) {
  const auto axis = init.attr<int64_t>("quantization_axis");
  return Kernel([=](KernelContext& c) -> absl::Status {
    const Tensor &x = c.input(0), &min = c.input(1), &max = c.input(2);
    WEIR_ASSIGN_OR_RETURN(const UniformParams params, ReadUniformParams(c, 3, x.shape(), axis));
    for (const Tensor* limit : {&min, &max}) {
      if (limit->shape() == c.input(3).shape()) continue;
      return InvalidArgument("Input ", limit == &min ? "min" : "max",
                             " shape must be same as scales/zero_points. Given shapes ",
                             limit->shape().ToString(), " and ", c.input(3).shape().ToString());
    }
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, x.shape()));
    const qint32 *const low = min.data<qint32>(), *const high = max.data<qint32>();
    Channels::Along(x.shape(), axis)
        .ForEach(
            c.pool(), 1,
            [&, from = x.data<qint32>(), to = out->data<qint32>()](int64_t i, int64_t channel) {
              const int64_t at = channel * params.stride;
              to[i].value = std::min(std::max(from[i].value, low[at].value), high[at].value);
            });
    return absl::OkStatus();
  });
}

}  // namespace

void AddUniformCpu(KernelRegistry* r) {
  const auto types = [](DataType in, DataType out) {
    return TypeConstraints{{"Tin", in}, {"Tout", out}};
  };
  r->Add("UniformQuantize", kCpu, types(DT_FLOAT, DT_QINT8), MakeQuantize<qint8>);
  r->Add("UniformQuantize", kCpu, types(DT_FLOAT, DT_QUINT8), MakeQuantize<quint8>);
  r->Add("UniformQuantize", kCpu, types(DT_FLOAT, DT_QINT32), MakeQuantize<qint32>);
  r->Add("UniformDequantize", kCpu, types(DT_QINT8, DT_FLOAT), MakeDequantize<qint8>);
  r->Add("UniformDequantize", kCpu, types(DT_QUINT8, DT_FLOAT), MakeDequantize<quint8>);
  r->Add("UniformDequantize", kCpu, types(DT_QINT32, DT_FLOAT), MakeDequantize<qint32>);
  r->Add("UniformRequantize", kCpu, types(DT_QINT8, DT_QINT8), MakeRequantize<qint8>);
  r->Add("UniformRequantize", kCpu, types(DT_QINT32, DT_QINT8), MakeRequantize<qint32>);
  r->Add("UniformQuantizedAdd", kCpu, DT_QINT32, MakeAdd);
  r->Add("UniformQuantizedClipByValue", kCpu, DT_QINT32, MakeClip);
}

}  // namespace weir
