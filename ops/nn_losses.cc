#include "weir/core/scope.h"
#include "weir/ops/math.h"
#include "weir/ops/nn.h"
#include "weir/ops/nn_internal.h"

namespace weir {
namespace {

Output Op(absl::string_view op, Output a, Output b, absl::string_view name) {
  return AddOp(op, {a, b}, {}, name);
}

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
