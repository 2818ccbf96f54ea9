#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/linalg/matmul.h"
#include "weir/kernels/nn/conv_plain.h"
#include "weir/kernels/quantize/quantize.h"
#include "weir/kernels/quantize/quantized_range.h"

// Convolutions and products of quantized tensors with a bias, a summand, a rectifier and
// requantization. Here 0 stands for 0, and the largest integer for the larger end of the range by
// magnitude: s = max(|min|, |max|) / 255 for quint8, / 127 for qint8. A result is
//   relu(s_a s_b sum(a b) + bias + summand)
// in units of the scale of the output, rounded to nearest even: those of the product (qint32), or
// those of the given range (quint8, qint8). A bias of qint32 is in units of s_a s_b. The arithmetic
// is that of TensorFlow's oneDNN kernels.
namespace weir {

namespace {

// ---- operands and scales

float Magnitude(const NumberRange& r) { return std::max(std::abs(r.min), std::abs(r.max)); }
double ScaleOf(DataType type, const NumberRange& r) {
  return static_cast<double>(Magnitude(r)) / (type == DT_QUINT8 ? 255 : 127);
}

// The step of a range of integers, for the range of a product; qint8 has 254 steps.
float Step(DataType type, const NumberRange& r) {
  return (r.max - r.min) / (type == DT_QUINT8 ? 255.0f : 254.0f);
}
NumberRange ProductRange(float step_a, float step_b) {
  const float step = step_a * step_b;
  return {step * static_cast<float>(kLowest<qint32>), step * static_cast<float>(kHighest<qint32>)};
}

absl::StatusOr<Tensor> Widened(KernelContext& c, const Tensor& x) {
  WEIR_ASSIGN_OR_RETURN(Tensor out, c.AllocateTemp(DT_INT32, x.shape()));
  DispatchType(x.dtype(), List<quint8, qint8>{}, [&]<class T>() {
    c.pool().ParallelFor(x.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out.data<int32_t>()[i] = x.data<T>()[i].value;
    });
  });
  return out;
}

// What becomes of the sums of products, by channel.
struct Finish {
  std::vector<double> scales;  // s_a s_b: one for each channel, or one
  std::vector<double> biases;  // one for each channel, or empty
  bool relu = false;
  const Tensor* summand = nullptr;
  double summand_scale = 1;
  std::optional<double> result_scale;  // null: that of the product

  double scale(int64_t channel) const { return scales[scales.size() == 1 ? 0 : channel]; }

  template <class T>
  void Write(ThreadPool& pool, const int32_t* sums, int64_t channels, Tensor* out) const {
    pool.ParallelFor(out->num_elements(), 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t channel = i % channels;
        double x = sums[i] * scale(channel);
        if (!biases.empty()) x += biases[channel];
        if (summand != nullptr) x += Summand(i);
        if (relu && !(x > 0)) x = 0;
        if constexpr (std::is_same_v<T, float>) {
          out->data<float>()[i] = static_cast<float>(x);
        } else {
          const double q = std::nearbyint(x / result_scale.value_or(scale(channel)));
          out->data<T>()[i].value =
              static_cast<Word<T>>(std::clamp(ToInt64(q), kLowest<T>, kHighest<T>));
        }
      }
    });
  }
  void Write(ThreadPool& pool, const Tensor& sums, int64_t channels, Tensor* out) const {
    DispatchType(out->dtype(), List<float, qint32, quint8, qint8>{},
                 [&]<class T>() { Write<T>(pool, sums.data<int32_t>(), channels, out); });
  }

 private:
  double Summand(int64_t i) const {
    if (summand->dtype() == DT_FLOAT) return summand->data<float>()[i];
    const int q = summand->dtype() == DT_QUINT8 ? static_cast<const uint8_t*>(summand->raw())[i]
                                                : static_cast<const int8_t*>(summand->raw())[i];
    return q * summand_scale;
  }
};

