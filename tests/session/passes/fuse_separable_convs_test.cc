// Fusion of depthwise separable convolutions into one node: which are fused, that values equal
// those of the single nodes, and which are not fused.

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

constexpr char kSeparable[] = "_FusedDepthwiseSeparableConv2D";

class FuseSeparableConvs : public testing::Test {
 protected:
  Tensor Random(const Shape& shape, float low = -1) { return UniformFloats(shape, random_, low); }
  Output Image(const Shape& shape) {
    fed_ = Random(shape);
    return Placeholder(g_, DT_FLOAT, shape, "x");
  }
  // Filters whose results have about the magnitude of their inputs.
  Output Filter(const Shape& shape) {
    Tensor t = Random(shape);
    const bool depthwise = shape.dim(3) <= 2;
    const auto sum =
        static_cast<float>(shape.dim(0) * shape.dim(1) * (depthwise ? 1 : shape.dim(2)));
    for (float& f : t.flat<float>()) f *= 1.5f / std::sqrt(sum);
    return Const(g_, t);
  }
  Output Bias(const Output& y) { return BiasAdd(y, Const(g_, Random({y.shape().dim(3)}))); }
  Output Pointwise(const Output& x, int64_t out, ConvOptions options = {}) {
    const int64_t in = x.shape().dim(3);
    return Bias(Conv2D(x, Filter({1, 1, in, out}), options));
  }
  Output Depthwise(const Output& x, ConvOptions options = {}, int64_t multiplier = 1) {
    const int64_t channels = x.shape().dim(3);
    return Bias(DepthwiseConv2dNative(x, Filter({3, 3, channels, multiplier}), options));
  }
  // An inverted residual of MobileNet-v2.
  Output Block(const Output& x, int64_t out, ConvOptions options = {}) {
    return Pointwise(Relu6(Depthwise(Relu6(Pointwise(x, 6 * x.shape().dim(3))), options)), out);
  }

  Tensor Run(const Output& y, SessionOptions options, std::map<std::string, int>* ops = nullptr) {
    Session session = *Session::Create(g_, std::move(options));
    for (const Operation& init : inits_) EXPECT_TRUE(session.Run(init).ok());
    std::vector<NodeTrace> trace;
    const auto out = session.Run({{*g_.FindOutput("x"), fed_}}, {y}, {}, {.trace = &trace});
    EXPECT_TRUE(out.ok()) << out.status();
    for (const NodeTrace& node : trace) {
      if (ops != nullptr) ++(*ops)[node.op];
    }
    return out.ok() ? (*out)[0] : Tensor();
  }
  // Returns how often each op runs for y. Checks that its value equals that of single nodes, with
  // any number of threads.
  std::map<std::string, int> OpsFor(const Output& y) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const Tensor want = Run(y, {.num_threads = 2, .disable = {"fusion"}});
    std::map<std::string, int> ops;
    for (const int threads : {1, 3, 2}) {
      ops.clear();
      const Tensor got = Run(y, {.num_threads = threads}, &ops);
      EXPECT_EQ(got.shape(), want.shape());
      for (int64_t i = 0; i < want.num_elements(); ++i) {
        const float g = got.data<float>()[i], w = want.data<float>()[i];
        if (std::isnan(w)) {
          EXPECT_TRUE(std::isnan(g)) << g << " at " << i;
        } else if (g != w) {
          EXPECT_NEAR(g, w, 3e-5 * std::max(1.f, std::abs(w))) << "at " << i;
        }
      }
      if (HasFailure()) break;
    }
    return ops;
  }

  Graph g_;
  Tensor fed_;
  std::vector<Operation> inits_;
  std::mt19937 random_{7};
};

TEST_F(FuseSeparableConvs, ABlockIsOneNode) {
  const Output y = Block(Image({2, 14, 13, 8}), 24, {.strides = {1, 2, 2, 1}});
  EXPECT_THAT(OpsFor(y), ElementsAre(Pair(kSeparable, 1)));
}

TEST_F(FuseSeparableConvs, WithItsShortcut) {
  const Output x = Image({1, 14, 14, 16});
  EXPECT_THAT(OpsFor(Block(x, 16) + x), ElementsAre(Pair(kSeparable, 1)));
  EXPECT_THAT(OpsFor(Relu(x + Block(x, 16))), ElementsAre(Pair(kSeparable, 1)));
}

TEST_F(FuseSeparableConvs, FewerChannelsThanAVectorHas) {
  const Output y = Pointwise(Relu(Depthwise(Image({2, 9, 9, 3}))), 8);
  EXPECT_THAT(OpsFor(y), Not(Contains(Key(kSeparable))));
}

