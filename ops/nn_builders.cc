#include <algorithm>
#include <utility>

#include "weir/core/scope.h"
#include "weir/ops/math.h"
#include "weir/ops/nn.h"
#include "weir/ops/nn_internal.h"

namespace weir {
namespace {

Output Op(absl::string_view op, Output a, absl::string_view name) {
  return AddOp(op, {a}, {}, name);
}
Output Op(absl::string_view op, Output a, Output b, absl::string_view name) {
  return AddOp(op, {a, b}, {}, name);
}

absl::string_view Or(absl::string_view name, absl::string_view otherwise) {
  return name.empty() ? otherwise : name;
}

Attrs ConvAttrs(const ConvOptions& o) {
  return {{"strides", o.strides},
          {"padding", o.padding},
          {"explicit_paddings", o.explicit_paddings},
          {"data_format", o.data_format},
          {"dilations", o.dilations}};
}

}  // namespace

Output WithScalar(absl::string_view op, Output x, const Literal& y, absl::string_view name) {
  NameScope scope(x.graph(), name);
  return Op(op, x, ConstLike(x, y, "y"), scope.name());
}

Output Relu(Output features, absl::string_view name) { return Op("Relu", features, name); }
Output Relu6(Output features, absl::string_view name) { return Op("Relu6", features, name); }
Output Elu(Output features, absl::string_view name) { return Op("Elu", features, name); }
Output Selu(Output features, absl::string_view name) { return Op("Selu", features, name); }
Output LeakyRelu(Output features, float alpha, absl::string_view name) {
  return AddOp("LeakyRelu", {features}, {{"alpha", alpha}}, name);
}
Output Softplus(Output features, absl::string_view name) { return Op("Softplus", features, name); }
Output Softsign(Output features, absl::string_view name) { return Op("Softsign", features, name); }

Output BiasAdd(Output value, Output bias, absl::string_view data_format, absl::string_view name) {
  return AddOp("BiasAdd", {value, bias}, {{"data_format", data_format}}, name);
}

Output XwPlusB(Output x, Output weights, Output biases, absl::string_view name) {
  if (!x.valid() || !weights.valid() || !biases.valid()) return Output();
  NameScope scope(x.graph(), Or(name, "xw_plus_b"));
  return BiasAdd(Op("MatMul", x, weights, {}), biases, "NHWC", scope.name());
}

Output L2Loss(Output t, absl::string_view name) { return Op("L2Loss", t, name); }

Output L2Normalize(Output x, const Ints& axes, double epsilon, absl::string_view name) {
  if (!x.valid()) return Output();
  NameScope scope(x.graph(), Or(name, "l2_normalize"));
  Output sum = ReduceSum(Op("Square", x, {}), axes, /*keep_dims=*/true);
  if (!sum.valid()) return Output();
  Output inverse = Op("Rsqrt", WithScalar("Maximum", sum, epsilon, "Maximum"), {});
  return Op("Mul", x, inverse, scope.name());
}

MomentsResult Moments(Output x, const std::vector<int64_t>& axes, bool keep_dims,
                      absl::string_view name) {
  if (!x.valid()) return {};
  NameScope scope(x.graph(), Or(name, "moments"));
  const DataType type = x.dtype();
  if (IsNarrow(type)) x = Cast(x, DT_FLOAT);
  Output mean = ReduceMean(x, axes, /*keep_dims=*/true, "mean");
  Output squares = Op("SquaredDifference", x, StopGradient(mean), {});
  if (!squares.valid()) return {};
  Output variance = ReduceMean(squares, axes, /*keep_dims=*/true, "variance");
  if (!keep_dims) {
    mean = Squeeze(mean, axes);
    variance = Squeeze(variance, axes);
  }
  if (IsNarrow(type)) {
    mean = Cast(mean, type);
    variance = Cast(variance, type);
  }
  return {mean, variance};
}

Output BatchNormalization(Output x, Output mean, Output variance, Output offset, Output scale,
                          double variance_epsilon, absl::string_view name) {
  if (!x.valid() || !mean.valid() || !variance.valid()) return Output();
  NameScope scope(x.graph(), Or(name, "batchnorm"));
  Output inverse = Op("Rsqrt", WithScalar("AddV2", variance, variance_epsilon, "add"), {});
  if (scale.valid()) inverse = Op("Mul", inverse, scale, "mul");
  Output scaled = Op("Mul", x, inverse, "mul");
  Output shift;
  if (offset.valid()) {
    shift = Op("Sub", offset, Op("Mul", mean, inverse, "mul"), "sub");
  } else {
    shift = Op("Mul", Op("Neg", mean, {}), inverse, "mul");
  }
  return Op("AddV2", scaled, shift, "add");
}

FusedBatchNormResult FusedBatchNorm(Output x, Output scale, Output offset,
                                    const FusedBatchNormOptions& options, absl::string_view name) {
  if (!x.valid() || !scale.valid() || !offset.valid()) return {};
  Graph& g = x.graph();
  Output mean = options.mean, variance = options.variance;
  if (!mean.valid()) mean = Const(g, Tensor(DT_FLOAT, Shape({0})));
  if (!variance.valid()) variance = Const(g, Tensor(DT_FLOAT, Shape({0})));
  Node* node =
      AddNode("FusedBatchNormV3", {x, scale, offset, mean, variance},
              {{"epsilon", static_cast<float>(std::max(options.epsilon, 1.001e-5))},
               {"exponential_avg_factor", static_cast<float>(options.exponential_avg_factor)},
               {"data_format", options.data_format},
               {"is_training", options.is_training}},
              name);
  if (node == nullptr) return {};
  return {node->output(0), node->output(1), node->output(2)};
}

Output LocalResponseNormalization(Output x, const LrnOptions& o, absl::string_view name) {
  return AddOp(
      "LRN", {x},
      {{"depth_radius", o.depth_radius}, {"bias", o.bias}, {"alpha", o.alpha}, {"beta", o.beta}},
      name);
}

// ---- convolution and pooling

Output Conv2D(Output input, Output filter, const ConvOptions& options, absl::string_view name) {
  return AddOp("Conv2D", {input, filter}, ConvAttrs(options), name);
}

Output Conv2DBackpropInput(Output input_sizes, Output filter, Output out_backprop,
                           const ConvOptions& options, absl::string_view name) {
  return AddOp("Conv2DBackpropInput", {input_sizes, filter, out_backprop}, ConvAttrs(options),
               name);
}

Output Conv2DBackpropFilter(Output input, Output filter_sizes, Output out_backprop,
                            const ConvOptions& options, absl::string_view name) {
  return AddOp("Conv2DBackpropFilter", {input, filter_sizes, out_backprop}, ConvAttrs(options),
               name);
}

Output Conv2DTranspose(Output value, Output filter, const Ints& output_shape,
                       const ConvOptions& options, absl::string_view name) {
  if (!value.valid() || !filter.valid()) return Output();
  NameScope scope(value.graph(), Or(name, "conv2d_transpose"));
  Output sizes = output_shape.In(value.graph(), "input_sizes", DT_INT32);
  return Conv2DBackpropInput(sizes, filter, value, options, scope.name());
}

Output DepthwiseConv2dNative(Output input, Output filter, const ConvOptions& options,
                             absl::string_view name) {
  return AddOp("DepthwiseConv2dNative", {input, filter}, ConvAttrs(options), name);
}

Output Conv3D(Output input, Output filter, const ConvOptions& o, absl::string_view name) {
  const bool default_dilations = o.dilations == std::vector<int64_t>{1, 1, 1, 1};
  return AddOp("Conv3D", {input, filter},
               {{"strides", o.strides},
                {"padding", o.padding},
                {"data_format", o.data_format == "NHWC" ? std::string("NDHWC") : o.data_format},
                {"dilations", default_dilations ? std::vector<int64_t>(5, 1) : o.dilations}},
               name);
}

Output MaxPool(Output input, const PoolOptions& o, absl::string_view name) {
  return AddOp("MaxPool", {input},
               {{"ksize", o.ksize},
                {"strides", o.strides},
                {"padding", o.padding},
                {"explicit_paddings", o.explicit_paddings},
                {"data_format", o.data_format}},
               name);
}

Output AvgPool(Output value, const PoolOptions& o, absl::string_view name) {
  return AddOp("AvgPool", {value},
               {{"ksize", o.ksize},
                {"strides", o.strides},
                {"padding", o.padding},
                {"data_format", o.data_format}},
               name);
}

MaxPoolWithArgmaxResult MaxPoolWithArgmax(Output input, const PoolOptions& o, DataType targmax,
                                          bool include_batch_in_index, absl::string_view name) {
  Node* node = AddNode("MaxPoolWithArgmax", {input},
                       {{"ksize", o.ksize},
                        {"strides", o.strides},
                        {"Targmax", targmax},
                        {"padding", o.padding},
                        {"include_batch_in_index", include_batch_in_index}},
                       name);
  if (node == nullptr) return {};
  return {node->output(0), node->output(1)};
}

// ---- dropout

namespace {

// The mask: elements whose uniform random number is at least `rate` are retained.
Output MaskDropped(Output x, Output scaled, const std::function<Output(Output)>& keep,
                   const DropoutOptions& options) {
  Graph& g = x.graph();
  Output shape;
  if (!options.noise_shape) shape = ShapeTensor(x, DT_INT32, "Shape");
  Output random;
  {
    NameScope scope(g, "random_uniform");
    if (options.noise_shape) shape = options.noise_shape->In(g, "shape", DT_INT32);
    const auto [seed, seed2] = g.NextSeed(options.seed);
    random =
        AddOp("RandomUniform", {shape}, {{"dtype", x.dtype()}, {"seed", seed}, {"seed2", seed2}});
  }
  if (!random.valid() || !scaled.valid()) return Output();
  Output kept = keep(random);
  return AddOp("SelectV2", {kept, scaled, ConstLike(x, 0, "Const")});
}

}  // namespace

Output Dropout(Output x, double rate, const DropoutOptions& options, absl::string_view name) {
  if (!x.valid()) return Output();
  if (!(rate >= 0 && rate < 1)) {
    x.graph().Fail(InvalidArgument(
        "`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate=", rate,
        " for Dropout of ", x.name()));
    return Output();
  }
  NameScope scope(x.graph(), Or(name, "dropout"));
  if (rate == 0) {
    x.graph().NextSeed(options.seed);
    return x;
  }
  Output scaled = AddOp("Mul", {x, ConstLike(x, 1 / (1 - rate), "Const")});
  return MaskDropped(
      x, scaled, [&](Output r) { return WithScalar("GreaterEqual", r, rate, "GreaterEqual"); },
      options);
}

Output Dropout(Output x, Output rate, const DropoutOptions& options, absl::string_view name) {
  if (!x.valid() || !rate.valid()) return Output();
  NameScope scope(x.graph(), Or(name, "dropout"));
  Output scaled = AddOp("RealDiv", {x, AddOp("Sub", {ConstLike(x, 1, "Const"), rate})});
  return MaskDropped(
      x, scaled,
      [&](Output r) {
        return AddOp("GreaterEqual", {r, rate});
      },
      options);
}

}  // namespace weir
