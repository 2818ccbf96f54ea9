#include <algorithm>
#include <limits>

#include "weir/ops/layers/layers_internal.h"
#include "weir/ops/nn/nn.h"

namespace weir::layers {

namespace {

using Dims = std::vector<int64_t>;

// The limit of values that determine shapes. The product of two of them fits in int64, and shapes
// fit in int32 constants.
constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

// The validated options of a convolution.
struct ConvParams {
  Layout layout;
  std::string padding;
  Dims size, strides, dilation;

  bool dilated() const {
    return std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d > 1; });
  }
  weir::ConvOptions ForOp() const {
    return {.strides = WithOnes(layout, strides),
            .padding = padding,
            .data_format = layout.format,
            .dilations = Dims(layout.rank, 1)};
  }
};

template <class Options>
std::optional<ConvParams> ParseConvParams(const Layer& layer, const Output& inputs, int num_spatial,
                                          const Ints& kernel_size, const Options& o) {
  const auto layout = ParseLayout(layer, inputs, o.data_format, num_spatial);
  const auto padding = ParsePadding(layer, o.padding);
  if (!layout || !padding) return std::nullopt;
  const auto size = ParseExtents(layer, kernel_size, num_spatial, "kernel_size");
  const auto strides = ParseExtents(layer, o.strides, num_spatial, "strides");
  const auto dilation = ParseExtents(layer, o.dilation_rate, num_spatial, "dilation_rate");
  if (!size || !strides || !dilation) return std::nullopt;
  ConvParams w{*layout, *padding, *size, *strides, *dilation};
  const bool strided = *std::max_element(strides->begin(), strides->end()) > 1;
  if (strided && w.dilated()) {
    layer.Fail("`strides > 1` not supported in conjunction with `dilation_rate > 1`.");
    return std::nullopt;
  }
  if (inputs.dim(layout->channel) < 0 || inputs.dim(layout->channel) > kMaxExtent) {
    layer.Fail(absl::StrCat(
        "The channel dimension of the inputs should be defined. The input_shape received is ",
        inputs.shape().ToString(), ", where axis ", layout->channel,
        " (0-based) is the channel dimension, which found to be unknown."));
    return std::nullopt;
  }
  return w;
}

bool CheckFilters(const Layer& layer, int64_t filters) {
  if (filters > 0 && filters <= kMaxExtent) return true;
  layer.Fail(absl::StrCat("Invalid value for argument `filters`. Expected a strictly positive ",
                          "value. Received filters=", filters, "."));
  return false;
}

Shape KernelShape(const ConvParams& w, int64_t a, int64_t b) {
  Dims dims = w.size;
  dims.push_back(a);
  dims.push_back(b);
  return Shape(dims);
}

Output IntMatrix(Graph& g, const std::vector<std::pair<int64_t, int64_t>>& rows,
                 absl::string_view name) {
  Tensor t(DT_INT32, Shape({static_cast<int64_t>(rows.size()), 2}));
  for (size_t i = 0; i < rows.size(); ++i) {
    t.data<int32_t>()[2 * i] = static_cast<int32_t>(rows[i].first);
    t.data<int32_t>()[2 * i + 1] = static_cast<int32_t>(rows[i].second);
  }
  return Const(g, t, name);
}

// A dilated convolution as TensorFlow builds it. SpaceToBatchND moves the pixels of each dilation
// phase into an image of their own, a plain convolution without padding runs over these, and
// BatchToSpaceND interleaves the results. The inputs are first padded by the amount that "SAME"
// requires and up to a multiple of the dilation; the part of the result that comes from the latter
// is cropped.
//
// All sizes are static. `convolve` builds the plain convolution of the rearranged inputs.
class SpaceToBatch {
 public:
  SpaceToBatch(const Output& x, const ConvParams& w) : x_(x), g_(x.graph()), w_(w) {}

  // For "SAME". A separable convolution adds the constant of the filter's shape elsewhere.
  SpaceToBatch& FilterShape(const Shape& filter) {
    Ints(filter).In(g_, "filter_shape", DT_INT32);
    return *this;
  }

