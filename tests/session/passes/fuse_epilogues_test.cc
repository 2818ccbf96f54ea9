#include <cmath>
#include <limits>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/kernels/lib/backend.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"

// Fusion of epilogues into matrix products and convolutions, as shown by the ops that a traced step
// runs.
namespace weir {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;

class Fuse : public testing::Test {
 protected:
  // Elements that are neither equal nor sorted.
  static Tensor Numbers(const Shape& shape, float low = -1, float high = 1) {
    Tensor t(DT_FLOAT, shape);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      const double spread = std::fmod(static_cast<double>(i + 1) * 0.6180339887498949, 1.0);
      t.data<float>()[i] = low + (high - low) * static_cast<float>(spread);
    }
    return t;
  }
  Output Image(const Shape& shape = {2, 8, 8, 3}) {
    fed_ = Numbers(shape);
    return Placeholder(g_, DT_FLOAT, shape, "x");
  }
  Output Filter(const Shape& shape) { return Const(g_, Numbers(shape)); }
  Output Conv(const Output& x, const Output& filter, const char* format = "NHWC") {
    return AddOp("Conv2D", {x, filter},
                 {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                  {"padding", "SAME"},
                  {"data_format", format}});
  }
  // A batch norm in inference, with constants of this many channels.
  Output Normalized(const Output& x, int64_t channels, bool training = false) {
    Node* node =
        AddNode("FusedBatchNormV3",
                {x, Const(g_, Numbers({channels}, 0.5f, 2)), Const(g_, Numbers({channels}, -2, 2)),
                 Const(g_, Numbers({channels}, -1, 2)), Const(g_, Numbers({channels}, 0.1f, 3))},
                {{"is_training", training}, {"epsilon", 0.001f}});
    return node->output(0);
  }

  // Returns how often each op runs for y. Checks that the value is the same with and without fusion
  // and with any number of threads.
  std::map<std::string, int> OpsFor(const Output& y) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const Tensor want = Run(y, {.num_threads = 2, .disable = {"fusion"}}, nullptr);
    std::vector<NodeTrace> trace;
    for (const int threads : {1, 3, 2}) {
      trace.clear();
      const Tensor got = Run(y, {.num_threads = threads}, &trace);
      ExpectClose(got, want);
    }
    std::map<std::string, int> ops;
    for (const NodeTrace& node : trace) ++ops[node.op];
    return ops;
  }
  static void ExpectClose(const Tensor& got, const Tensor& want) {
    ASSERT_EQ(got.shape(), want.shape());
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      const float g = got.data<float>()[i], w = want.data<float>()[i];
      if (std::isnan(w)) {
        ASSERT_TRUE(std::isnan(g)) << g << " at " << i;
      } else if (g != w) {
        ASSERT_NEAR(g, w, 2e-5 * std::max(1.f, std::abs(w))) << "at " << i;
      }
    }
  }
  Tensor Run(const Output& y, SessionOptions options, std::vector<NodeTrace>* trace) {
    options.backends = std::make_shared<BackendRegistry>();  // the CPU only
    Session session = *Session::Create(g_, std::move(options));
    for (const Operation& init : inits_) EXPECT_TRUE(session.Run(init).ok());
    Feeds feeds;
    if (const auto x = g_.FindOutput("x"); x.ok()) feeds.emplace_back(*x, fed_);
    const auto out = session.Run(feeds, {y}, {}, {.trace = trace});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0] : Tensor();
  }

  Graph g_;
  Tensor fed_;
  std::vector<Operation> inits_;
};

TEST_F(Fuse, AConvolutionFusesBiasAndActivation) {
  const Output y = Relu(BiasAdd(Conv(Image(), Filter({3, 3, 3, 8})), Const(g_, Numbers({8}))));
  EXPECT_THAT(OpsFor(y), testing::ElementsAre(testing::Pair("_FusedConv2D", 1)));
}

TEST_F(Fuse, CanBeDisabledByName) {
  const Output y = Relu(BiasAdd(Conv(Image(), Filter({3, 3, 3, 8})), Const(g_, Numbers({8}))));
  std::vector<NodeTrace> trace;
  Run(y, {.disable = {"fusion"}}, &trace);
  EXPECT_EQ(trace.size(), 3u);
}

