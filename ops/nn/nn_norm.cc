#include "weir/ops/nn/nn.h"

#include <algorithm>
#include <string>
#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/window.h"
#include "weir/ops/nn/nn_internal.h"

// Normalization: FusedBatchNorm, LRN, L2Loss, and the functions that are built from simple ops.
namespace weir {

// ---- batch normalization

namespace {

// The derivatives of fused batch normalization, built from simple ops so that they are
// differentiable again.
struct BatchNormDerivatives {
  Output x, scale, offset;
};
struct BatchNormInputs {
  Output dy, x, scale, mean, variance;
  DataLayout layout;
  float epsilon;
};

std::vector<int64_t> ReducedAxes(const DataLayout& layout) {
  std::vector<int64_t> axes;
  for (int i = 0; i < layout.rank; ++i) {
    if (i != layout.channel) axes.push_back(i);
  }
  return axes;
}

// Reshapes a per-channel vector so that it broadcasts against the images.
Output AlongChannels(Output vector, const DataLayout& layout) {
  if (!layout.channels_first()) return vector;
  std::vector<int64_t> shape(layout.rank, 1);
  shape[layout.channel] = -1;
  return Reshape(vector, shape);
}

// With x^ = (x - mean(x)) / s, s = sqrt(var(x) + epsilon), and means over all dimensions but the
// channels:
//   dx = scale / s * (dy - mean(dy) - x^ * mean(dy * x^))
//   dscale = sum(dy * x^)
//   doffset = sum(dy)
BatchNormDerivatives TrainingDerivatives(const BatchNormInputs& in) {
  const bool keep = in.layout.channels_first();
  const std::vector<int64_t> axes = ReducedAxes(in.layout);
  Output scale = AlongChannels(in.scale, in.layout);
  Output mean_dy = ReduceMean(in.dy, axes, keep);
  Output mean_x = ReduceMean(in.x, axes, keep);
  Output var_x = ReduceMean(AddOp("SquaredDifference", {in.x, StopGradient(mean_x)}), axes, keep);
  Output dy_offset = AddOp("Sub", {in.dy, mean_dy}, {}, "sub");
  Output x_offset = AddOp("Sub", {in.x, mean_x}, {}, "sub");
  Output mean = ReduceMean(AddOp("Mul", {in.dy, x_offset}, {}, "mul"), axes, keep);
  Output factor = AddOp(
      "Mul", {scale, AddOp("Rsqrt", {WithScalar("AddV2", var_x, in.epsilon, "add")})}, {}, "mul");
  Output inverse = AddOp("Reciprocal", {WithScalar("AddV2", var_x, in.epsilon, "add")});
  Output slope = AddOp("Mul", {AddOp("Mul", {inverse, mean}, {}, "mul"), x_offset}, {}, "mul");
  BatchNormDerivatives out;
  out.x = AddOp("Mul", {factor, AddOp("Sub", {dy_offset, slope}, {}, "sub")}, {}, "mul");
  Output sum = ReduceSum(AddOp("Mul", {in.dy, x_offset}, {}, "mul"), axes, keep);
  out.scale = AddOp("Mul", {AddOp("Rsqrt", {WithScalar("AddV2", var_x, in.epsilon, "add")}), sum},
                    {}, "mul");
  if (keep) out.scale = Reshape(out.scale, {-1});
  out.offset = ReduceSum(in.dy, axes, false);
  return out;
}

// Mean and variance are inputs here, so y depends on x elementwise.
BatchNormDerivatives InferenceDerivatives(const BatchNormInputs& in) {
  const std::vector<int64_t> axes = ReducedAxes(in.layout);
  Output scale = AlongChannels(in.scale, in.layout);
  Output mean = AlongChannels(in.mean, in.layout);
  Output inverse = AddOp(
      "Rsqrt", {WithScalar("AddV2", AlongChannels(in.variance, in.layout), in.epsilon, "add")});
  BatchNormDerivatives out;
  out.offset = ReduceSum(in.dy, axes, false);
  Output centered = AddOp("Mul", {in.dy, AddOp("Sub", {in.x, mean}, {}, "sub")}, {}, "mul");
  out.scale = ReduceSum(AddOp("Mul", {centered, inverse}, {}, "mul"), axes, false);
  out.x = AddOp("Mul", {AddOp("Mul", {in.dy, scale}, {}, "mul"), inverse}, {}, "mul");
  return out;
}

// Uses the Grad op of the same version. Its inference mode supports NHWC only, so other formats are
// transposed before and after.
Grads FusedBatchNormGradient(GradContext& c) {
  const std::string& op = c.node().op_name();
  const size_t base = std::string("FusedBatchNorm").size();
  const std::string grad_op = op.substr(0, base) + "Grad" + op.substr(base);
  const bool is_training = c.attr<bool>("is_training");
  std::string format = c.attr<std::string>("data_format");
  Output x = c.x(0), dy = c.dy(0);
  std::vector<int64_t> back;
  Output reserve_1 = is_training ? c.y(3) : c.x(3), reserve_2 = is_training ? c.y(4) : c.x(4);
  if (!is_training && format[1] == 'C') {
    const bool flat = format == "NCHW";
    const std::vector<int64_t> there =
        flat ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 3, 4, 1};
    back = flat ? std::vector<int64_t>{0, 3, 1, 2} : std::vector<int64_t>{0, 4, 1, 2, 3};
    x = Transpose(x, there);
    dy = Transpose(dy, there);
    format = flat ? "NHWC" : "NDHWC";
  }
  std::vector<Arg> args = {dy, x, c.x(1), reserve_1, reserve_2};
  if (op == "FusedBatchNormV3") args.push_back(c.y(5));
  Node* node = AddNode(grad_op, args,
                       {{"epsilon", c.attr<float>("epsilon")},
                        {"data_format", format},
                        {"is_training", is_training}});
  if (node == nullptr) return {};
  Output dx = node->output(0);
  if (!back.empty()) dx = Transpose(dx, back);
  return {dx, node->output(1), node->output(2)};
}

Grads FusedBatchNormGradGradient(GradContext& c) {
  const absl::StatusOr<DataLayout> layout = ParseDataFormat(c.attr<std::string>("data_format"));
  if (!layout.ok()) {
    c.graph().Fail(layout.status());
    return {};
  }
  const DataType type = c.x(1).dtype();
  const bool narrow = type != DT_FLOAT;
  BatchNormInputs in{c.x(0), c.x(1), c.x(2), c.x(3), c.x(4), *layout, c.attr<float>("epsilon")};
  if (narrow) {
    in.x = Cast(in.x, DT_FLOAT);
    in.dy = Cast(in.dy, DT_FLOAT);
  }
  BatchNormDerivatives d =
      c.attr<bool>("is_training") ? TrainingDerivatives(in) : InferenceDerivatives(in);
  if (narrow) d.x = Cast(d.x, type);
  GradientsOptions options;
  options.grad_ys = {c.dy(0), c.dy(1), c.dy(2)};
  options.name = "gradient_tape";
  return Gradients({d.x, d.scale, d.offset}, Outputs{c.x(0), c.x(1), c.x(2)}, options);
}

// Returns the number of channels, from the images and from the per-channel vectors.
absl::StatusOr<int64_t> Channels(ShapeContext& c, const DataLayout& layout, int images,
                                 std::initializer_list<int> vectors) {
  WEIR_ASSIGN_OR_RETURN(const Shape x, c.WithRank(images, layout.rank));
  int64_t channels = x.dim(layout.channel);
  for (int i : vectors) {
    WEIR_ASSIGN_OR_RETURN(const Shape v, c.WithRank(i, 1));
    WEIR_ASSIGN_OR_RETURN(channels, MergeDims(channels, v.dim(0)));
  }
  return channels;
}

absl::Status FusedBatchNormShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DataLayout layout,
                        ParseDataFormat(c.attr<std::string>("data_format")));
  int64_t channels = -1;
  if (c.attr<bool>("is_training")) {  // mean and variance may be empty
    WEIR_ASSIGN_OR_RETURN(channels, Channels(c, layout, 0, {1, 2}));
  } else {
    WEIR_ASSIGN_OR_RETURN(channels, Channels(c, layout, 0, {1, 2, 3, 4}));
  }
  WEIR_ASSIGN_OR_RETURN(Shape y, c.WithRank(0, layout.rank));
  y.set_dim(layout.channel, channels);
  c.set_output(0, y);
  for (int i = 1; i < 5; ++i) c.set_output(i, Shape({channels}));
  return absl::OkStatus();
}

