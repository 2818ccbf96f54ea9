#include "weir/ops/nn.h"

#include "weir/core/shape_context.h"
#include "weir/ops/nn_gradients.h"
#include "weir/ops/nn_internal.h"
#include "weir/ops/op_costs.h"
#include "weir/ops/registry.h"
#include "weir/ops/window.h"

namespace weir {
namespace {

constexpr char kFloats[] = "T: {half, bfloat16, float, double}";

// ---- activations

OpSpec Activation(absl::string_view op, absl::string_view types) {
  return std::move(OpSpec(op)
                       .In("features: T")
                       .Out("activations: T")
                       .Attr(types)
                       .Elementwise()
                       .InferShape(SameShape));
}

// Inputs: the gradients, and the tensor that they are computed from. `with` is "features" or
// "outputs".
OpSpec ActivationGrad(absl::string_view op, absl::string_view with, absl::string_view types) {
  return std::move(OpSpec(op)
                       .In("gradients: T")
                       .In(absl::StrCat(with, ": T"))
                       .Out("backprops: T")
                       .Attr(types)
                       .Elementwise()
                       .InferShape(MergedShape));
}

void AddActivations(OpRegistry* ops) {
  ops->Add(Activation("Relu", "T: {realnumbertype, qint8}")
               .Gradient(ReluGradient)
               .Doc("Computes max(features, 0) elementwise."));
  ops->Add(ActivationGrad("ReluGrad", "features", "T: realnumbertype")
               .Gradient(ReluGradGradient)
               .Doc("Computes the gradient of Relu: gradients where features > 0, else 0. The "
                    "features may be Relu's input or its output."));
  ops->Add(Activation("Relu6", "T: realnumbertype")
               .Gradient(ReluGradient)
               .Doc("Computes min(max(features, 0), 6) elementwise."));
  ops->Add(ActivationGrad("Relu6Grad", "features", "T: realnumbertype")
               .Gradient(ReluGradGradient)
               .Doc("Computes the gradient of Relu6: gradients where 0 < features < 6, else 0."));
  ops->Add(Activation("Elu", kFloats)
               .Gradient(EluGradient)
               .Doc("Computes exp(features) - 1 where features < 0, else features."));
  ops->Add(ActivationGrad("EluGrad", "outputs", kFloats)
               .Gradient(EluGradGradient)
               .Doc("Computes the gradient of Elu: gradients * (outputs + 1) where outputs < 0, "
                    "else gradients; outputs are Elu's."));
  ops->Add(Activation("Selu", kFloats)
               .Gradient(EluGradient)
               .Doc("Computes scale * alpha * (exp(features) - 1) where features < 0, else scale * "
                    "features, with the constants of self-normalizing networks."));
  ops->Add(ActivationGrad("SeluGrad", "outputs", kFloats)
               .Gradient(EluGradGradient)
               .Doc("Computes the gradient of Selu: gradients * (outputs + scale * alpha) where "
                    "outputs < 0, else gradients * scale."));
  ops->Add(OpSpec("LeakyRelu")
               .In("features: T")
               .Out("activations: T")
               .Attr("alpha: float = 0.2")
               .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
               .Elementwise()
               .InferShape(SameShape)
               .Gradient(LeakyReluGradient)
               .Doc("Computes features where features > 0, else alpha * features."));
  ops->Add(OpSpec("LeakyReluGrad")
               .In("gradients: T, features: T")
               .Out("backprops: T")
               .Attr("alpha: float = 0.2")
               .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
               .Elementwise()
               .InferShape(MergedShape)
               .Gradient(LeakyReluGradGradient)
               .Doc("Computes the gradient of LeakyRelu: gradients where features > 0, else alpha "
                    "* gradients."));
  ops->Add(Activation("Softplus", kFloats)
               .Gradient(SoftplusGradient)
               .Doc("Computes log(1 + exp(features)) elementwise."));
  ops->Add(ActivationGrad("SoftplusGrad", "features", kFloats)
               .Gradient(SoftplusGradGradient)
               .Doc("Computes the gradient of Softplus: gradients / (1 + exp(-features))."));
  ops->Add(Activation("Softsign", kFloats)
               .Gradient(SoftsignGradient)
               .Doc("Computes features / (1 + abs(features)) elementwise."));
  ops->Add(ActivationGrad("SoftsignGrad", "features", kFloats)
               .Doc("Computes the gradient of Softsign: gradients / (1 + abs(features)) ^ 2."));
}

// ---- biases

// The channel dimension, to which the bias is added. It is the second one for "NCHW" at any rank.
absl::StatusOr<int> BiasDim(const ShapeContext& c, const Shape& value) {
  const bool second = c.node().attr_or<std::string>("data_format", "NHWC") == "NCHW";
  const int min_rank = second ? 3 : 2;
  if (value.rank() < min_rank) {
    return InvalidArgument("Shape must be at least rank ", min_rank, " but is rank ", value.rank());
  }
  return second ? 1 : value.rank() - 1;
}

absl::Status BiasAddShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape bias, c.WithRank(1, 1));
  Shape value = c.input(0);
  if (value.has_rank()) {
    WEIR_ASSIGN_OR_RETURN(const int dim, BiasDim(c, value));
    const absl::StatusOr<int64_t> channels = MergeDims(value.dim(dim), bias.dim(0));
    if (!channels.ok()) {
      return InvalidArgument(
          "Must provide as many biases as the channel dimension of the input tensor: ",
          bias.ToString(), " vs. ", value.ToString());
    }
    value.set_dim(dim, *channels);
  }
  c.set_output(0, value);
  return absl::OkStatus();
}

