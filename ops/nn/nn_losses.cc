#include "weir/ops/nn/nn.h"

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/op_costs.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/nn/nn_internal.h"

// Softmax and cross entropy. Gradient functions build the nodes of TensorFlow's, with the same
// names.
namespace weir {

// ---- ops

namespace {

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

bool IsZero(const Grad& grad) {
  return grad.none() || grad.node()->op_name() == "ZerosLike" || grad.node()->op_name() == "Zeros";
}

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

Grads SoftmaxCrossEntropyGradient(GradContext& c) {
  Output logits = LogitsGradient(c);
  Output minus_log = Op("Neg", Op("LogSoftmax", c.x(0), "LogSoftmax"), "Neg");
  return {logits, TimesColumn(c.dy(0), minus_log)};
}

Grads SparseSoftmaxCrossEntropyGradient(GradContext& c) { return {LogitsGradient(c)}; }

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

}  // namespace

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

namespace {

CrossEntropyResult TwoOutputs(Node* node) {
  if (node == nullptr) return {};
  return {node->output(0), node->output(1)};
}

}  // namespace

// A variable is read before these nodes, as in TensorFlow.
Output Softmax(Output logits, absl::string_view name) {
  if (logits.valid()) logits.graph().NameHere(logits);
  return AddOp("Softmax", {logits}, {}, name);
}
Output LogSoftmax(Output logits, absl::string_view name) {
  if (logits.valid()) logits.graph().NameHere(logits);
  return AddOp("LogSoftmax", {logits}, {}, name);
}

CrossEntropyResult SoftmaxCrossEntropyWithLogits(Output features, Output labels,
                                                 absl::string_view name) {
  return TwoOutputs(AddNode("SoftmaxCrossEntropyWithLogits", {features, labels}, {}, name));
}

CrossEntropyResult SparseSoftmaxCrossEntropyWithLogits(Output features, Output labels,
                                                       absl::string_view name) {
  return TwoOutputs(AddNode("SparseSoftmaxCrossEntropyWithLogits", {features, labels}, {}, name));
}

// ---- losses of several ops

namespace {

// Builds the shape [-1, classes] as the node "shape", with the literal "shape/0".
Output MinusOneAnd(Output classes) {
  NameScope scope(classes.graph(), "shape");
  Output first = Const<int32_t>(classes.graph(), -1, "0");
  return AddOp("Pack", {Outputs{first, classes}}, {}, scope.name());
}

// Builds shape[begin : begin + size], where both are scalars or constants, as the nodes "Slice",
// "Slice/begin" and "Slice/size".
Output SliceOf(Output shape, const Output& begin, const Output& size) {
  Graph& g = shape.graph();
  NameScope scope(g, "Slice");
  const auto vector = [&](const Output& scalar, int32_t otherwise, absl::string_view name) {
    return scalar.valid() ? AddOp("Pack", {Outputs{scalar}}, {}, name)
                          : Const<int32_t>(g, {otherwise}, name);
  };
  Output b = vector(begin, 0, "begin"), s = vector(size, 1, "size");
  return AddOp("Slice", {shape, b, s}, {}, scope.name());
}

// Flattens all dimensions of x but the last into one.
Output Flattened(Output x) {
  Graph& g = x.graph();
  Output rank = Rank(x);
  Output sizes = ShapeTensor(x);
  Output classes = SliceOf(sizes, WithScalar("Sub", rank, 1, "Sub"), Output());
  Output shape;
  {
    NameScope scope(g, "concat");
    Output first = Const<int32_t>(g, {-1}, "values_0"), axis = Const<int32_t>(g, 0, "axis");
    shape = AddOp("ConcatV2", {Outputs{first, classes}, axis}, {}, scope.name());
  }
  return Reshape(x, shape);
}

}  // namespace

// Matrices are passed to the op directly. Other ranks are flattened to [-1, classes], and the loss
// is reshaped back.
Output SparseSoftmaxCrossEntropy(Output logits, Output labels, absl::string_view name) {
  if (!logits.valid() || !labels.valid()) return Output();
  Graph& g = logits.graph();
  NameScope scope(g, name.empty() ? "SparseSoftmaxCrossEntropyWithLogits" : name);
  const DataType type = logits.dtype();
  if (IsNarrow(type)) logits = Cast(logits, DT_FLOAT);
  if (!logits.valid()) return Output();
  Output shape = ShapeTensor(labels);
  Output loss;
  if (logits.shape().rank() == 2) {
    loss = SparseSoftmaxCrossEntropyWithLogits(logits, labels, name).loss;
  } else {
    Output sizes = ShapeTensor(logits);
    Output classes_at = WithScalar("Sub", Rank(logits), 1, "sub");
    Output classes = StridedSlice(sizes, {Index(classes_at)});
    Output flat;
    {
      NameScope reshape(g, "Reshape");
      flat = AddOp("Reshape", {logits, MinusOneAnd(classes)}, {}, reshape.name());
    }
    Output flat_labels = Reshape(labels, {-1});
    loss = Reshape(SparseSoftmaxCrossEntropyWithLogits(flat, flat_labels, name).loss, shape);
  }
  return IsNarrow(type) ? Cast(loss, type) : loss;
}

Output SoftmaxCrossEntropy(Output logits, Output labels, absl::string_view name) {
  if (!logits.valid() || !labels.valid()) return Output();
  Graph& g = logits.graph();
  NameScope scope(g, name.empty() ? "softmax_cross_entropy_with_logits" : name);
  const DataType type = logits.dtype();
  if (IsNarrow(type)) {
    logits = Cast(logits, DT_FLOAT);
    labels = Cast(labels, DT_FLOAT);
  }
  if (!logits.valid() || !labels.valid()) return Output();
  Output rank = Rank(logits);
  Output shape = ShapeTensor(logits);
  Output flat_logits = Flattened(logits), flat_labels = Flattened(labels);
  Output loss = SoftmaxCrossEntropyWithLogits(flat_logits, flat_labels, scope.name()).loss;
  if (!loss.valid()) return Output();
  Output without_classes = SliceOf(shape, Output(), WithScalar("Sub", rank, 1, "Sub"));
  loss = Reshape(loss, without_classes);
  if (loss.valid() && logits.shape().rank() >= 1) {
    g.Fail(g.RefineShape(loss, logits.shape().Sub(0, -1)));  // the reshape loses the static shape
  }
  return IsNarrow(type) ? Cast(loss, type) : loss;
}

// max(x, 0) - x * z + log(1 + exp(-|x|)): this form has no positive exponent.
Output SigmoidCrossEntropy(Output logits, Output labels, absl::string_view name) {
  if (!logits.valid() || !labels.valid()) return Output();
  NameScope scope(logits.graph(), name.empty() ? "logistic_loss" : name);
  Output zeros = ZerosLike(logits);
  Output positive = AddOp("GreaterEqual", {logits, zeros});
  Output relu = AddOp("Select", {positive, logits, zeros});
  Output minus_abs = AddOp("Select", {positive, AddOp("Neg", {logits}), logits});
  Output linear = Op("Sub", relu, Op("Mul", logits, labels, "mul"), "sub");
  return Op("AddV2", linear, AddOp("Log1p", {AddOp("Exp", {minus_abs})}), scope.name());
}

}  // namespace weir