  template <class Convolve>
  Output Run(const Convolve& convolve) {
    ComputePaddings();
    AddShapeConstants();
    const Output batched = Rearrange("SpaceToBatchND", "paddings", x_, paddings_);
    const Output result = convolve(batched);
    return result.valid() ? Rearrange("BatchToSpaceND", "crops", result, crops_) : Output();
  }

 private:
  using Rows = std::vector<std::pair<int64_t, int64_t>>;

  void ComputePaddings() {
    for (size_t i = 0; i < w_.size.size(); ++i) {
      const int64_t rate = w_.dilation[i], size = x_.dim(w_.layout.spatial + static_cast<int>(i));
      const int64_t extra = w_.padding == "SAME" ? (w_.size[i] - 1) * rate : 0;
      const int64_t before = extra / 2, after = extra - extra / 2;
      const int64_t more = (rate - (size + before + after) % rate) % rate;
      sizes_.push_back(size);
      base_.emplace_back(before, after);
      paddings_.emplace_back(before, after + more);
      crops_.emplace_back(0, more);
    }
  }

  // Adds the constants that TensorFlow's functions create for these values.
  void AddShapeConstants() {
    if (w_.padding == "SAME") IntMatrix(g_, base_, "stack");
    const NameScope scope(g_, "required_space_to_batch_paddings");
    Ints(sizes_).In(g_, "input_shape", DT_INT32);
    if (w_.padding != "SAME") IntMatrix(g_, base_, "base_paddings");
    IntMatrix(g_, paddings_, "paddings");
    IntMatrix(g_, crops_, "crops");
  }

  Output Rearrange(const char* op, const char* argument, const Output& x, const Rows& spatial) {
    return InScope(g_, op, [&](const std::string& name) {
      // Dimensions between the batch and the spatial dimensions have blocks of size 1.
      Dims blocks(w_.layout.spatial - 1, 1);
      blocks.insert(blocks.end(), w_.dilation.begin(), w_.dilation.end());
      Rows rows(w_.layout.spatial - 1, {0, 0});
      rows.insert(rows.end(), spatial.begin(), spatial.end());
      const Output shape = Ints(blocks).In(g_, "block_shape", DT_INT32);
      return AddOp(op, {x, shape, IntMatrix(g_, rows, argument)}, {}, name);
    });
  }

  const Output x_;
  Graph& g_;
  const ConvParams& w_;
  Dims sizes_;
  Rows base_, paddings_, crops_;
};

// Returns whether SpaceToBatch is applicable: the sizes are static and cannot overflow.
bool CanRearrange(const Output& x, const ConvParams& w) {
  for (int i = 0; i < w.layout.num_spatial(); ++i) {
    const int64_t size = x.dim(w.layout.spatial + i);
    if (size < 0 || size > kMaxExtent / 4 || w.size[i] * w.dilation[i] > kMaxExtent / 4)
      return false;
  }
  return true;
}

// Adds the convolution op with one, two or three spatial dimensions. `name` is the name of its
// scope.
Output ConvOp(const Output& x, const Variable& kernel, const ConvParams& w,
              weir::ConvOptions options, const std::string& name) {
  Graph& g = x.graph();
  if (w.layout.num_spatial() == 3) {
    const Output filter = kernel.value();
    return weir::Conv3D(x, filter, options, name);
  }
  if (w.layout.num_spatial() == 2) return weir::Conv2D(x, kernel.value(), options, name);
  // A 1-D convolution is a 2-D convolution of images of height 1.
  const int64_t height = w.layout.channels_first() ? -2 : -3;
  const Output images = ExpandDims(x, height);
  const Output filter = InScope(g, "ExpandDims", [&](const std::string& inner) {
    return ExpandDims(kernel.value(), 0, inner);
  });
  const int at = w.layout.channels_first() ? 2 : 1;
  for (Dims* extents : {&options.strides, &options.dilations}) {
    extents->insert(extents->begin() + at, 1);
  }
  const Output result = weir::Conv2D(images, filter, options, name);
  return result.valid() ? Squeeze(result, {height}) : Output();
}