absl::Status CheckBias(const Tensor& bias, int64_t channels) {
  if (bias.rank() == 1 && bias.dim(0) == channels) return absl::OkStatus();
  return InvalidArgument("bias must be a vector of ", channels, " elements, but has shape ",
                         bias.shape().ToString());
}

// Returns the biases, of which those of qint32 are in units of scale(channel).
template <class F>
std::vector<double> BiasesOf(const Tensor& bias, const F& scale) {
  std::vector<double> biases(bias.num_elements());
  for (int64_t i = 0; i < bias.num_elements(); ++i) {
    biases[i] = bias.dtype() == DT_FLOAT
                    ? bias.data<float>()[i]
                    : static_cast<double>(bias.data<qint32>()[i].value) * scale(i);
  }
  return biases;
}

// ---- convolutions

// The ranges of a filter, at inputs `first` and `first` + 1: one, or one for each channel.
absl::StatusOr<std::vector<NumberRange>> FilterRanges(const KernelContext& c, int first,
                                                      int64_t channels) {
  const Tensor &min = c.input(first), &max = c.input(first + 1);
  const int64_t count = min.num_elements();
  if (min.shape() != max.shape() || min.rank() > 1 || (count != 1 && count != channels)) {
    return InvalidArgument("min_filter and max_filter must be scalars or vectors of ", channels,
                           " elements, but have shapes ", min.shape().ToString(), " and ",
                           max.shape().ToString());
  }
  std::vector<NumberRange> ranges(count);
  for (int64_t i = 0; i < count; ++i) ranges[i] = {min.data<float>()[i], max.data<float>()[i]};
  return ranges;
}

absl::Status WriteRanges(KernelContext& c, float step, const std::vector<NumberRange>& filter,
                         const Shape& shape) {
  WEIR_ASSIGN_OR_RETURN(Tensor* const min, c.AllocateOutput(1, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor* const max, c.AllocateOutput(2, shape));
  for (size_t i = 0; i < filter.size(); ++i) {
    const NumberRange range = ProductRange(step, Step(DT_QINT8, filter[i]));
    min->data<float>()[i] = range.min;
    max->data<float>()[i] = range.max;
  }
  return absl::OkStatus();
}

struct FusedConv {
  ConvAttributes attributes;
  bool bias, summand, relu, requantizes;

  absl::Status Run(KernelContext& c) const {
    const Tensor &x = c.input(0), &filter = c.input(1);
    const int at = bias ? 3 : 2;  // of the ranges
    WEIR_ASSIGN_OR_RETURN(const ConvArguments args,
                          ReadConvArguments(c, attributes, ConvPass::kForward));
    const int64_t channels = args.shape.out_channels;
    WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadRange(c, at));
    WEIR_ASSIGN_OR_RETURN(const auto filter_ranges, FilterRanges(c, at + 2, channels));
    Finish finish{.relu = relu};
    for (const NumberRange& r : filter_ranges)
      finish.scales.push_back(ScaleOf(x.dtype(), range) * ScaleOf(DT_QINT8, r));
    if (bias) {
      WEIR_RETURN_IF_ERROR(CheckBias(c.input(2), channels));
      finish.biases = BiasesOf(c.input(2), [&](int64_t i) { return finish.scale(i); });
    }
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, args.output));
    NumberRange result;
    if (requantizes) {
      WEIR_ASSIGN_OR_RETURN(result, ReadRange(c, at + 4));
      finish.result_scale = ScaleOf(out->dtype(), result);
    }
    if (summand) WEIR_RETURN_IF_ERROR(ReadSummand(c, requantizes ? at + 6 : at + 4, args, &finish));
    WEIR_ASSIGN_OR_RETURN(const Tensor wide, Widened(c, x));
    WEIR_ASSIGN_OR_RETURN(const Tensor wide_filter, Widened(c, filter));
    WEIR_ASSIGN_OR_RETURN(Tensor sums, c.AllocateTemp(DT_INT32, args.output));
    PlainConv(c.pool(), args.shape, wide.data<int32_t>(), wide_filter.data<int32_t>(),
              sums.data<int32_t>());
    finish.Write(c.pool(), sums, channels, out);
    if (requantizes) return WriteRange(c, 1, result);
    return WriteRanges(c, Step(x.dtype(), range), filter_ranges, c.input(at + 2).shape());
  }

  static absl::Status ReadSummand(const KernelContext& c, int i, const ConvArguments& args,
                                  Finish* finish) {
    finish->summand = &c.input(i);
    if (c.input(i).shape() != args.output) {
      return InvalidArgument("summand must have the shape of the output, ", args.output.ToString(),
                             ", but has ", c.input(i).shape().ToString());
    }
    if (c.input(i).dtype() == DT_FLOAT) return absl::OkStatus();
    if (c.input(i).dtype() != DT_QUINT8 && c.input(i).dtype() != DT_QINT8) {
      return InvalidArgument("summand must be of quint8 or qint8, but is ",
                             DataTypeName(c.input(i).dtype()));
    }
    WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadRange(c, i + 1));
    finish->summand_scale = ScaleOf(c.input(i).dtype(), range);
    return absl::OkStatus();
  }
};

