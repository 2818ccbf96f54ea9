#include <algorithm>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/quantize/uniform_product.h"
#include "weir/ops/quantize/uniform_convolution.h"

// Convolutions of uniformly quantized tensors.
namespace weir {

namespace {

// The strides of a tensor by the roles of its dimensions.
struct RoleStrides {
  int64_t batch, feature;
  Dims spatial, extents;

  RoleStrides(const Shape& shape, const ConvolutionDimensions& d) {
    const Dims strides = StridesOf(shape);
    batch = strides[d.batch];
    feature = strides[d.feature];
    for (const int64_t i : d.spatial) {
      spatial.push_back(strides[i]);
      extents.push_back(shape.dim(static_cast<int>(i)));
    }
  }
};

// One convolution. Elements of the padding, and between the elements of a dilated input, stand for
// 0, so that they contribute nothing.
class Convolution {
 public:
  Convolution(const UniformConvolution& conv, const Shape& input, const Shape& kernel,
              const Shape& output)
      : conv_(conv),
        input_(input, conv.input),
        kernel_(kernel, conv.kernel),
        output_(output, conv.output),
        batch_(output.dim(static_cast<int>(conv.output.batch))),
        channels_(output.dim(static_cast<int>(conv.output.feature))),
        features_(kernel.dim(static_cast<int>(conv.kernel.feature))) {}

  void Run(ThreadPool& pool, const UniformLeft& x, const int8_t* kernel, const UniformParams& right,
           const UniformResult& result, Tensor* out) const {
    int64_t places = 1, taps = features_;
    for (const int64_t extent : output_.extents) places *= extent;
    for (const int64_t extent : kernel_.extents) taps *= extent;
    const int64_t by_batch = channels_ / conv_.batch_groups,
                  by_feature = channels_ / conv_.feature_groups;
    pool.ParallelFor(
        out->num_elements(), 3.0 * static_cast<double>(taps), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            ThrowIfCancelledAt(i);
            const int64_t channel = i / places % channels_, b = i / places / channels_;
            const int64_t image = channel / by_batch * batch_ + b;
            int64_t at = b * output_.batch + channel * output_.feature;
            Dims place(output_.extents.size());
            for (int64_t d = static_cast<int64_t>(place.size()) - 1, rest = i % places; d >= 0;
                 --d) {
              place[d] = rest % output_.extents[d];
              rest /= output_.extents[d];
              at += place[d] * output_.spatial[d];
            }
            const Operands operands{
                x.data + image * input_.batch + channel / by_feature * features_ * input_.feature,
                kernel + channel * kernel_.batch, static_cast<uint32_t>(x.params.zero_point(image)),
                static_cast<uint32_t>(right.zero_point(channel))};
            const uint32_t sum = Sum(operands, place, 0, 0, 0);
            result.Write(static_cast<int32_t>(sum), image, channel, out->raw(), at);
          }
        });
  }

 private:
  struct Operands {
    const int8_t *input, *kernel;
    uint32_t input_zero, kernel_zero;
  };

  // Sums over the taps of spatial dimensions from d on, and the features, at these offsets.
  uint32_t Sum(const Operands& o, const Dims& place, size_t d, int64_t in, int64_t tap) const {
    uint32_t sum = 0;
    if (d == place.size()) {
      for (int64_t f = 0; f < features_; ++f) {
        sum += UniformProduct(o.input[in + f * input_.feature], o.input_zero,
                              o.kernel[tap + f * kernel_.feature], o.kernel_zero);
      }
      return sum;
    }
    const int64_t first = place[d] * conv_.strides[d] - conv_.padding[2 * d];
    for (int64_t k = 0; k < kernel_.extents[d]; ++k) {
      const int64_t at = first + k * conv_.kernel_dilation[d];
      if (at < 0 || at % conv_.input_dilation[d] != 0) continue;
      const int64_t element = at / conv_.input_dilation[d];
      if (element >= input_.extents[d]) break;
      sum += Sum(o, place, d + 1, in + element * input_.spatial[d], tap + k * kernel_.spatial[d]);
    }
    return sum;
  }

  const UniformConvolution& conv_;
  const RoleStrides input_, kernel_, output_;
  const int64_t batch_, channels_, features_;
};

absl::Status CheckConvolutionAxis(absl::string_view operand, int64_t axis, int64_t feature) {
  if (axis == -1 || axis == feature) return absl::OkStatus();
  return InvalidArgument(operand,
                         "_quantization_axis Attr must be -1 (per-tensor) or the feature "
                         "dimension ",
                         feature, " (per-channel), but is ", axis);
}