// As in MobileNet-v1, which has no expansion.
TEST_F(FuseSeparableConvs, ConsecutiveBlocks) {
  Output y = Image({1, 20, 20, 16});
  for (const int64_t out : {32, 64, 64}) y = Relu(Pointwise(Relu(Depthwise(y)), out));
  EXPECT_THAT(OpsFor(y), ElementsAre(Pair(kSeparable, 3)));
}

TEST_F(FuseSeparableConvs, SmallImagesWithManyChannels) {
  Output y = Image({1, 7, 7, 96});
  y = Block(y, 96) + y;
  EXPECT_THAT(OpsFor(Block(y, 200)), ElementsAre(Pair(kSeparable, 2)));
}

// Channels that cannot be divided evenly among threads.
TEST_F(FuseSeparableConvs, FewChannelsToManyOfSmallImages) {
  const Output y = Pointwise(Relu(Depthwise(Image({1, 5, 5, 33}))), 3000);
  EXPECT_THAT(OpsFor(y), ElementsAre(Pair(kSeparable, 1)));
}

TEST_F(FuseSeparableConvs, BatchNormsAreFoldedBefore) {
  const auto normalized = [&](const Output& x) {
    const Shape channels({x.shape().dim(3)});
    return AddNode("FusedBatchNormV3",
                   {x, Const(g_, Random(channels, 0.5f)), Const(g_, Random(channels)),
                    Const(g_, Random(channels)), Const(g_, Random(channels, 0.1f))},
                   {{"is_training", false}, {"epsilon", 0.001f}})
        ->output(0);
  };
  const Output x = Image({1, 12, 12, 16});
  Output y = Relu6(normalized(Conv2D(x, Const(g_, Random({1, 1, 16, 64})))));
  y = Relu6(normalized(DepthwiseConv2dNative(y, Const(g_, Random({3, 3, 64, 1})))));
  y = normalized(Conv2D(y, Const(g_, Random({1, 1, 64, 24}))));
  EXPECT_THAT(OpsFor(y), ElementsAre(Pair(kSeparable, 1)));
}

TEST_F(FuseSeparableConvs, FiltersInVariables) {
  const Output x = Image({1, 12, 12, 16});
  const Variable filter = MakeVariable(Const(g_, Random({3, 3, 16, 1})), {.name = "filter"});
  const Variable out = MakeVariable(Const(g_, Random({1, 1, 16, 24})), {.name = "out"});
  inits_ = {GlobalVariablesInitializer(g_)};
  const Output value = Placeholder(g_, DT_FLOAT, {1, 1, 16, 24}, "value");
  const Operation assign{out.Assign(value).node};
  const auto result = [&](const Output& pointwise) {
    return Conv2D(Relu(Bias(DepthwiseConv2dNative(x, filter.value()))), pointwise);
  };
  const Output bias = Const(g_, Random({24}));
  const Output y = BiasAdd(result(out.value()), bias);
  EXPECT_THAT(OpsFor(y), Contains(Pair(kSeparable, 1)));

  // A packed filter is discarded when its variable changes.
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(inits_[0]).ok());
  Tensor ones(DT_FLOAT, Shape({1, 1, 16, 24}));
  for (float& f : ones.flat<float>()) f = 1;
  const auto before = session.Run({{x, fed_}}, {y});
  ASSERT_TRUE(session.Run({{value, ones}}, {}, {assign}).ok());
  const auto after = session.Run({{x, fed_}}, {y});
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_FALSE(IdenticalTensors((*before)[0], (*after)[0]));
  for (int64_t pixel = 0; pixel < 144; ++pixel) {
    const float* const at = (*after)[0].data<float>() + pixel * 24;
    const float* const offset = bias.node->attr<Tensor>("value").data<float>();
    for (int64_t c = 1; c < 24; ++c) EXPECT_NEAR(at[c] - offset[c], at[0] - offset[0], 1e-4);
  }
}

TEST_F(FuseSeparableConvs, UnsupportedFormsAreNotFused) {
  const Output x = Image({1, 10, 10, 16});
  const auto not_fused = Not(Contains(Key(kSeparable)));
  EXPECT_THAT(OpsFor(Pointwise(Elu(Depthwise(x)), 24)), not_fused);
  EXPECT_THAT(OpsFor(Pointwise(Depthwise(x, {}, /*multiplier=*/2), 24)), not_fused);
  EXPECT_THAT(OpsFor(Pointwise(Depthwise(x), 24, {.strides = {1, 2, 2, 1}})), not_fused);
  const ConvOptions padded = {.padding = "EXPLICIT", .explicit_paddings = {0, 0, 1, 1, 1, 1, 0, 0}};
  EXPECT_THAT(OpsFor(Pointwise(Depthwise(x), 24, padded)), not_fused);
  EXPECT_THAT(OpsFor(Bias(Conv2D(Depthwise(x), Const(g_, Random({3, 3, 16, 8}))))), not_fused);
  EXPECT_THAT(OpsFor(Pointwise(Depthwise(x) + x, 24)), not_fused);
}

