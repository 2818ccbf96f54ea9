#include "weir/examples/digits/network.h"

#include "weir/examples/digits/dataset.h"

namespace digits {

namespace {

weir::Output Conv(weir::Output x, int64_t filters, absl::string_view name) {
  weir::Graph& g = x.graph();
  weir::VariableScope scope(g, name);
  const weir::Variable w =
      weir::GetVariable(g, "weights", {3, 3, x.dim(3), filters}, weir::HeNormal());
  const weir::Variable b = weir::GetVariable(g, "biases", {filters}, weir::Zeros());
  weir::summary::Histogram("weights_histogram", w);
  return weir::Relu(weir::BiasAdd(weir::Conv2D(x, w), b));
}

weir::Output Dense(weir::Output x, int64_t units, absl::string_view name) {
  weir::Graph& g = x.graph();
  weir::VariableScope scope(g, name);
  const weir::Variable w =
      weir::GetVariable(g, "weights", {x.dim(1), units}, weir::GlorotUniform());
  const weir::Variable b = weir::GetVariable(g, "biases", {units}, weir::Zeros());
  weir::summary::Histogram("weights_histogram", w);
  return weir::BiasAdd(weir::MatMul(x, w), b);
}

}  // namespace

Network BuildNetwork(weir::Graph& g, int64_t steps) {
  Network n;
  n.image = weir::Placeholder(g, weir::DT_FLOAT, {-1, kSide, kSide, 1}, "image");
  n.label = weir::Placeholder(g, weir::DT_INT64, {-1}, "label");
  n.dropout = weir::PlaceholderWithDefault(weir::Const(g, 0.f), {}, "dropout");

  weir::Output x = Conv(Conv(n.image, 32, "conv1"), 64, "conv2");
  x = weir::MaxPool(x, {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}});
  x = weir::Reshape(x, {-1, 4 * 4 * 64});
  x = weir::Relu(Dense(weir::Dropout(x, n.dropout), 128, "hidden"));
  const weir::Output logits = Dense(weir::Dropout(x, n.dropout), kClasses, "logits");

  n.loss = weir::ReduceMean(weir::SparseSoftmaxCrossEntropy(logits, n.label));
  n.prediction = weir::ArgMax(logits, 1);
  n.accuracy = weir::ReduceMean(weir::Cast(weir::Equal(n.prediction, n.label), weir::DT_FLOAT));
  n.global_step = weir::CreateGlobalStep(g);
  const weir::Output rate = weir::CosineDecay(2e-3f, n.global_step, steps);
  n.train = weir::Adam(rate).Minimize(n.loss, {.global_step = n.global_step});

  weir::summary::Scalar("loss", n.loss);
  weir::summary::Scalar("accuracy", n.accuracy);
  weir::summary::Scalar("learning_rate", rate);
  n.summaries = weir::summary::MergeAll(g);
  n.init = weir::GlobalVariablesInitializer(g);
  return n;
}

}  // namespace digits