absl::StatusOr<Kernel> MakeConv(const KernelInit& init) {
  const std::string& name = init.node.op_name();
  const auto has = [&](absl::string_view part) { return absl::StrContains(name, part); };
  WEIR_ASSIGN_OR_RETURN(ConvAttributes attributes, ConvAttributes::Read(init.node));
  const auto padding = init.node.attr_or<std::vector<int64_t>>("padding_list", {});
  if (!padding.empty()) {
    if (padding.size() != 8) {
      return InvalidArgument("padding_list attribute must contain 8 values, but got: ",
                             padding.size());
    }
    if (*std::min_element(padding.begin(), padding.end()) < 0)
      return InvalidArgument("the values of padding_list must not be negative");
    attributes.padding = "EXPLICIT";
    attributes.explicit_paddings = padding;
  }
  return Kernel(
      [conv = FusedConv{attributes, has("WithBias"), has("Sum"), has("Relu"), has("Requantize")}](
          KernelContext& c) -> absl::Status { return conv.Run(c); });
}

// ---- products

// The first operand of MIN_FIRST begins at min_a. TensorFlow then expects a qint32 bias that
// includes the product with min_a, and adds that product to a float bias itself; its unit is that
// of TensorFlow 2.21, which does not scale it.
struct FusedMatMul {
  bool transpose_a, transpose_b, min_first, relu, requantizes;

  double BiasScale(const NumberRange& a, const NumberRange& b) const {
    const double width = min_first ? a.max - a.min : a.max;
    return width * Magnitude(b) / (255.0 * 127.0);
  }

  // Adds 255 min_a / (max_a - min_a) times the sum of each column of B.
  void AddMinimum(const Tensor& b, const MatMulArgs& args, const NumberRange& a,
                  std::vector<double>* biases) const {
    const double factor = 255.0f * a.min / (a.max - a.min);
    for (int64_t j = 0; j < args.n; ++j) {
      int64_t sum = 0;
      for (int64_t k = 0; k < args.k; ++k)
        sum += b.data<int32_t>()[transpose_b ? j * args.k + k : k * args.n + j];
      (*biases)[j] += static_cast<double>(sum) * factor;
    }
  }