absl::StatusOr<Kernel> MakeConvolution(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const UniformConvolution attributes, UniformConvolution::Read(init.node));
  WEIR_ASSIGN_OR_RETURN(const UniformRange range, UniformRange::Read(init.node, "output_"));
  if (init.attr<int64_t>("lhs_quantization_axis") != -1)
    return InvalidArgument("lhs_quantization_axis Attr must be -1 (per-tensor).");
  const auto right_axis = init.attr<int64_t>("rhs_quantization_axis"),
             out_axis = init.attr<int64_t>("output_quantization_axis");
  return Kernel([=](KernelContext& c) -> absl::Status {
    const Tensor &x = c.input(0), &y = c.input(1);
    for (const int i : {2, 4, 6}) WEIR_RETURN_IF_ERROR(CheckScales(c, i));
    UniformConvolution conv = attributes;
    WEIR_RETURN_IF_ERROR(conv.Complete(x.shape(), y.shape()));
    WEIR_RETURN_IF_ERROR(CheckUniformLeft(c));
    UniformLeft left{.data = UniformIntegers(x)};
    WEIR_ASSIGN_OR_RETURN(left.params, ReadUniformParams(c, 2, x.shape(), -1));
    WEIR_RETURN_IF_ERROR(CheckConvolutionAxis("rhs", right_axis, conv.kernel.batch));
    WEIR_ASSIGN_OR_RETURN(const UniformParams right,
                          ReadUniformParams(c, 4, y.shape(), right_axis));
    WEIR_RETURN_IF_ERROR(CheckConvolutionAxis("output", out_axis, conv.output.feature));
    WEIR_ASSIGN_OR_RETURN(const Shape shape, conv.OutputShape(x.shape(), y.shape()));
    const int64_t channels = shape.dim(static_cast<int>(conv.output.feature));
    WEIR_ASSIGN_OR_RETURN(
        const UniformResult result,
        QuantizedUniformResult(c, range, left.params, right, shape, out_axis, channels));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
    Convolution(conv, x.shape(), y.shape(), shape)
        .Run(c.pool(), left, UniformIntegers(y), right, result, out);
    return absl::OkStatus();
  });
}

// Copies an input so that its batch is the first dimension.
absl::StatusOr<Tensor> BatchFirst(KernelContext& c, const Tensor& x, int64_t batch) {
  Dims dims = {x.dim(static_cast<int>(batch))};
  StridedCopy copy;
  const Dims strides = StridesOf(x.shape());
  for (int d = 0; d < x.rank(); ++d)
    if (d != batch) dims.push_back(x.dim(d));
  WEIR_ASSIGN_OR_RETURN(Tensor out, c.AllocateTemp(DT_FLOAT, Shape(dims)));
  const Dims to = StridesOf(dims);
  copy.AddDim(dims[0], strides[batch], to[0]);
  for (int d = 0, k = 1; d < x.rank(); ++d)
    if (d != batch) copy.AddDim(x.dim(d), strides[d], to[k++]);
  copy.Run(c, DT_FLOAT, x.raw(), out.raw());
  return out;
}

absl::StatusOr<Kernel> MakeHybridConvolution(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const UniformConvolution attributes, UniformConvolution::Read(init.node));
  const auto axis = init.attr<int64_t>("rhs_quantization_axis");
  return Kernel([=](KernelContext& c) -> absl::Status {
    const Tensor& y = c.input(1);
    WEIR_RETURN_IF_ERROR(CheckScales(c, 2));
    UniformConvolution conv = attributes;
    WEIR_RETURN_IF_ERROR(conv.Complete(c.input(0).shape(), y.shape()));
    WEIR_RETURN_IF_ERROR(CheckConvolutionAxis("rhs", axis, conv.kernel.batch));
    WEIR_ASSIGN_OR_RETURN(const UniformParams right, ReadUniformParams(c, 2, y.shape(), axis));
    WEIR_ASSIGN_OR_RETURN(const Shape shape, conv.OutputShape(c.input(0).shape(), y.shape()));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
    const int64_t batch = conv.input.batch;
    WEIR_ASSIGN_OR_RETURN(const Tensor x, BatchFirst(c, c.input(0), batch));
    // The other dimensions have moved behind the batch.
    const auto move = [batch](int64_t d) { return d < batch ? d + 1 : d; };
    conv.input.batch = 0;
    conv.input.feature = move(conv.input.feature);
    for (int64_t& d : conv.input.spatial) d = move(d);
    const int64_t images = x.dim(0);
    WEIR_ASSIGN_OR_RETURN(const UniformLeft left,
                          QuantizeUniformRows(c, x.data<float>(), images,
                                              images == 0 ? 0 : x.num_elements() / images));
    Convolution(conv, x.shape(), y.shape(), shape)
        .Run(c.pool(), left, UniformIntegers(y), right, {.left = left.params, .right = right}, out);
    return absl::OkStatus();
  });
}

}  // namespace

void AddUniformConvolutionCpu(KernelRegistry* r) {
  const TypeConstraints quantized = {{"Tin", DT_QINT8}, {"Tout", DT_QINT32}};
  const TypeConstraints hybrid = {{"Tlhs", DT_FLOAT}, {"Trhs", DT_QINT8}, {"Tout", DT_FLOAT}};
  r->Add("UniformQuantizedConvolution", kCpu, quantized, MakeConvolution);
  r->Add("UniformQuantizedConvolutionHybrid", kCpu, hybrid, MakeHybridConvolution);
}

}  // namespace weir