Output Convolve(const Output& x, const Variable& kernel, const ConvParams& w,
                const std::string& name) {
  weir::ConvOptions options = w.ForOp();
  if (!w.dilated()) return ConvOp(x, kernel, w, options, name);
  if (!CanRearrange(x, w)) {
    options.dilations = WithOnes(w.layout, w.dilation);
    return ConvOp(x, kernel, w, options, name);
  }
  Ints(w.dilation).In(x.graph(), "dilation_rate", DT_INT32);
  SpaceToBatch blocks(x, w);
  if (w.padding == "SAME") blocks.FilterShape(kernel.shape());
  options.padding = "VALID";
  return blocks.Run(
      [&](const Output& batched) { return ConvOp(batched, kernel, w, options, name); });
}

Output AddConvBias(const Layer& layer, const Output& outputs, const Variable& bias,
                   const Layout& layout) {
  if (layout.num_spatial() != 1 || !layout.channels_first()) {
    return layer.AddBias(outputs, bias, layout.channels_first() ? "NCHW" : "NHWC");
  }
  const Output wide = InScope(layer.graph(), "Reshape", [&](const std::string& name) {
    return Reshape(bias.value(), {1, bias.shape().dim(0), 1}, name);
  });
  return wide.valid() ? outputs + wide : Output();
}

struct ConvVariables {
  Variable kernel, bias;
  bool ok = false;
};

ConvVariables MakeVariables(Layer& layer, const Shape& kernel_shape, int64_t filters,
                            DataType dtype, const ConvOptions& o) {
  ConvVariables v;
  v.kernel = layer.AddWeight(
      "kernel", kernel_shape, dtype,
      {o.kernel_initializer, o.kernel_regularizer, o.kernel_constraint, o.trainable});
  if (o.use_bias) {
    v.bias =
        layer.AddWeight("bias", Shape({filters}), dtype,
                        {o.bias_initializer, o.bias_regularizer, o.bias_constraint, o.trainable});
  }
  v.ok = v.kernel.valid() && (v.bias.valid() || !o.use_bias);
  return v;
}

Output Conv(Output inputs, int num_spatial, int64_t filters, const Ints& kernel_size,
            const ConvOptions& o) {
  if (!inputs.valid()) return {};
  Layer layer(inputs.graph(), o.name, absl::StrCat("conv", num_spatial, "d"), o.reuse);
  const auto w = ParseConvParams(layer, inputs, num_spatial, kernel_size, o);
  if (!w || !CheckFilters(layer, filters)) return {};
  const ConvVariables v = MakeVariables(
      layer, KernelShape(*w, inputs.dim(w->layout.channel), filters), filters, inputs.dtype(), o);
  if (!v.ok) return {};
  Output outputs =
      InScope(layer.graph(), absl::StrCat("Conv", num_spatial, "D"),
              [&](const std::string& name) { return Convolve(inputs, v.kernel, *w, name); });
  if (!outputs.valid()) return {};
  if (v.bias.valid()) outputs = AddConvBias(layer, outputs, v.bias, w->layout);
  return layer.Finish(outputs, o.activation, o.activity_regularizer);
}

}  // namespace

Output Conv1D(Output inputs, int64_t filters, const Ints& kernel_size, const ConvOptions& o) {
  return Conv(inputs, 1, filters, kernel_size, o);
}
Output Conv2D(Output inputs, int64_t filters, const Ints& kernel_size, const ConvOptions& o) {
  return Conv(inputs, 2, filters, kernel_size, o);
}
Output Conv3D(Output inputs, int64_t filters, const Ints& kernel_size, const ConvOptions& o) {
  return Conv(inputs, 3, filters, kernel_size, o);
}

// ---- transposed convolution

namespace {

// Computes a spatial size of the output of a transposed convolution: a number, or a tensor if the
// size of the input is not static.
class OutputExtent {
 public:
  OutputExtent(const ConvParams& w, int i)
      : stride_(w.strides[i]),
        extra_(std::max<int64_t>(w.size[i] - w.strides[i], 0)),
        valid_(w.padding == "VALID") {}

