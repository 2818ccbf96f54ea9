#include "weir/ops/math_internal.h"
#include "weir/ops/nn_internal.h"
#include "weir/ops/registry.h"

// Products together with what is done to their elements: ops that a graph optimizer makes of
// several nodes. Sessions make them of their own graphs (session/fuse_epilogues.cc), and files that
// TensorFlow's optimizer has written hold them: _FusedConv2D, _FusedDepthwiseConv2dNative and
// _FusedMatMul. The others are Weir's own.
namespace weir {

namespace {

OpSpec& WithFusedOps(OpSpec& spec) {
  return spec.Attr("num_args: int >= 0")
      .Attr("fused_ops: list(string) = []")
      .Attr("epsilon: float = 0.0001")
      .Attr("leakyrelu_alpha: float = 0.2");
}

// Of the first inputs.
absl::StatusOr<Shape> BroadcastOf(ShapeContext& c, int count) {
  Shape all = c.input(0);
  for (int i = 1; i < count; ++i) {
    WEIR_ASSIGN_OR_RETURN(all, BroadcastShapes(all, c.input(i)));
  }
  return all;
}

absl::Status ElementwiseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape all, BroadcastOf(c, c.num_inputs()));
  for (int k = 0; k < c.num_outputs(); ++k) c.set_output(k, all);
  return absl::OkStatus();
}

absl::Status FusedReductionShape(ShapeContext& c) {
  const int64_t num_args = c.num_inputs() - c.attr<int64_t>("num_end_args");
  if (num_args < 1) return InvalidArgument("There must be an argument to reduce");
  WEIR_ASSIGN_OR_RETURN(const Shape all, BroadcastOf(c, static_cast<int>(num_args)));
  if (!all.has_rank()) return absl::OkStatus();
  const Tensor axes = Tensor::Vector<int64_t>(c.attr<std::vector<int64_t>>("axes"));
  WEIR_ASSIGN_OR_RETURN(Shape out, ShapeAfterReduction(all, axes, c.attr<bool>("keep_dims")));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status LayerNormShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  const int64_t axes = c.attr<int64_t>("axes");
  if (!c.input(0).has_rank() || axes > c.input(0).rank()) return absl::OkStatus();
  Shape rows = c.input(0);
  for (int i = 1; i <= axes; ++i) rows.set_dim(rows.rank() - i, 1);
  for (int k = 1; k < c.num_outputs(); ++k) c.set_output(k, rows);
  return absl::OkStatus();
}

absl::Status SoftmaxPartsShape(ShapeContext& c) {
  if (c.num_outputs() > 2) c.set_output(2, c.input(0));
  if (!c.input(0).has_rank()) return absl::OkStatus();
  const int rank = c.input(0).rank();
  if (rank == 0) return InvalidArgument("x must have >= 1 dimension, got a scalar");
  Shape kept = c.input(0), dropped = c.input(0);
  kept.set_dim(rank - 1, 1);
  dropped.RemoveDim(rank - 1);
  c.set_output(0, c.attr<bool>("keep_sum_dims") ? kept : dropped);
  c.set_output(1, c.attr<bool>("keep_max_dims") ? kept : dropped);
  return absl::OkStatus();
}

