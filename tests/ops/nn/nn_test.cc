#include "weir/ops/nn/nn.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/data/summary.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/evaluate.h"

// Compares the nodes of builders and gradients with those of TensorFlow 2.21's Python functions.
namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

// Returns "name op" for all nodes except placeholders.
std::vector<std::string> Nodes(const Graph& g) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  std::vector<std::string> out;
  for (const auto& node : g.nodes()) {
    if (node->op_name() != "Placeholder") out.push_back(node->name() + " " + node->op_name());
  }
  return out;
}

Output Input(Graph& g, const Shape& shape, DataType type = DT_FLOAT) {
  return Placeholder(g, type, shape);
}

TEST(NnBuilders, DropoutAddsTensorFlowsNodes) {
  Graph g;
  Dropout(Input(g, {2, 3}), 0.5);
  EXPECT_THAT(Nodes(g),
              ElementsAre("dropout/Const Const", "dropout/Mul Mul", "dropout/Shape Const",
                          "dropout/random_uniform/RandomUniform RandomUniform",
                          "dropout/GreaterEqual/y Const", "dropout/GreaterEqual GreaterEqual",
                          "dropout/Const_1 Const", "dropout/SelectV2 SelectV2"));
}

// AddV2 does not support strings, so Python's + uses the older op for them.
TEST(MathBuilders, SumsOfStringsConcatenate) {
  Graph g;
  const Output x = Input(g, {2}, DT_STRING), y = Input(g, {2}, DT_STRING), n = Input(g, {2});
  const Output joined = x + y;
  Add(x, y);
  n + n;
  EXPECT_THAT(Nodes(g), ElementsAre("add Add", "Add_1 Add", "add_2 AddV2"));
  const auto values = Evaluate(
      g,
      {{x, Tensor::Vector<std::string>({"a", "b"})}, {y, Tensor::Vector<std::string>({"c", ""})}},
      {joined});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT((*values)[0].flat<std::string>(), ElementsAre("ac", "b"));
}

TEST(NnBuilders, DropoutByATensorsRateDivides) {
  Graph g;
  Output rate = Placeholder(g, DT_FLOAT, Shape());
  Dropout(Input(g, {2, 3}), rate);
  EXPECT_THAT(Nodes(g), ElementsAre("dropout/Const Const", "dropout/Sub Sub",
                                    "dropout/RealDiv RealDiv", "dropout/Shape Const",
                                    "dropout/random_uniform/RandomUniform RandomUniform",
                                    "dropout/GreaterEqual GreaterEqual", "dropout/Const_1 Const",
                                    "dropout/SelectV2 SelectV2"));
}

TEST(NnBuilders, DropoutKeepsTheExpectedValue) {
  Graph g;
  g.set_seed(1);
  Output ones = Const(g, Tensor::Of<float>({20000}, std::vector<float>(20000, 1.0f)));
  Output y = Dropout(ones, 0.25);
  const absl::StatusOr<Tensors> values = Evaluate(g, {y});
  ASSERT_TRUE(values.ok()) << values.status();
  double sum = 0;
  for (float v : (*values)[0].flat<float>()) {
    EXPECT_TRUE(v == 0 || std::abs(v - 1 / 0.75f) < 1e-6f) << v;
    sum += v;
  }
  EXPECT_NEAR(sum / 20000, 1, 0.02);
}

TEST(NnBuilders, DropoutNoiseShapeIsBroadcast) {
  Graph g;
  Output y = Dropout(Const(g, Tensor::Of<float>({6, 50}, std::vector<float>(300, 1.0f))), 0.5,
                     {.noise_shape = Ints{6, 1}, .seed = 3});
  const absl::StatusOr<Tensors> values = Evaluate(g, {y});
  ASSERT_TRUE(values.ok()) << values.status();
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ((*values)[0].data<float>()[i], (*values)[0].data<float>()[i / 50 * 50]);
  }
}

TEST(NnBuilders, DropoutRateOfZeroIsTheInputAndOfOneAnError) {
  Graph g;
  Output x = Input(g, {2});
  EXPECT_EQ(Dropout(x, 0), x);
  EXPECT_FALSE(Dropout(x, 1).valid());
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("in the range [0, 1)"));
}

TEST(NnBuilders, MomentsAddsTensorFlowsNodes) {
  Graph g;
  Moments(Input(g, {2, 3}), {0});
  EXPECT_THAT(Nodes(g),
              ElementsAre("moments/mean/reduction_indices Const", "moments/mean Mean",
                          "moments/StopGradient StopGradient",
                          "moments/SquaredDifference SquaredDifference",
                          "moments/variance/reduction_indices Const", "moments/variance Mean",
                          "moments/Squeeze Squeeze", "moments/Squeeze_1 Squeeze"));
}

