#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/op_costs.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/nn/nn_internal.h"

// GEMMs and convolutions with fused epilogues, and other ops that a graph optimizer creates from
// several nodes. Sessions create them in their own graphs (session/passes/fuse_epilogues.cc). Files
// written by TensorFlow's optimizer contain _FusedConv2D, _FusedDepthwiseConv2dNative and
// _FusedMatMul. The other ops are Weir's own.
namespace weir {

namespace {

OpSpec& WithFusedOps(OpSpec& spec) {
  return spec.Attr("num_args: int >= 0")
      .Attr("fused_ops: list(string) = []")
      .Attr("epsilon: float = 0.0001")
      .Attr("leakyrelu_alpha: float = 0.2");
}

// The types of the first inputs.
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
  if (num_args < 1) return InvalidArgument("at least one argument to reduce is required");
  WEIR_ASSIGN_OR_RETURN(const Shape all, BroadcastOf(c, static_cast<int>(num_args)));
  if (!all.has_rank()) return absl::OkStatus();
  const Tensor axes = Tensor::Vector<int64_t>(c.attr<std::vector<int64_t>>("axes"));
  WEIR_ASSIGN_OR_RETURN(Shape out, ShapeAfterReduction(all, axes, c.attr<bool>("keep_dims")));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// [batch, heads, length, size], or [batch, length, heads, size] of a transposed tensor.
absl::Status AttentionShape(ShapeContext& c) {
  const Shape &query = c.input(0), &value = c.input(2);
  if (!query.has_rank() || !value.has_rank()) return absl::OkStatus();
  const bool transposed = c.attr<bool>("transpose_query"), out = c.attr<bool>("transpose_output");
  const int least = transposed || out ? 4 : 2;
  if (query.rank() < least || query.rank() > 4 || value.rank() != query.rank()) {
    return InvalidArgument("query and value must both have ", least, " to 4 dimensions, but have ",
                           "shapes ", query.ToString(), " and ", value.ToString());
  }
  Shape y = query;
  if (transposed != out) {
    y.set_dim(1, query.dim(2));
    y.set_dim(2, query.dim(1));
  }
  y.set_dim(y.rank() - 1, value.dim(-1));
  c.set_output(0, std::move(y));
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
    return InvalidArgument("data_format must be NHWC, and num_expand must be at most 1");
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRank(0, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape window, c.WithRank(filter, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape pointwise, c.WithRank(filter + 2, 4));
  WEIR_ASSIGN_OR_RETURN(Shape out, ConvOutputShape(a, input, window, pointwise.dim(3)));
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
  conv.Flops(ConvFlops);
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
               .Doc("Computes Conv2D with a fused epilogue, which fused_ops lists: BiasAdd, Add, "
                    "an activation. The second operands of BiasAdd and Add are args."));
  OpSpec depthwise("_FusedDepthwiseConv2dNative");
  depthwise.Flops(DepthwiseConvFlops);
  depthwise.In("input: T, filter: T, args: num_args * T")
      .Out("output: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("strides: list(int)")
      // TensorFlow's op has no explicit padding. Sessions need it to fuse nodes that have explicit
      // padding.
      .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .Attr("explicit_paddings: list(int) = []")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("dilations: list(int) = [1, 1, 1, 1]");
  ops->Add(WithFusedOps(depthwise)
               .InferShape(InferDepthwiseConv2D)
               .Doc("Computes DepthwiseConv2dNative with a fused epilogue, which fused_ops lists, "
                    "like _FusedConv2D."));
  ops->Add(OpSpec("_FusedDepthwiseSeparableConv2D")
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
               .Flops(FusedSeparableConvFlops)
               .InferShape(SeparableConvShape)
               .Doc("Computes a depthwise separable convolution: Conv2D with 1x1 filters that "
                    "expand the channels, if there are any, DepthwiseConv2dNative, to which the "
                    "attributes belong, and Conv2D with the 1x1 pointwise filters. Each adds a "
                    "bias and applies an activation, Relu, Relu6 or none. The addend, if there is "
                    "one, is added to the last result before its activation."));
  OpSpec product("_FusedMatMul");
  product.Flops(MatMulFlops);
  product.In("a: T, b: T, args: num_args * T")
      .Out("product: T")
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr("T: {bfloat16, half, float}");
  ops->Add(
      WithFusedOps(product)
          .InferShape(MatMulShape)
          .Doc("Computes MatMul with a fused epilogue, which fused_ops lists, like _FusedConv2D."));
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
               .Flops(FusedElementwiseFlops)
               .InferShape(ElementwiseShape)
               .Doc("Computes a sequence of fused elementwise ops. The operands of op i are the "
                    "values operands[2i] and operands[2i + 1] (-1: op i is unary), where values "
                    "are numbered args first, followed by the results of the ops. z is the result "
                    "of the last op, others are the results of the ops that others_of lists. "
                    "params are the ops' attributes, such as the slope of LeakyRelu."));
  ops->Add(OpSpec("_FusedUpdate")
               .Flops(FusedUpdateFlops)
               .Uses(VariableUse::kUpdates)
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
               .Doc("Computes a _FusedElementwise and assigns its results to variables: z to the "
                    "first variable, others to the following ones. Its args are the values of the "
                    "variables that `reads` selects, followed by `args`. Variables and results "
                    "have the shape `shape`."));
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
               .Flops(FusedReductionFlops)
               .InferShape(FusedReductionShape)
               .Doc("Computes fused elementwise ops, a reduction, and an elementwise epilogue. The "
                    "ops before the reduction, as many as params, compute a value of args as in a "
                    "_FusedElementwise. The next of fused_ops, such as Sum or Mean, reduces it "
                    "over axes. The ops after it form the epilogue, whose first value is the "
                    "reduction's result, followed by end_args."));
  ops->Add(OpSpec("_DeferMatMul")
               .In("sum: float, left: float, right: float, rows: int64, x: float, y: float")
               .Out("sum_out: float, left_out: float, right_out: float, rows_out: int64")
               .Attr("most_rows: int >= 1")
               .Flops(DeferMatMulFlops)
               .Bytes(DeferMatMulBytes)
               .InferShape(DeferMatMulShape)
               .Doc("Adds x' y to sum, possibly deferred. Appends the rows of x and y to the first "
                    "`rows` rows of left and right. If they do not fit, left' right is first added "
                    "to sum. Left and right may be empty initially; they are then allocated with "
                    "most_rows rows, or as many as x has."));
  ops->Add(OpSpec("_FinishMatMul")
               .In("sum: float, left: float, right: float, rows: int64")
               .Out("total: float")
               .InferShape(SameShape)
               .Doc("Computes sum + left' right of the first `rows` rows: the products that "
                    "_DeferMatMul has deferred."));
  ops->Add(OpSpec("_SoftmaxParts")
               .In("x: T")
               .Out("sum: T, max: T, exponentials: num_exponentials * T")
               .Attr("T: {float, double}")
               .Attr("num_exponentials: int >= 0")
               .Attr("keep_sum_dims: bool = false")
               .Attr("keep_max_dims: bool = false")
               .Attr("finite: bool = false")
               .Flops(SoftmaxFlops)
               .InferShape(SoftmaxPartsShape)
               .Doc("Computes the maxima of x along its last axis, exp(x - max), and the sums of "
                    "these exponentials. The exponentials are at most one output tensor. `finite`: "
                    "a maximum that is not finite is replaced by 0."));
  ops->Add(OpSpec("_FusedAttention")
               .In("query: T, key: T, value: T, masks: num_masks * T")
               .Out("y: T")
               .Attr("T: {float}")
               .Attr("num_masks: int >= 0 = 0")
               .Attr("scale: float = 1.0")
               .Attr("transpose_query: bool = false")
               .Attr("transpose_key: bool = false")
               .Attr("transpose_value: bool = false")
               .Attr("transpose_output: bool = false")
               .Flops(FusedAttentionFlops)
               .InferShape(AttentionShape)
               .Doc("Computes softmax(query key' * scale + mask) value for each head. query, key, "
                    "value and y are [batch, heads, length, size], or [batch, length, heads, size] "
                    "if transposed; untransposed, batch and heads may be missing. There is at most "
                    "one mask, which is broadcast to the scores, but not along the keys."));
  ops->Add(OpSpec("_FusedLayerNorm")
               .In("x: T, scale: num_scales * T, offset: num_offsets * T")
               .Out("y: T, statistics: num_statistics * T")
               .Attr("T: {float}")
               .Attr("num_scales: int >= 0")
               .Attr("num_offsets: int >= 0")
               .Attr("num_statistics: int >= 0 = 0")
               .Attr("axes: int >= 1 = 1")
               .Attr("epsilon: float")
               .Flops(FusedLayerNormFlops)
               .InferShape(LayerNormShape)
               .Doc("Computes (x - mean) / sqrt(variance + epsilon) * scale + offset, with the "
                    "mean and the variance over the last `axes` axes of x. There is at most one "
                    "scale and one offset; each has one element per position of these axes. The "
                    "statistics, if requested, are two tensors: the means and the factors 1 / "
                    "sqrt(variance + epsilon), with extent 1 for each of these axes."));
}

}  // namespace weir