// A filter that is computed from a feed would be packed in each step, which is not worth it.
TEST_F(FuseSeparableConvs, ComputedFiltersAreNotFused) {
  const Output x = Image({1, 10, 10, 16});
  const Output filter = Const(g_, Random({1, 1, 16, 24})) * ReduceMean(x);
  EXPECT_THAT(OpsFor(Bias(Conv2D(Relu(Depthwise(x)), filter))), Not(Contains(Key(kSeparable))));
}

TEST_F(FuseSeparableConvs, ValuesWithOtherUsersAreKept) {
  const Output x = Image({1, 10, 10, 16});
  const Output expanded = Relu6(Pointwise(x, 32));
  const Output filtered = Relu6(Depthwise(expanded));
  const Output y = Pointwise(filtered, 16);
  EXPECT_THAT(OpsFor(Pointwise(filtered, 32) + expanded),
              testing::AllOf(Contains(Pair(kSeparable, 1)), Contains(Pair("_FusedConv2D", 1))));
  EXPECT_THAT(OpsFor(Pointwise(filtered, 32) + filtered), Not(Contains(Key(kSeparable))));
  EXPECT_THAT(OpsFor(y + ReduceMean(filtered)), Not(Contains(Key(kSeparable))));
  EXPECT_THAT(OpsFor(y + ReduceMean(expanded)),
              testing::AllOf(Contains(Pair(kSeparable, 1)), Contains(Pair("_FusedConv2D", 1))));
}

TEST_F(FuseSeparableConvs, NanIsPropagated) {
  const Output y = Block(Image({1, 9, 9, 8}), 16);
  fed_.data<float>()[100] = std::numeric_limits<float>::quiet_NaN();
  fed_.data<float>()[300] = -std::numeric_limits<float>::infinity();
  OpsFor(y);
}

// Taps outside of the image contribute nothing, whatever the value of the filter there.
TEST_F(FuseSeparableConvs, FiltersMayBeInfinite) {
  const Output x = Image({1, 6, 6, 16});
  Tensor filter = Random({3, 3, 16, 1});
  filter.data<float>()[0] = std::numeric_limits<float>::infinity();
  const Output y = Pointwise(Relu6(Bias(DepthwiseConv2dNative(x, Const(g_, filter)))), 24);
  EXPECT_THAT(OpsFor(y), Contains(Key(kSeparable)));
}

TEST_F(FuseSeparableConvs, TilesOfABatch) {
  Output y = Image({12, 64, 64, 16});
  for (int i = 0; i < 2; ++i) y = Block(y, 16) + y;
  EXPECT_THAT(OpsFor(ReduceMean(y, {1, 2})), Contains(Key(kSeparable)));
}

// Attributes that a graph from elsewhere may have.
TEST_F(FuseSeparableConvs, InvalidArgumentsAreErrors) {
  const Output x = Image({1, 6, 6, 16});
  const auto run = [&](const Output& image, const Shape& expand, const Shape& filter,
                       const Shape& bias, const Shape& out, const Outputs& addends = {}) {
    const auto some = [&](const Shape& shape) { return Const(g_, Random(shape)); };
    const Output y = AddOp(kSeparable,
                           {image, Outputs{some(expand)}, Outputs{some({32})}, some(filter),
                            some(bias), some(out), some({24}), addends},
                           {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                            {"padding", "SAME"},
                            {"activations", std::vector<std::string>{"", "", ""}}});
    if (const absl::Status status = g_.TakeStatus(); !status.ok()) return status;
    Session session = *Session::Create(g_);
    return session.Run({{x, fed_}}, {y}).status();
  };
  const Shape expand({1, 1, 16, 32}), filter({3, 3, 32, 1}), out({1, 1, 32, 24});
  EXPECT_TRUE(run(x, expand, filter, {32}, out).ok());
  EXPECT_FALSE(run(x, {1, 1, 8, 32}, filter, {32}, out).ok());
  EXPECT_FALSE(run(x, {3, 3, 16, 32}, filter, {32}, out).ok());
  EXPECT_FALSE(run(x, expand, {3, 3, 16, 1}, {32}, out).ok());
  EXPECT_FALSE(run(x, expand, {3, 3, 32, 2}, {32}, out).ok());
  EXPECT_FALSE(run(x, expand, filter, {31}, out).ok());
  EXPECT_FALSE(run(x, expand, filter, {1, 32}, out).ok());
  EXPECT_FALSE(run(x, expand, filter, {32}, {1, 1, 16, 24}).ok());
  EXPECT_FALSE(run(x, expand, filter, {32}, out, {x}).ok());
  EXPECT_FALSE(run(x, expand, filter, {32}, out, {x, x}).ok());
  EXPECT_FALSE(run(Reshape(x, {6, 96}), expand, filter, {32}, out).ok());
}

}  // namespace
}  // namespace weir