TEST(NnBuilders, BatchNormalizationAddsTensorFlowsNodes) {
  Graph g;
  const Shape v({3});
  BatchNormalization(Input(g, {2, 3}), Input(g, v), Input(g, v), Input(g, v), Input(g, v), 1e-3);
  EXPECT_THAT(Nodes(g),
              ElementsAre("batchnorm/add/y Const", "batchnorm/add AddV2", "batchnorm/Rsqrt Rsqrt",
                          "batchnorm/mul Mul", "batchnorm/mul_1 Mul", "batchnorm/mul_2 Mul",
                          "batchnorm/sub Sub", "batchnorm/add_1 AddV2"));
}

TEST(NnBuilders, L2NormalizeAddsTensorFlowsNodes) {
  Graph g;
  L2Normalize(Input(g, {2, 3}), 1);
  EXPECT_THAT(
      Nodes(g),
      ElementsAre("l2_normalize/Square Square", "l2_normalize/Sum/reduction_indices Const",
                  "l2_normalize/Sum Sum", "l2_normalize/Maximum/y Const",
                  "l2_normalize/Maximum Maximum", "l2_normalize/Rsqrt Rsqrt", "l2_normalize Mul"));
}

TEST(NnBuilders, SigmoidCrossEntropyAddsTensorFlowsNodes) {
  Graph g;
  SigmoidCrossEntropy(Input(g, {2, 3}), Input(g, {2, 3}));
  EXPECT_THAT(
      Nodes(g),
      ElementsAre("logistic_loss/zeros_like Const", "logistic_loss/GreaterEqual GreaterEqual",
                  "logistic_loss/Select Select", "logistic_loss/Neg Neg",
                  "logistic_loss/Select_1 Select", "logistic_loss/mul Mul", "logistic_loss/sub Sub",
                  "logistic_loss/Exp Exp", "logistic_loss/Log1p Log1p", "logistic_loss AddV2"));
}

TEST(NnBuilders, SparseCrossEntropyAddsTensorFlowsNodes) {
  Graph g;
  Output loss = SparseSoftmaxCrossEntropy(Input(g, {2, 3}), Input(g, {2}, DT_INT64));
  const std::string name = "SparseSoftmaxCrossEntropyWithLogits";
  EXPECT_EQ(loss.name(), name + "/" + name + ":0");
  EXPECT_THAT(Nodes(g), ElementsAre(name + "/Shape Const", name + "/" + name + " " + name));
}

TEST(NnBuilders, SparseCrossEntropyOfHigherRanksFlattens) {
  Graph g;
  Output loss = SparseSoftmaxCrossEntropy(Input(g, {2, 5, 3}), Input(g, {2, 5}, DT_INT64));
  EXPECT_EQ(loss.shape(), Shape({2, 5}));
  const std::string s = "SparseSoftmaxCrossEntropyWithLogits/";
  EXPECT_THAT(Nodes(g), IsSupersetOf({s + "Shape_1 Const", s + "Rank Const", s + "sub Sub",
                                      s + "strided_slice StridedSlice", s + "Reshape/shape Pack",
                                      s + "Reshape Reshape", s + "Reshape_1 Reshape",
                                      s + "Reshape_2 Reshape"}));
}

TEST(NnBuilders, CrossEntropyAddsTensorFlowsNodes) {
  Graph g;
  Output loss = SoftmaxCrossEntropy(Input(g, {2, 3}), Input(g, {2, 3}));
  EXPECT_EQ(loss.name(), "softmax_cross_entropy_with_logits/Reshape_2:0");
  EXPECT_EQ(loss.shape(), Shape({2}));
  std::vector<std::string> want;
  for (const char* node : {"Rank Const",
                           "Shape Const",
                           "Rank_1 Const",
                           "Shape_1 Const",
                           "Sub/y Const",
                           "Sub Sub",
                           "Slice/begin Pack",
                           "Slice/size Const",
                           "Slice Slice",
                           "concat/values_0 Const",
                           "concat/axis Const",
                           "concat ConcatV2",
                           "Reshape Reshape",
                           "Rank_2 Const",
                           "Shape_2 Const",
                           "Sub_1/y Const",
                           "Sub_1 Sub",
                           "Slice_1/begin Pack",
                           "Slice_1/size Const",
                           "Slice_1 Slice",
                           "concat_1/values_0 Const",
                           "concat_1/axis Const",
                           "concat_1 ConcatV2",
                           "Reshape_1 Reshape"}) {
    want.push_back(std::string("softmax_cross_entropy_with_logits/") + node);
  }
  want.push_back("softmax_cross_entropy_with_logits SoftmaxCrossEntropyWithLogits");
  for (const char* node : {"Sub_2/y Const", "Sub_2 Sub", "Slice_2/begin Const", "Slice_2/size Pack",
                           "Slice_2 Slice", "Reshape_2 Reshape"}) {
    want.push_back(std::string("softmax_cross_entropy_with_logits/") + node);
  }
  EXPECT_EQ(Nodes(g), want);
}

