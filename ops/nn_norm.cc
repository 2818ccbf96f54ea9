#include "weir/core/shape_context.h"
#include "weir/ops/nn_gradients.h"
#include "weir/ops/nn_internal.h"
#include "weir/ops/registry.h"
#include "weir/ops/window.h"

namespace weir {
namespace {

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
}

}  // namespace weir