  absl::Status Run(KernelContext& c) const {
    const Tensor &x = c.input(0), &y = c.input(1), &bias = c.input(2);
    WEIR_ASSIGN_OR_RETURN(const NumberRange a, ReadRange(c, 3));
    WEIR_ASSIGN_OR_RETURN(const NumberRange b, ReadRange(c, 5));
    WEIR_ASSIGN_OR_RETURN(const MatMulArgs args,
                          MatMulOf(x.shape(), y.shape(), transpose_a, transpose_b));
    WEIR_RETURN_IF_ERROR(CheckBias(bias, args.n));
    WEIR_ASSIGN_OR_RETURN(const Tensor wide_x, Widened(c, x));
    WEIR_ASSIGN_OR_RETURN(const Tensor wide_y, Widened(c, y));
    const double scale_a = min_first ? (a.max - a.min) / 255.0 : ScaleOf(DT_QUINT8, a);
    Finish finish{.scales = {scale_a * ScaleOf(DT_QINT8, b)}, .relu = relu};
    finish.biases = BiasesOf(bias, [&](int64_t) { return BiasScale(a, b); });
    if (min_first && bias.dtype() == DT_FLOAT) AddMinimum(wide_y, args, a, &finish.biases);
    const Shape shape({args.m, args.n});
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
    NumberRange result = ProductRange(Step(DT_QUINT8, a), Step(DT_QINT8, b));
    if (requantizes) {
      WEIR_ASSIGN_OR_RETURN(result, ReadRange(c, 7));
      finish.result_scale = ScaleOf(out->dtype(), result);
    }
    WEIR_ASSIGN_OR_RETURN(Tensor sums, c.AllocateTemp(DT_INT32, shape));
    if (args.k == 0) {
      std::fill_n(sums.data<int32_t>(), sums.num_elements(), 0);
    } else if (sums.num_elements() > 0) {
      WEIR_RETURN_IF_ERROR(
          RunMatMul(c.pool(), DT_INT32, args, wide_x.raw(), wide_y.raw(), sums.raw()));
    }
    if (sums.num_elements() > 0) finish.Write(c.pool(), sums, args.n, out);
    return c.num_outputs() == 1 ? absl::OkStatus() : WriteRange(c, 1, result);
  }
};

absl::StatusOr<Kernel> MakeMatMul(const KernelInit& init) {
  const std::string& name = init.node.op_name();
  const FusedMatMul product{init.attr<bool>("transpose_a"), init.attr<bool>("transpose_b"),
                            init.attr<std::string>("input_quant_mode") == "MIN_FIRST",
                            absl::StrContains(name, "Relu"), absl::StrContains(name, "Requantize")};
  return Kernel([product](KernelContext& c) -> absl::Status { return product.Run(c); });
}

}  // namespace

void AddQuantizedFusedCpu(KernelRegistry* r) {
  for (const DataType in : {DT_QUINT8, DT_QINT8}) {
    const auto add = [&](absl::string_view op, DataType out) {
      r->Add(op, kCpu, TypeConstraints{{"Tinput", in}, {"Tfilter", DT_QINT8}, {"out_type", out}},
             MakeConv);
    };
    for (const char* op :
         {"QuantizedConv2DPerChannel", "QuantizedConv2DAndRelu", "QuantizedConv2DWithBias",
          "QuantizedConv2DWithBiasAndRelu", "QuantizedConv2DWithBiasSumAndRelu",
          "QuantizedDepthwiseConv2D", "QuantizedDepthwiseConv2DWithBias",
          "QuantizedDepthwiseConv2DWithBiasAndRelu"})
      add(op, DT_QINT32);
    for (const char* op :
         {"QuantizedConv2DAndReluAndRequantize", "QuantizedConv2DWithBiasAndReluAndRequantize",
          "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize",
          "QuantizedConv2DWithBiasSumAndReluAndRequantize",
          "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize"})
      add(op, DT_QUINT8);
    for (const char* op : {"QuantizedConv2DAndRequantize", "QuantizedConv2DWithBiasAndRequantize"})
      add(op, DT_QINT8);
  }
  const auto add = [&](absl::string_view suffix, DataType out) {
    r->Add(absl::StrCat("QuantizedMatMulWithBias", suffix), kCpu,
           TypeConstraints{{"T1", DT_QUINT8}, {"T2", DT_QINT8}, {"Toutput", out}}, MakeMatMul);
  };
  add("", DT_QINT32);
  add("AndRelu", DT_QINT32);
  add("AndDequantize", DT_FLOAT);
  add("AndReluAndRequantize", DT_QUINT8);
  add("AndRequantize", DT_QUINT8);
  add("AndRequantize", DT_QINT8);
}

}  // namespace weir