  int64_t Of(int64_t input) const {
    return input < 0 ? -1 : input * stride_ + (valid_ ? extra_ : 0);
  }
  Output Of(const Output& input) const {
    const Output scaled = input * stride_;
    return valid_ && scaled.valid() ? scaled + extra_ : scaled;
  }

 private:
  int64_t stride_, extra_;
  bool valid_;
};

// Returns the shape of the outputs as a tensor, and its static part in `known`.
Output TransposedShape(const Output& x, const ConvParams& w, int64_t filters, Shape* known) {
  Graph& g = x.graph();
  const Output shape = ShapeTensor(x);
  const Output batch = StridedSlice(shape, {0});
  *known = x.shape();
  known->set_dim(w.layout.channel, filters);
  Outputs dynamic(w.layout.rank);
  dynamic[0] = batch;
  for (int i = 0; i < 2; ++i) {
    const int axis = w.layout.spatial + i;
    if (x.dim(axis) < 0) dynamic[axis] = StridedSlice(shape, {axis});
  }
  for (int i = 0; i < 2; ++i) {
    const int axis = w.layout.spatial + i;
    const OutputExtent extent(w, i);
    known->set_dim(axis, extent.Of(x.dim(axis)));
    if (dynamic[axis].valid()) dynamic[axis] = extent.Of(dynamic[axis]);
  }
  return InScope(g, "stack", [&](const std::string& name) {
    for (int i = 0; i < w.layout.rank; ++i) {
      if (!dynamic[i].valid()) {
        dynamic[i] = Const(g, static_cast<int32_t>(known->dim(i)), absl::StrCat(i));
      }
    }
    return AddOp("Pack", {dynamic}, {}, name);
  });
}

}  // namespace

Output Conv2DTranspose(Output inputs, int64_t filters, const Ints& kernel_size,
                       const ConvOptions& o) {
  if (!inputs.valid()) return {};
  Layer layer(inputs.graph(), o.name, "conv2d_transpose", o.reuse);
  const auto w = ParseConvParams(layer, inputs, 2, kernel_size, o);
  if (!w || !CheckFilters(layer, filters)) return {};
  if (w->dilated()) return layer.Fail("a transposed convolution does not support dilation");
  for (int i = 0; i < 2; ++i) {
    if (inputs.dim(w->layout.spatial + i) > (kMaxExtent - w->size[i]) / w->strides[i])
      return layer.Fail("the outputs are too large: a dimension does not fit in int32");
  }
  const ConvVariables v = MakeVariables(
      layer, KernelShape(*w, filters, inputs.dim(w->layout.channel)), filters, inputs.dtype(), o);
  if (!v.ok) return {};
  Shape known;
  const Output shape = TransposedShape(inputs, *w, filters, &known);
  if (!shape.valid()) return {};
  StridedSlice(shape, {0});  // unused, but TensorFlow's function creates it
  Output outputs = InScope(layer.graph(), "conv2d_transpose", [&](const std::string& name) {
    return Conv2DBackpropInput(shape, v.kernel.value(), inputs, w->ForOp(), name);
  });
  if (!outputs.valid()) return {};
  layer.graph().Fail(layer.graph().RefineShape(outputs, known));
  if (v.bias.valid()) outputs = AddConvBias(layer, outputs, v.bias, w->layout);
  return layer.Finish(outputs, o.activation, o.activity_regularizer);
}

// ---- depthwise convolution