absl::Status BiasAddGradShape(ShapeContext& c) {
  const Shape& value = c.input(0);
  if (!value.has_rank()) {
    c.set_output(0, Shape({-1}));
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(const int dim, BiasDim(c, value));
  c.set_output(0, Shape({value.dim(dim)}));
  return absl::OkStatus();
}

void AddBiasOps(OpRegistry* ops) {
  ops->Add(OpSpec("BiasAdd")
               .In("value: T, bias: T")
               .Out("output: T")
               .Attr("T: numbertype")
               .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
               .Flops(ElementwiseFlops)
               .Rows(RowRule::kChannels)
               .InferShape(BiasAddShape)
               .Gradient(BiasAddGradient)
               .Doc("Adds bias to value, where bias is a vector along the channels."));
  ops->Add(
      OpSpec("BiasAddV1")
          .In("value: T, bias: T")
          .Out("output: T")
          .Attr("T: numbertype")
          .Elementwise()
          .InferShape(BiasAddShape)
          .Gradient(BiasAddV1Gradient)
          .Doc("Computes BiasAdd without a data format: the bias is along the last dimension."));
  ops->Add(OpSpec("BiasAddGrad")
               .In("out_backprop: T")
               .Out("output: T")
               .Attr("T: numbertype")
               .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
               .Reduction()
               .InferShape(BiasAddGradShape)
               .Gradient(BiasAddGradGradient)
               .Doc("Computes the gradient of BiasAdd with respect to the bias: the sum over all "
                    "dimensions but the channels."));
  ops->Add(OpSpec("L2Loss")
               .In("t: T")
               .Out("output: T")
               .Attr(kFloats)
               .Reduction()
               .InferShape(ScalarShape)
               .Gradient(L2LossGradient)
               .Doc("Computes half the sum of the squares of all elements."));
}

// ---- softmax

absl::Status AtLeastVector(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape logits, c.WithRankAtLeast(0, 1));
  c.set_output(0, logits);
  return absl::OkStatus();
}

absl::Status CrossEntropyShape(ShapeContext& c) {
  absl::StatusOr<Shape> both = BroadcastShapes(c.input(0), c.input(1));
  if (!both.ok() || (both->has_rank() && both->rank() != 2)) {
    return InvalidArgument(
        "logits and labels must be broadcastable to two dimensions: logits_size=",
        c.input(0).ToString(), " labels_size=", c.input(1).ToString());
  }
  if (!both->has_rank()) both = Shape({-1, -1});
  c.set_output(0, Shape({both->dim(0)}));
  c.set_output(1, *both);
  return absl::OkStatus();
}

absl::Status SparseCrossEntropyShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape logits, c.WithRank(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape labels, c.WithRank(1, 1));
  const absl::StatusOr<int64_t> batch = MergeDims(logits.dim(0), labels.dim(0));
  if (!batch.ok()) {
    return InvalidArgument(
        "logits and labels must have the same first dimension, got logits shape ",
        logits.ToString(), " and labels shape ", labels.ToString());
  }
  logits.set_dim(0, *batch);
  c.set_output(0, Shape({*batch}));
  c.set_output(1, logits);
  return absl::OkStatus();
}

void AddSoftmaxOps(OpRegistry* ops) {
  ops->Add(OpSpec("Softmax")
               .In("logits: T")
               .Out("softmax: T")
               .Attr(kFloats)
               .Rows(RowRule::kSoftmax)
               .Flops(SoftmaxFlops)
               .InferShape(AtLeastVector)
               .Gradient(SoftmaxGradient)
               .Doc("Computes exp(logits) divided by its sum along the last dimension."));
  ops->Add(OpSpec("LogSoftmax")
               .In("logits: T")
               .Out("logsoftmax: T")
               .Attr(kFloats)
               .Flops(SoftmaxFlops)
               .InferShape(AtLeastVector)
               .Gradient(LogSoftmaxGradient)
               .Doc("Computes logits - log(sum(exp(logits))) along the last dimension."));
  ops->Add(OpSpec("SoftmaxCrossEntropyWithLogits")
               .In("features: T, labels: T")
               .Out("loss: T, backprop: T")
               .Attr(kFloats)
               .InferShape(CrossEntropyShape)
               .Gradient(SoftmaxCrossEntropyGradient)
               .Doc("Computes the cross entropy between softmax(features) and the distributions "
                    "`labels`, one row per example, and its gradient softmax(features) - labels."));
  ops->Add(OpSpec("SparseSoftmaxCrossEntropyWithLogits")
               .In("features: T, labels: Tlabels")
               .Out("loss: T, backprop: T")
               .Attr(kFloats)
               .Attr("Tlabels: {int32, int64} = DT_INT64")
               .InferShape(SparseCrossEntropyShape)
               .Gradient(SparseSoftmaxCrossEntropyGradient)
               .Doc("Computes the cross entropy between softmax(features) and one class per "
                    "example, and its gradient. A label that is not a valid class is an error."));
}

}  // namespace

void AddNnOps(OpRegistry* ops) {
  AddActivations(ops);
  AddBiasOps(ops);
  AddSoftmaxOps(ops);
}

}  // namespace weir