TEST_F(Fuse, BatchNormIsFoldedIntoTheFilter) {
  const Output conv = Relu6(Normalized(Conv(Image(), Filter({3, 3, 3, 8})), 8));
  const Output depthwise =
      AddOp("DepthwiseConv2dNative", {conv, Filter({3, 3, 8, 2})},
            {{"strides", std::vector<int64_t>{1, 2, 2, 1}},
             {"padding", "EXPLICIT"},
             {"explicit_paddings", std::vector<int64_t>{0, 0, 1, 1, 1, 1, 0, 0}}});
  EXPECT_THAT(OpsFor(Normalized(depthwise, 16)),
              testing::ElementsAre(testing::Pair("_FusedConv2D", 1),
                                   testing::Pair("_FusedDepthwiseConv2dNative", 1)));
}

TEST_F(Fuse, BiasAndBatchNormAreOneBias) {
  const Output biased = BiasAdd(Conv(Image(), Filter({3, 3, 3, 8})), Const(g_, Numbers({8})));
  EXPECT_THAT(OpsFor(Normalized(biased, 8)),
              testing::ElementsAre(testing::Pair("_FusedConv2D", 1)));
}

TEST_F(Fuse, AnAddNOfTwoIsASum) {
  const Output x = Image({1, 8, 8, 16});
  const Output left = Conv(x, Filter({3, 3, 16, 16})), right = Conv(x, Filter({1, 1, 16, 16}));
  EXPECT_THAT(
      OpsFor(AddN({left, right})),
      testing::UnorderedElementsAre(testing::Pair("Conv2D", 1), testing::Pair("_FusedConv2D", 1)));
  EXPECT_THAT(OpsFor(AddN({left, x, right})), Not(Contains(Key("_FusedConv2D"))));
}

// The shortcut of a residual network, from either side.
TEST_F(Fuse, ASumOverwritesTheOtherTensor) {
  const Output x = Image({1, 8, 8, 16});
  const Output left = Normalized(Conv(x, Filter({3, 3, 16, 16})), 16);
  const Output right = Normalized(Conv(x, Filter({1, 1, 16, 16})), 16);
  for (const Output& sum : {left + right, right + left})
    EXPECT_THAT(OpsFor(Relu(sum)), testing::ElementsAre(testing::Pair("_FusedConv2D", 2)));
  EXPECT_THAT(OpsFor(Relu(left + x) + x), Not(Contains(Key("Relu"))));
}

// A convolution on the shortcut, where the image shrinks.
TEST_F(Fuse, AFilterThatSkipsPixels) {
  const Output x = Image({2, 9, 8, 24});
  const auto skipping = [&] {
    return AddOp("Conv2D", {x, Filter({1, 1, 24, 40})},
                 {{"strides", std::vector<int64_t>{1, 2, 2, 1}}, {"padding", "SAME"}});
  };
  const Output left = Normalized(skipping(), 40), right = Normalized(skipping(), 40);
  for (const Output& y : {left, Relu(left), Elu(left), Relu6(left + right), left + right})
    EXPECT_THAT(OpsFor(y), Contains(Key("_FusedConv2D")));
}

TEST_F(Fuse, FiltersLargerThanTheirImages) {
  const Output x = Image({1, 7, 7, 64});
  const Output conv = Normalized(Conv(x, Filter({3, 3, 64, 384})), 384);
  const Output other = Normalized(Conv(x, Filter({1, 1, 64, 384})), 384);
  EXPECT_THAT(OpsFor(Relu(conv + other)), testing::ElementsAre(testing::Pair("_FusedConv2D", 2)));
}

TEST_F(Fuse, AMatrixProductFusesBiasAndActivation) {
  const Output x = Image({5, 7});
  const Output w = Filter({7, 64});
  const Output y = Tanh(MatMul(x, w) + Const(g_, Numbers({64})));
  EXPECT_THAT(OpsFor(y), testing::ElementsAre(testing::Pair("_FusedMatMul", 1)));
}

// A residual sum before the bias, from either side; there is only one bias.
TEST_F(Fuse, ABiasMayFollowTheSum) {
  const Output x = Image({40, 64});
  const Output product = MatMul(x, Filter({64, 64})), bias = Const(g_, Numbers({64}));
  for (const Output& sum : {product + x, x + product}) {
    EXPECT_THAT(OpsFor(Relu(sum + bias)), testing::ElementsAre(testing::Pair("_FusedMatMul", 1)));
    EXPECT_THAT(OpsFor(BiasAdd(sum + bias, bias)), Contains(Key("BiasAdd")));
  }
}