absl::Status FusedBatchNormGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DataLayout layout,
                        ParseDataFormat(c.attr<std::string>("data_format")));
  WEIR_ASSIGN_OR_RETURN(int64_t channels, Channels(c, layout, 0, {2, 3, 4}));
  WEIR_ASSIGN_OR_RETURN(const Shape dy, c.WithRank(0, layout.rank));
  WEIR_ASSIGN_OR_RETURN(const Shape x, c.WithRank(1, layout.rank));
  WEIR_ASSIGN_OR_RETURN(Shape dx, dy.MergeWith(x));
  WEIR_ASSIGN_OR_RETURN(channels, MergeDims(channels, dx.dim(layout.channel)));
  dx.set_dim(layout.channel, channels);
  c.set_output(0, dx);
  c.set_output(1, Shape({channels}));
  c.set_output(2, Shape({channels}));
  for (int i = 3; i < 5; ++i) c.set_output(i, Shape({0}));
  return absl::OkStatus();
}

// Types of the statistics: T in the first version, U in later versions.
OpSpec BatchNorm(absl::string_view op, absl::string_view stats) {
  OpSpec spec(op);
  spec.In("x: T");
  for (const char* name : {"scale", "offset", "mean", "variance"})
    spec.In(absl::StrCat(name, ": ", stats));
  spec.Out("y: T");
  for (const char* name : {"batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}) {
    spec.Out(absl::StrCat(name, ": ", stats));
  }
  spec.Rows(RowRule::kNorm).InferShape(FusedBatchNormShape).Gradient(FusedBatchNormGradient);
  return spec;
}

void AddBatchNormAttrs(OpSpec* spec, bool forward, bool with_volumes) {
  spec->Attr("epsilon: float = 0.0001");
  if (forward) spec->Attr("exponential_avg_factor: float = 1.0");
  spec->Attr(with_volumes ? "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'"
                          : "data_format: {'NHWC', 'NCHW'} = 'NHWC'");
  spec->Attr("is_training: bool = true");
}

constexpr char kForwardDoc[] =
    "Computes batch normalization over all dimensions but the channels: (x - mean) / sqrt(variance "
    "+ epsilon) * scale + offset. In training, mean and variance are the batch's, and batch_mean "
    "and batch_variance are the running values moved toward them by exponential_avg_factor (with "
    "the unbiased variance); otherwise they are the given ones. The reserve spaces are for the "
    "gradient.";

void AddForward(OpRegistry* ops) {
  OpSpec v1 = BatchNorm("FusedBatchNorm", "T");
  v1.Attr("T: {float}");
  AddBatchNormAttrs(&v1, true, false);
  ops->Add(v1.Doc(kForwardDoc));

  OpSpec v2 = BatchNorm("FusedBatchNormV2", "U");
  v2.Attr("T: {half, bfloat16, float}").Attr("U: {float}");
  AddBatchNormAttrs(&v2, true, false);
  ops->Add(v2.Doc(kForwardDoc));

  OpSpec v3 = BatchNorm("FusedBatchNormV3", "U");
  v3.Out("reserve_space_3: U").Attr("T: {half, bfloat16, float}").Attr("U: {bfloat16, float}");
  AddBatchNormAttrs(&v3, true, true);
  ops->Add(v3.Doc(kForwardDoc));
}

OpSpec BatchNormGrad(absl::string_view op, absl::string_view scale, absl::string_view stats,
                     int reserves) {
  OpSpec spec(op);
  spec.In("y_backprop: T, x: T").In(absl::StrCat("scale: ", scale));
  for (int i = 1; i <= reserves; ++i) spec.In(absl::StrCat("reserve_space_", i, ": ", stats));
  spec.Out("x_backprop: T");
  spec.Out(absl::StrCat("scale_backprop: ", stats)).Out(absl::StrCat("offset_backprop: ", stats));
  for (int i = 1; i <= 2; ++i) spec.Out(absl::StrCat("reserve_space_", reserves + i, ": ", stats));
  spec.InferShape(FusedBatchNormGradShape).Gradient(FusedBatchNormGradGradient);
  return spec;
}

constexpr char kBackwardDoc[] =
    "Computes the gradients of a fused batch normalization. In training, the reserve spaces are "
    "those of the forward op; otherwise they are the mean and the variance that were given to it.";

void AddBackward(OpRegistry* ops) {
  OpSpec v1 = BatchNormGrad("FusedBatchNormGrad", "T", "T", 2);
  v1.Attr("T: {float}");
  AddBatchNormAttrs(&v1, false, false);
  ops->Add(v1.Doc(kBackwardDoc));

  OpSpec v2 = BatchNormGrad("FusedBatchNormGradV2", "float", "U", 2);
  v2.Attr("T: {half, bfloat16, float}").Attr("U: {float}");
  AddBatchNormAttrs(&v2, false, false);
  ops->Add(v2.Doc(kBackwardDoc));

  OpSpec v3 = BatchNormGrad("FusedBatchNormGradV3", "float", "U", 3);
  v3.Attr("T: {half, bfloat16, float}").Attr("U: {float}");
  AddBatchNormAttrs(&v3, false, true);
  ops->Add(v3.Doc(kBackwardDoc));
}

}  // namespace

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

