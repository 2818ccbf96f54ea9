#include "weir/examples/digits/network.h"

#include "weir/examples/digits/dataset.h"

namespace weir::digits {

namespace {

Output Conv(Output x, int64_t filters, absl::string_view name) {
  Graph& g = x.graph();
  VariableScope scope(g, name);
  const Variable w = GetVariable(g, "weights", {3, 3, x.dim(3), filters}, HeNormal());
  const Variable b = GetVariable(g, "biases", {filters}, Zeros());
  summary::Histogram("weights_histogram", w);
  return Relu(BiasAdd(Conv2D(x, w), b));
}

Output Dense(Output x, int64_t units, absl::string_view name) {
  Graph& g = x.graph();
  VariableScope scope(g, name);
  const Variable w = GetVariable(g, "weights", {x.dim(1), units}, GlorotUniform());
  const Variable b = GetVariable(g, "biases", {units}, Zeros());
  summary::Histogram("weights_histogram", w);
  return BiasAdd(MatMul(x, w), b);
}

}  // namespace

Network BuildNetwork(Graph& g, int64_t steps) {
  Network n;
  n.image = Placeholder(g, DT_FLOAT, {-1, kSide, kSide, 1}, "image");
  n.label = Placeholder(g, DT_INT64, {-1}, "label");
  n.dropout = PlaceholderWithDefault(Const(g, 0.f), {}, "dropout");

  Output x = Conv(Conv(n.image, 32, "conv1"), 64, "conv2");
  x = MaxPool(x, {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}});
  x = Reshape(x, {-1, 4 * 4 * 64});
  x = Relu(Dense(Dropout(x, n.dropout), 128, "hidden"));
  const Output logits = Dense(Dropout(x, n.dropout), kClasses, "logits");

  n.loss = ReduceMean(SparseSoftmaxCrossEntropy(logits, n.label));
  n.prediction = ArgMax(logits, 1);
  n.accuracy = ReduceMean(Cast(Equal(n.prediction, n.label), DT_FLOAT));
  n.global_step = CreateGlobalStep(g);
  const Output rate = CosineDecay(2e-3f, n.global_step, steps);
  n.train = Adam(rate).Minimize(n.loss, {.global_step = n.global_step});

  summary::Scalar("loss", n.loss);
  summary::Scalar("accuracy", n.accuracy);
  summary::Scalar("learning_rate", rate);
  n.summaries = summary::MergeAll(g);
  n.init = GlobalVariablesInitializer(g);
  return n;
}

}  // namespace weir::digits
