#include "weir/ops/nn_gradients.h"

#include <string>
#include <utility>
#include <vector>

#include "weir/core/scope.h"
#include "weir/ops/array.h"
#include "weir/ops/math.h"
#include "weir/ops/nn_internal.h"

// The gradient functions build the nodes of TensorFlow's gradient functions with the same names:
// TensorFlow's mul_1 is mul_1 here.
namespace weir {
namespace {

Output Op(absl::string_view op, Output a, absl::string_view name) {
  return AddOp(op, {a}, {}, name);
}
Output Op(absl::string_view op, Output a, Output b, absl::string_view name) {
  return AddOp(op, {a, b}, {}, name);
}

// The attributes of a node that another op also has, to be copied to it.
Attrs CopyAttrs(const Node& node, std::initializer_list<absl::string_view> names) {
  Attrs attrs;
  for (absl::string_view name : names) {
    if (const AttrValue* value = node.FindAttr(name)) attrs.emplace_back(name, *value);
  }
  return attrs;
}

bool IsZero(const Grad& grad) {
  return grad.none() || grad.node()->op_name() == "ZerosLike" || grad.node()->op_name() == "Zeros";
}

}  // namespace

// ---- activations

Grads ReluGradient(GradContext& c) {
  const std::string op = c.node().op_name() + "Grad";
  return {Op(op, c.dy(), c.y(), op)};
}

Grads ReluGradGradient(GradContext& c) {
  const std::string& op = c.node().op_name();
  return {Op(op, c.dy(), c.x(1), op), ZerosLike(c.x(1))};
}

Grads EluGradient(GradContext& c) { return ReluGradient(c); }

Grads EluGradGradient(GradContext& c) {
  const std::string& op = c.node().op_name();
  Output y = c.x(1);
  Output first = Op(op, c.dy(), y, op);
  Output below = WithScalar("Less", y, 0, "Less");
  Output product = Op("Mul", c.dy(), c.x(0), "mul");
  return {first, AddOp("Select", {below, product, ZerosLike(y)})};
}

Grads LeakyReluGradient(GradContext& c) {
  return {AddOp("LeakyReluGrad", {c.dy(), c.x()}, CopyAttrs(c.node(), {"alpha"}))};
}

Grads LeakyReluGradGradient(GradContext& c) {
  Output first = AddOp("LeakyReluGrad", {c.dy(), c.x(1)}, CopyAttrs(c.node(), {"alpha"}));
  return {first, ZerosLike(c.x(1))};
}

Grads SoftplusGradient(GradContext& c) {
  return {Op("Mul", c.dy(), Op("Sigmoid", c.x(), "Sigmoid"), "mul")};
}

// d/dx of dy / (1 + exp(-x)) is dy / (exp(-x) + 2 + exp(x)).
Grads SoftplusGradGradient(GradContext& c) {
  ControlDependencies after(c.graph(), {c.dy()});
  Output ddy = Op("SoftplusGrad", c.dy(), c.x(1), "SoftplusGrad");
  Output numerator = Op("Mul", c.dy(), c.x(0), "mul");
  Output e = Op("Exp", Op("Neg", c.x(1), "Neg"), "Exp");
  Output sum = Op("AddV2", WithScalar("AddV2", e, 2, "add"), Op("Exp", c.x(1), "Exp"), "add");
  return {ddy, Op("RealDiv", numerator, sum, "truediv")};
}

Grads SoftsignGradient(GradContext& c) {
  return {Op("SoftsignGrad", c.dy(), c.x(), "SoftsignGrad")};
}

// ---- biases and norms

Grads BiasAddGradient(GradContext& c) {
  return {c.dy(), AddOp("BiasAddGrad", {c.dy()}, CopyAttrs(c.node(), {"data_format"}))};
}

Grads BiasAddV1Gradient(GradContext& c) {
  Graph& g = c.graph();
  Output last = WithScalar("Sub", Rank(c.dy(), "Rank"), 1, "sub");
  Output axes;
  {
    NameScope scope(g, "range");
    Output start = Const<int32_t>(g, 0, "start"), delta = Const<int32_t>(g, 1, "delta");
    axes = AddOp("Range", {start, last, delta}, {}, scope.name());
  }
  return {c.dy(), AddOp("Sum", {c.dy(), axes})};
}

// Broadcasts the gradient of the bias: reshapes it to [1, .., channels, .., 1] and tiles it.
Grads BiasAddGradGradient(GradContext& c) {
  Output shape = ShapeTensor(c.x(), DT_INT32, "Shape");
  Output bias_shape = ShapeTensor(c.dy(), DT_INT32, "Shape");
  const auto part = [&](std::optional<int64_t> begin, std::optional<int64_t> end) {
    return StridedSlice(shape, {Index::Range(begin, end)});
  };
  Output expanded, tiles;
  if (c.attr<std::string>("data_format") == "NCHW") {
    Output before = OnesLike(part(std::nullopt, 1)), after = OnesLike(part(2, std::nullopt));
    expanded = Concat({before, bias_shape, after}, 0);
    Output batch = part(std::nullopt, 1), spatial = part(2, std::nullopt);
    tiles = Concat({batch, Const<int32_t>(c.graph(), {1}, "concat_1/values_1"), spatial}, 0);
  } else {
    expanded = Concat({OnesLike(part(std::nullopt, -1)), bias_shape}, 0);
    tiles =
        Concat({part(std::nullopt, -1), Const<int32_t>(c.graph(), {1}, "concat_1/values_1")}, 0);
  }
  return {Tile(Reshape(c.dy(), expanded), tiles)};
}

Grads L2LossGradient(GradContext& c) { return {Op("Mul", c.x(), c.dy(), "mul")}; }

Grads LrnGradient(GradContext& c) {
  return {AddOp("LRNGrad", {c.dy(), c.x(), c.y()},
                CopyAttrs(c.node(), {"depth_radius", "bias", "alpha", "beta"}))};
}

// ---- softmax

// With y = softmax(x): dx = (dy - sum(dy * y)) * y.
Grads SoftmaxGradient(GradContext& c) {
  Output sum = ReduceSum(Op("Mul", c.dy(), c.y(), "mul"), -1, true);
  return {Op("Mul", Op("Sub", c.dy(), sum, "sub"), c.y(), "mul")};
}

Grads LogSoftmaxGradient(GradContext& c) {
  Output softmax = Op("Exp", c.y(), "Exp");
  Output sum = ReduceSum(c.dy(), -1, true);
  return {Op("Sub", c.dy(), Op("Mul", sum, softmax, "mul"), "sub")};
}

namespace {

Output TimesColumn(Output column, Output matrix) {
  return Op("Mul", ExpandDims(column, -1), matrix, "mul");
}

// The gradient with respect to the logits: the gradient of the loss, plus that of output `backprop`
// if that output is used.
Output LogitsGradient(GradContext& c) {
  Output grad = TimesColumn(c.dy(0), c.y(1));
  if (IsZero(c.dy_grad(1))) return grad;
  Output softmax = Op("Softmax", c.x(0), "Softmax");
  Output product =
      AddOp("BatchMatMulV2", {ExpandDims(c.dy(1), 1), ExpandDims(softmax, 2)}, {}, "MatMul");
  Output centered = Op("Sub", c.dy(1), Squeeze(product, {1}), "sub");
  return Op("AddV2", grad, Op("Mul", centered, softmax, "mul"), "add");
}

}  // namespace

Grads SoftmaxCrossEntropyGradient(GradContext& c) {
  Output logits = LogitsGradient(c);
  Output minus_log = Op("Neg", Op("LogSoftmax", c.x(0), "LogSoftmax"), "Neg");
  return {logits, TimesColumn(c.dy(0), minus_log)};
}

Grads SparseSoftmaxCrossEntropyGradient(GradContext& c) { return {LogitsGradient(c)}; }

// ---- convolution

namespace {

// The names of the three ops of the family that an op belongs to.
struct ConvFamily {
  std::string forward, backprop_input, backprop_filter;
};

ConvFamily FamilyOf(const Node& node) {
  if (node.op_name().rfind("Conv3D", 0) == 0)
    return {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"};
  const std::string base =
      node.op_name().rfind("Depthwise", 0) == 0 ? "DepthwiseConv2dNative" : "Conv2D";
  return {base, base + "BackpropInput", base + "BackpropFilter"};
}

Attrs ConvAttrs(const Node& node) {
  return CopyAttrs(node, {"strides", "use_cudnn_on_gpu", "padding", "explicit_paddings",
                          "data_format", "dilations"});
}

}  // namespace

Grads ConvGradient(GradContext& c) {
  const ConvFamily f = FamilyOf(c.node());
  const Attrs attrs = ConvAttrs(c.node());
  Outputs shapes;
  if (f.forward == "DepthwiseConv2dNative") {
    shapes = {ShapeTensor(c.x(0)), ShapeTensor(c.x(1))};
  } else {
    shapes = ShapeN({c.x(0), c.x(1)});
  }
  if (shapes.size() != 2) return {};
  return {AddOp(f.backprop_input, {shapes[0], c.x(1), c.dy()}, attrs),
          AddOp(f.backprop_filter, {c.x(0), shapes[1], c.dy()}, attrs)};
}

// Inputs: the shape of the image, the filter, and the gradient of the convolution's result.
Grads ConvBackpropInputGradient(GradContext& c) {
  const ConvFamily f = FamilyOf(c.node());
  const Attrs attrs = ConvAttrs(c.node());
  return {Grad(), AddOp(f.backprop_filter, {c.dy(), ShapeTensor(c.x(1)), c.x(2)}, attrs),
          AddOp(f.forward, {c.dy(), c.x(1)}, attrs)};
}

// Inputs: the image, the shape of the filter, and the gradient of the convolution's result.
Grads ConvBackpropFilterGradient(GradContext& c) {
  const ConvFamily f = FamilyOf(c.node());
  const Attrs attrs = ConvAttrs(c.node());
  return {AddOp(f.backprop_input, {ShapeTensor(c.x(0)), c.dy(), c.x(2)}, attrs), Grad(),
          AddOp(f.forward, {c.x(0), c.dy()}, attrs)};
}

// ---- pooling

namespace {

Attrs PoolAttrs(const Node& node) {
  return CopyAttrs(node, {"ksize", "strides", "padding", "explicit_paddings", "data_format"});
}

// The attributes for an op without explicit_paddings.
Attrs PlainPoolAttrs(const Node& node) {
  return CopyAttrs(node, {"ksize", "strides", "padding", "data_format"});
}

// The names of the ops related to MaxPool: "MaxPool" + `part`, with the version suffix of `node`.
std::string PoolOp(const Node& node, absl::string_view part) {
  const std::string& op = node.op_name();
  const std::string base = op.rfind("MaxPool3D", 0) == 0 ? "MaxPool3D" : "MaxPool";
  const bool v2 = op.size() > 2 && op.compare(op.size() - 2, 2, "V2") == 0;
  return absl::StrCat(base, part, v2 ? "V2" : "");
}

// The arguments of a related op: the three tensors, followed by V2's window sizes and strides.
std::vector<Arg> PoolArgs(const GradContext& c, Output a, Output b, Output grad, int first_size) {
  std::vector<Arg> args = {a, b, grad};
  for (int i = first_size; i < c.num_inputs(); ++i) args.push_back(c.x(i));
  return args;
}

}  // namespace

Grads MaxPoolGradient(GradContext& c) {
  return {
      AddOp(PoolOp(c.node(), "Grad"), PoolArgs(c, c.x(), c.y(), c.dy(), 1), PoolAttrs(c.node()))};
}

Grads MaxPoolGradGradient(GradContext& c) {
  Output zeros_x = ZerosLike(c.x(0)), zeros_y = ZerosLike(c.x(1));
  if (c.node().op_name() == "MaxPoolGrad" && c.attr<std::string>("padding") == "EXPLICIT") {
    c.graph().Fail(Unimplemented("the second derivative of ", c.node().Label(),
                                 " is not defined: MaxPoolGradGrad has no explicit padding"));
    return {};
  }
  return {zeros_x, zeros_y,
          AddOp(PoolOp(c.node(), "GradGrad"), PoolArgs(c, c.x(0), c.x(1), c.dy(), 3),
                PlainPoolAttrs(c.node()))};
}

Grads MaxPoolGradGradGradient(GradContext& c) {
  Output zeros_x = ZerosLike(c.x(0)), zeros_y = ZerosLike(c.x(1));
  return {zeros_x, zeros_y,
          AddOp(PoolOp(c.node(), "Grad"), PoolArgs(c, c.x(0), c.x(1), c.dy(), 3),
                PlainPoolAttrs(c.node()))};
}

Grads MaxPoolWithArgmaxGradient(GradContext& c) {
  return {AddOp("MaxPoolGradWithArgmax", {c.x(), c.dy(), c.y(1)},
                CopyAttrs(c.node(), {"ksize", "strides", "padding", "include_batch_in_index"}))};
}

Grads AvgPoolGradient(GradContext& c) {
  return {
      AddOp(c.node().op_name() + "Grad", {ShapeTensor(c.x()), c.dy()}, PlainPoolAttrs(c.node()))};
}

Grads AvgPoolGradGradient(GradContext& c) {
  const std::string& op = c.node().op_name();
  return {Grad(), AddOp(op.substr(0, op.size() - 4), {c.dy()}, PlainPoolAttrs(c.node()))};
}

}  // namespace weir