TEST(NnBuilders, EmbeddingLookupIsAGatherColocatedWithItsTable) {
  Graph g;
  const Output table = Input(g, {7, 3}), ids = Input(g, {2}, DT_INT32);
  EmbeddingLookup(table, ids);
  EXPECT_THAT(Nodes(g), ElementsAre("embedding_lookup/axis Const", "embedding_lookup GatherV2",
                                    "embedding_lookup/Identity Identity"));
  EXPECT_THAT(g.FindNode("embedding_lookup")->colocations(), ElementsAre("Placeholder"));
}

TEST(NnBuilders, TransposedConvolutionIsTheGradientsOp) {
  Graph g;
  Output y = Conv2DTranspose(Input(g, {2, 8, 8, 4}), Input(g, {3, 3, 8, 4}), {2, 16, 16, 8},
                             {.strides = {1, 2, 2, 1}});
  EXPECT_THAT(Nodes(g), ElementsAre("conv2d_transpose/input_sizes Const",
                                    "conv2d_transpose Conv2DBackpropInput"));
  EXPECT_EQ(y.shape(), Shape({2, 16, 16, 8}));
}

// ---- gradients

std::vector<std::string> GradientNodes(const Graph& g) {
  std::vector<std::string> out;
  for (const std::string& node : Nodes(g)) {
    if (node.find("_grad/") != std::string::npos) out.push_back(node);
  }
  return out;
}

TEST(NnGradients, ConvolutionAddsTensorFlowsNodes) {
  Graph g;
  Output x = Input(g, {2, 8, 8, 4}), w = Input(g, {3, 3, 4, 8});
  Gradients({Conv2D(x, w, {.strides = {1, 2, 2, 1}})}, Outputs{x, w});
  EXPECT_THAT(GradientNodes(g),
              ElementsAre("gradients/Conv2D_grad/ShapeN ShapeN",
                          "gradients/Conv2D_grad/Conv2DBackpropInput Conv2DBackpropInput",
                          "gradients/Conv2D_grad/Conv2DBackpropFilter Conv2DBackpropFilter"));
}

TEST(NnGradients, SoftmaxAddsTensorFlowsNodes) {
  Graph g;
  Output x = Input(g, {2, 3});
  Gradients({Softmax(x)}, Outputs{x});
  EXPECT_THAT(GradientNodes(g),
              ElementsAre("gradients/Softmax_grad/mul Mul",
                          "gradients/Softmax_grad/Sum/reduction_indices Const",
                          "gradients/Softmax_grad/Sum Sum", "gradients/Softmax_grad/sub Sub",
                          "gradients/Softmax_grad/mul_1 Mul"));
}

TEST(NnGradients, BiasAddAndPoolingAddTensorFlowsNodes) {
  Graph g;
  Output x = Input(g, {2, 4, 4, 3}), b = Input(g, {3});
  Output y = AvgPool(MaxPool(BiasAdd(x, b), {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}}),
                     {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}});
  Gradients({y}, Outputs{x, b});
  EXPECT_THAT(GradientNodes(g), ElementsAre("gradients/AvgPool_grad/Shape Const",
                                            "gradients/AvgPool_grad/AvgPoolGrad AvgPoolGrad",
                                            "gradients/MaxPool_grad/MaxPoolGrad MaxPoolGrad",
                                            "gradients/BiasAdd_grad/BiasAddGrad BiasAddGrad"));
}

// ---- summaries

TEST(Summaries, TagsAreNamesWithTheirScopes) {
  Graph g;
  Output x = Input(g, Shape());
  EXPECT_EQ(summary::Scalar("lo ss", x).name(), "lo_ss:0");
  EXPECT_EQ(summary::Histogram("h", x, {.family = "fam"}).name(), "fam/h:0");
  EXPECT_THAT(Nodes(g), ElementsAre("lo_ss/tags Const", "lo_ss ScalarSummary", "fam/h/tag Const",
                                    "fam/h HistogramSummary"));
  EXPECT_EQ(g.FindNode("fam/h/tag")->attr<Tensor>("value").scalar<std::string>(), "fam/fam/h");
}

TEST(Summaries, MergeAllUsesTheCollection) {
  Graph g;
  EXPECT_FALSE(summary::MergeAll(g).valid());
  Output x = Input(g, Shape());
  summary::Scalar("a", x);
  summary::Scalar("b", x, {.collections = {"others"}});
  Output merged = summary::MergeAll(g);
  EXPECT_EQ(merged.name(), "Merge/MergeSummary:0");
  EXPECT_EQ(merged.node->num_inputs(), 1);
  EXPECT_EQ(summary::Merge(g.collection_as<Output>("others"), "mine").name(), "mine/mine:0");
}

}  // namespace
}  // namespace weir