absl::Status SeparableConvShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const ConvAttributes a, ConvAttributes::Read(c.node()));
  const int filter = c.attr<int64_t>("num_expand") == 1 ? 3 : 1;
  if (a.layout.channels_first() || c.num_inputs() < filter + 4)
    return InvalidArgument("Images have their channels last, and num_expand is at most 1");
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRank(0, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape window, c.WithRank(filter, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape pointwise, c.WithRank(filter + 2, 4));
  WEIR_ASSIGN_OR_RETURN(Shape out, Convolved(a, input, window, pointwise.dim(3)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status DeferMatMulShape(ShapeContext& c) {
  c.set_output(3, {});
  return absl::OkStatus();
}

}  // namespace

void AddFusedOps(OpRegistry* ops) {
  OpSpec conv("_FusedConv2D");
  conv.In("input: T, filter: T, args: TArgs, host_args: num_host_args * float")
      .Out("output: T")
      .Attr("T: {half, float, double, int8, qint8}")
      .Attr("TArgs: list(type) >= 1")
      .Attr("num_host_args: int >= 0 = 0")
      .Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .Attr("explicit_paddings: list(int) = []")
      .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
      .Attr("filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'")
      .Attr("dilations: list(int) = [1, 1, 1, 1]")
      .Attr("use_cudnn_on_gpu: bool = true");
  ops->Add(WithFusedOps(conv)
               .InferShape(InferConv2D)
               .Doc("Conv2D, and then what fused_ops name: BiasAdd, Add, an activation. The second "
                    "operands of the first two are args."));
  OpSpec depthwise("_FusedDepthwiseConv2dNative");
  depthwise.In("input: T, filter: T, args: num_args * T")
      .Out("output: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("strides: list(int)")
      // TensorFlow's has no explicit padding; sessions need it for nodes that have.
      .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .Attr("explicit_paddings: list(int) = []")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("dilations: list(int) = [1, 1, 1, 1]");
  ops->Add(WithFusedOps(depthwise)
               .InferShape(InferDepthwiseConv2D)
               .Doc("DepthwiseConv2dNative, and then what fused_ops name, as _FusedConv2D."));
  ops->Add(
      OpSpec("_FusedDepthwiseSeparableConv2D")
          .In("input: T, expand_filter: num_expand * T, expand_bias: num_expand * T, "
              "filter: T, bias: T, pointwise_filter: T, pointwise_bias: T, "
              "addend: num_addends * T")
          .Out("output: T")
          .Attr("T: {float}")
          .Attr("num_expand: int >= 0 = 0")
          .Attr("num_addends: int >= 0 = 0")
          .Attr("strides: list(int)")
          .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
          .Attr("explicit_paddings: list(int) = []")
          .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
          .Attr("dilations: list(int) = [1, 1, 1, 1]")
          .Attr("activations: list(string) >= 3")
          .InferShape(SeparableConvShape)
          .Doc(
              "Conv2D with 1x1 filters if there are any to expand the channels, "
              "DepthwiseConv2dNative, to which the attributes belong, and Conv2D with the 1x1 "
              "pointwise filters; each with a bias, which is added, and an activation, Relu, Relu6 "
              "or none. The addend, if there is one, comes to the last result before that."));
  OpSpec product("_FusedMatMul");
  product.In("a: T, b: T, args: num_args * T")
      .Out("product: T")
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr("T: {bfloat16, half, float}");
  ops->Add(WithFusedOps(product)
               .InferShape(MatMulShape)
               .Doc("MatMul, and then what fused_ops name, as _FusedConv2D."));
  ops->Add(OpSpec("_FusedElementwise")
               .In("args: N * T")
               .Out("z: T, others: num_others * T")
               .Attr("T: type")
               .Attr("N: int >= 1")
               .Attr("num_others: int >= 0 = 0")
               .Attr("fused_ops: list(string)")
               .Attr("operands: list(int)")
               .Attr("params: list(float)")
               .Attr("others_of: list(int) = []")
               .InferShape(ElementwiseShape)
               .Doc("Element-wise ops one after the other. Op i takes the values operands[2i] and "
                    "operands[2i + 1] (-1: it takes one): the args are the first, the results of "
                    "the ops follow. z is the last one's result, others are those of the ops that "
                    "others_of names. params are the ops' attributes, such as the slope of "
                    "LeakyRelu."));
  ops->Add(OpSpec("_FusedUpdate")
               .In("handles: num_handles * resource, refs: Ref(num_refs * T), args: num_args * T")
               .Attr("T: type")
               .Attr("num_handles: int >= 0")
               .Attr("num_refs: int >= 0")
               .Attr("num_args: int >= 0")
               .Attr("reads: list(bool)")
               .Attr("shape: shape")
               .Attr("fused_ops: list(string)")
               .Attr("operands: list(int)")
               .Attr("params: list(float)")
               .Attr("others_of: list(int) = []")
               .Stateful()
               .Doc("A _FusedElementwise whose results are assigned to variables: z to the first, "
                    "others to those that follow. Its args are the values of the variables that "
                    "`reads` names, and then `args`. Variables and results have this shape."));
  ops->Add(OpSpec("_FusedReduction")
               .In("args: N * T, end_args: num_end_args * T")
               .Out("z: T")
               .Attr("T: type")
               .Attr("N: int >= 1")
               .Attr("num_end_args: int >= 0 = 0")
               .Attr("fused_ops: list(string)")
               .Attr("operands: list(int)")
               .Attr("params: list(float)")
               .Attr("end_operands: list(int) = []")
               .Attr("end_params: list(float) = []")
               .Attr("axes: list(int)")
               .Attr("keep_dims: bool = false")
               .InferShape(FusedReductionShape)
               .Doc("One of fused_ops, such as Sum or Mean, over axes of what those before it make "
                    "of args, as in a _FusedElementwise; there are as many of them as params. "
                    "Those after it go on with the result, which is the first of their values; "
                    "end_args follow."));
  ops->Add(
      OpSpec("_DeferMatMul")
          .In("sum: float, left: float, right: float, rows: int64, x: float, y: float")
          .Out("sum_out: float, left_out: float, right_out: float, rows_out: int64")
          .Attr("most_rows: int >= 1")
          .InferShape(DeferMatMulShape)
          .Doc("sum + x' y, some time. The rows of x and y follow the first `rows` of left and "
               "right; if there is no room for them, left' right is added to sum before. Left "
               "and right may have no rows at first; they are given most_rows, or as many as "
               "x has."));
  ops->Add(OpSpec("_FinishMatMul")
               .In("sum: float, left: float, right: float, rows: int64")
               .Out("total: float")
               .InferShape(SameShape)
               .Doc("sum + left' right of the first `rows` rows: what _DeferMatMul has left."));
  ops->Add(
      OpSpec("_SoftmaxParts")
          .In("x: T")
          .Out("sum: T, max: T, exponentials: num_exponentials * T")
          .Attr("T: {float, double}")
          .Attr("num_exponentials: int >= 0")
          .Attr("keep_sum_dims: bool = false")
          .Attr("keep_max_dims: bool = false")
          .Attr("finite: bool = false")
          .InferShape(SoftmaxPartsShape)
          .Doc("The maxima of x along its last axis, exponentials of what x is above these, and "
               "the sums of the exponentials. If there are exponentials they are one tensor. "
               "`finite`: a maximum that is not is taken to be 0."));
  ops->Add(OpSpec("_FusedLayerNorm")
               .In("x: T, scale: num_scales * T, offset: num_offsets * T")
               .Out("y: T, statistics: num_statistics * T")
               .Attr("T: {float}")
               .Attr("num_scales: int >= 0")
               .Attr("num_offsets: int >= 0")
               .Attr("num_statistics: int >= 0 = 0")
               .Attr("axes: int >= 1 = 1")
               .Attr("epsilon: float")
               .InferShape(LayerNormShape)
               .Doc("(x - mean) / sqrt(variance + epsilon) * scale + offset, with the mean and the "
                    "variance over the last `axes` axes of x. There is at most one scale and one "
                    "offset, and each has an element for each of these positions. If there are "
                    "statistics, they are two: the means and the factors 1 / sqrt(variance + "
                    "epsilon), with 1 for each of these axes."));
}

}  // namespace weir