// ---- other norms

namespace {

Grads LrnGradient(GradContext& c) {
  return {AddOp("LRNGrad", {c.dy(), c.x(), c.y()},
                CopyAttrs(c.node(), {"depth_radius", "bias", "alpha", "beta"}))};
}

Grads L2LossGradient(GradContext& c) { return {Op("Mul", c.x(), c.dy(), "mul")}; }

absl::Status LrnShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape out, c.WithRank(0, 4));
  for (int i = 1; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const Shape other, c.WithRank(i, 4));
    WEIR_ASSIGN_OR_RETURN(out, out.MergeWith(other));
  }
  c.set_output(0, out);
  return absl::OkStatus();
}

OpSpec& WithLrnAttrs(OpSpec& spec) {
  return spec.Attr("depth_radius: int = 5")
      .Attr("bias: float = 1.0")
      .Attr("alpha: float = 1.0")
      .Attr("beta: float = 0.5")
      .Attr("T: {half, bfloat16, float} = DT_FLOAT")
      .InferShape(LrnShape);
}

}  // namespace

void AddNormOps(OpRegistry* ops) {
  AddForward(ops);
  AddBackward(ops);
  OpSpec lrn("LRN");
  lrn.Rows(RowRule::kWindows);
  ops->Add(WithLrnAttrs(lrn.In("input: T").Out("output: T"))
               .Gradient(LrnGradient)
               .Doc("Computes local response normalization: input / (bias + alpha * s) ^ beta, "
                    "where s is the sum of the squares over the channels within depth_radius."));
  OpSpec grad("LRNGrad");
  ops->Add(WithLrnAttrs(grad.In("input_grads: T, input_image: T, output_image: T").Out("output: T"))
               .Doc("Computes the gradient of LRN."));
  ops->Add(OpSpec("L2Loss")
               .In("t: T")
               .Out("output: T")
               .Attr(kFloats)
               .Reduction()
               .InferShape(ScalarShape)
               .Gradient(L2LossGradient)
               .Doc("Computes half the sum of the squares of all elements."));
}

Output LocalResponseNormalization(Output x, const LrnOptions& o, absl::string_view name) {
  return AddOp(
      "LRN", {x},
      {{"depth_radius", o.depth_radius}, {"bias", o.bias}, {"alpha", o.alpha}, {"beta", o.beta}},
      name);
}

Output L2Loss(Output t, absl::string_view name) { return Op("L2Loss", t, name); }

// ---- functions of several ops

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

}  // namespace weir