namespace {

Variable DepthwiseKernel(Layer& layer, const ConvParams& w, const Output& inputs,
                         const SeparableConvOptions& o) {
  if (o.depth_multiplier < 1 || o.depth_multiplier > kMaxExtent) {
    layer.Fail(absl::StrCat("`depth_multiplier` must be positive, got ", o.depth_multiplier));
    return {};
  }
  return layer.AddWeight(
      "depthwise_kernel", KernelShape(w, inputs.dim(w.layout.channel), o.depth_multiplier),
      inputs.dtype(),
      {o.depthwise_initializer, o.depthwise_regularizer, o.depthwise_constraint, o.trainable});
}

// Adds a depthwise convolution with a filter that has been read already. `name` is the op's name.
Output Depthwise(const Output& x, const Output& filter, const ConvParams& w,
                 absl::string_view name) {
  weir::ConvOptions options = w.ForOp();
  ShapeTensor(filter);
  Ints(w.dilation).In(x.graph(), "dilation_rate", DT_INT32);
  if (!w.dilated()) return DepthwiseConv2dNative(x, filter, options, name);
  if (!CanRearrange(x, w)) {
    options.dilations = WithOnes(w.layout, w.dilation);
    return DepthwiseConv2dNative(x, filter, options, name);
  }
  options.padding = "VALID";
  return SpaceToBatch(x, w).Run(
      [&](const Output& batched) { return DepthwiseConv2dNative(batched, filter, options, name); });
}

Variable MakeBias(Layer& layer, int64_t filters, DataType dtype, const SeparableConvOptions& o) {
  return layer.AddWeight("bias", Shape({filters}), dtype,
                         {o.bias_initializer, o.bias_regularizer, o.bias_constraint, o.trainable});
}

}  // namespace

Output SeparableConv2D(Output inputs, int64_t filters, const Ints& kernel_size,
                       const SeparableConvOptions& o) {
  if (!inputs.valid()) return {};
  Layer layer(inputs.graph(), o.name, "separable_conv2d", o.reuse);
  const auto w = ParseConvParams(layer, inputs, 2, kernel_size, o);
  if (!w || !CheckFilters(layer, filters)) return {};
  const Variable depthwise = DepthwiseKernel(layer, *w, inputs, o);
  if (!depthwise.valid()) return {};
  const int64_t between = o.depth_multiplier * inputs.dim(w->layout.channel);
  const Variable pointwise = layer.AddWeight(
      "pointwise_kernel", Shape({1, 1, between, filters}), inputs.dtype(),
      {o.pointwise_initializer, o.pointwise_regularizer, o.pointwise_constraint, o.trainable});
  Variable bias;
  if (o.use_bias) bias = MakeBias(layer, filters, inputs.dtype(), o);
  if (!pointwise.valid() || (o.use_bias && !bias.valid())) return {};
  Output outputs =
      InScope(layer.graph(), "separable_conv2d", [&](const std::string& name) -> Output {
        const Output depth_filter = depthwise.value(), point_filter = pointwise.value();
        const Output depth = Depthwise(inputs, depth_filter, *w, "depthwise");
        if (!depth.valid()) return {};
        return weir::Conv2D(depth, point_filter,
                            {.padding = "VALID", .data_format = w->layout.format}, name);
      });
  if (bias.valid()) outputs = AddConvBias(layer, outputs, bias, w->layout);
  return layer.Finish(outputs, o.activation, o.activity_regularizer);
}

Output DepthwiseConv2D(Output inputs, const Ints& kernel_size, const SeparableConvOptions& o) {
  if (!inputs.valid()) return {};
  Layer layer(inputs.graph(), o.name, "depthwise_conv2d", o.reuse);
  const auto w = ParseConvParams(layer, inputs, 2, kernel_size, o);
  if (!w) return {};
  const Variable kernel = DepthwiseKernel(layer, *w, inputs, o);
  if (!kernel.valid()) return {};
  Variable bias;
  if (o.use_bias) {
    const int64_t filters = o.depth_multiplier * inputs.dim(w->layout.channel);
    bias = MakeBias(layer, filters, inputs.dtype(), o);
    if (!bias.valid()) return {};
  }
  Output outputs = InScope(layer.graph(), "depthwise", [&](const std::string& name) {
    return Depthwise(inputs, kernel.value(), *w, name);
  });
  if (bias.valid()) outputs = AddConvBias(layer, outputs, bias, w->layout);
  return layer.Finish(outputs, o.activation, o.activity_regularizer);
}

}  // namespace weir::layers