TEST_F(Fuse, ABiasMayFollowTheSumWithAConvolution) {
  const Output image = Image({1, 8, 8, 16});
  const Output conv = Conv(image, Filter({3, 3, 16, 16})) + image;
  EXPECT_THAT(OpsFor(Relu(BiasAdd(conv, Const(g_, Numbers({16}))))),
              testing::ElementsAre(testing::Pair("_FusedConv2D", 1)));
}

TEST_F(Fuse, VariablesAreNotConstants) {
  const Variable w = GetVariable(g_, "w", {3, 3, 3, 8}, Ones());
  const Variable b = GetVariable(g_, "b", {8}, Ones());
  inits_ = {GlobalVariablesInitializer(g_)};
  const Output biased = BiasAdd(Conv(Image(), w.value()), b.value());
  EXPECT_THAT(OpsFor(Relu(biased)), Contains(testing::Pair("_FusedConv2D", 1)));
  EXPECT_THAT(OpsFor(Normalized(biased, 8)), Contains(testing::Pair("FusedBatchNormV3", 1)));
}

TEST_F(Fuse, ChannelsFirst) {
  const Output conv = Conv(Image({2, 3, 8, 8}), Filter({3, 3, 3, 8}), "NCHW");
  const Output biased = BiasAdd(conv, Const(g_, Numbers({8})), "NCHW");
  EXPECT_THAT(OpsFor(Relu(biased)), testing::ElementsAre(testing::Pair("_FusedConv2D", 1)));
}

TEST_F(Fuse, AVectorOfRowsIsNotABias) {
  const Output last = Conv(Image({2, 8, 8, 3}), Filter({3, 3, 3, 8}));
  EXPECT_THAT(OpsFor(BiasAdd(last, Const(g_, Numbers({8})), "NCHW")), Contains(Key("BiasAdd")));
}

TEST_F(Fuse, ValuesWithOtherUsersAreKept) {
  const Output image = Image(), conv = Conv(image, Filter({3, 3, 3, 8}));
  const Output biased = BiasAdd(conv, Const(g_, Numbers({8})));
  EXPECT_THAT(OpsFor(Relu(biased) + biased), Contains(Key("_FusedElementwise")));
  EXPECT_THAT(OpsFor(Relu(biased) + conv), Contains(Key("Conv2D")));
  EXPECT_THAT(OpsFor(Normalized(conv, 8, /*training=*/true)), Contains(Key("FusedBatchNormV3")));
  Output after;
  {
    const ControlDependencies order(g_, {biased});
    after = CheckNumerics(image, "image");
  }
  EXPECT_THAT(OpsFor(Relu(biased) * ReduceSum(after)), Contains(Key("_FusedElementwise")))
      << "a control edge leaves the sum";
}

TEST_F(Fuse, ABatchNormWithUsedStatisticsIsNotFolded) {
  const Output y = Normalized(Conv(Image(), Filter({3, 3, 3, 8})), 8);
  const Output mean = y.node->output(1);
  EXPECT_THAT(OpsFor(y + mean), Contains(Key("FusedBatchNormV3")));
  EXPECT_THAT(OpsFor(mean), Contains(Key("FusedBatchNormV3")));
}

TEST_F(Fuse, ArgumentsOfOtherTypesAreErrors) {
  const Output y = AddOp("_FusedConv2D",
                         {Image(), Filter({3, 3, 3, 8}),
                          Outputs{Const(g_, Tensor::Zeros(DT_UINT8, Shape({8})))}, Outputs{}},
                         {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                          {"padding", "SAME"},
                          {"num_args", 1},
                          {"fused_ops", std::vector<std::string>{"BiasAdd"}}});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  const auto out = session.Run({{*g_.FindOutput("x"), fed_}}, {y});
  EXPECT_TRUE(absl::IsInvalidArgument(out.status())) << out.status();
}

TEST_F(Fuse, NanIsPropagated) {
  const Output x = Image();
  fed_.data<float>()[100] = std::numeric_limits<float>::quiet_NaN();
  fed_.data<float>()[200] = -std::numeric_limits<float>::infinity();
  const Output y = Normalized(Conv(x, Filter({3, 3, 3, 8})), 8);
  OpsFor(Relu(y));
  OpsFor(Relu6(y));
}

}  // namespace
}  // namespace weir
