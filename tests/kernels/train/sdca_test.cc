#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/recorded.h"

// Stochastic dual coordinate ascent, compared with TensorFlow 2.21.
namespace weir {
namespace {

struct SdcaCall {
  std::string loss;
  float l1 = 0, l2 = 1;
  int partitions = 1;
  std::vector<float> labels = {1, 0, 1};
  std::vector<int64_t> features = {5, 7, 9};
  int64_t width = 3, rows = 3;  // of the dense features
  bool adaptive = false;
};

// Three examples without a common feature, so that their order does not matter.
absl::StatusOr<Tensors> RunSdca(const SdcaCall& call) {
  Graph g;
  const auto floats = [&](const std::vector<float>& values) {
    return Const(g, Tensor::Vector<float>(values));
  };
  const auto longs = [&](const std::vector<int64_t>& values) {
    return Const(g, Tensor::Vector<int64_t>(values));
  };
  Tensor dense = Tensor::Zeros(DT_FLOAT, Shape({call.rows, call.width}));
  for (int64_t i = 0; i < std::min<int64_t>(3, call.rows); ++i)
    dense.data<float>()[i * call.width + i] = static_cast<float>(i + 1);
  const float second = call.loss == "poisson_loss" ? -0.5f : -0.25f;
  const Tensor state = Tensor::Of<float>({3, 4}, {0.5f, 0, 0, 0, second, 0, 0, 0, 0.125f, 0, 0, 0});
  // The oldest op spells its attribute differently.
  NodeBuilder builder(g, call.adaptive ? "SdcaOptimizer" : "SdcaOptimizerV2");
  builder.InputList({longs({0, 0, 1})})
      .InputList({longs(call.features)})
      .InputList({floats({1, 2, 0.5f})})
      .InputList({Const(g, dense)})
      .Input(floats({1, 2, 0.5f}))
      .Input(floats(call.labels))
      .InputList({longs({5, 7, 9})})
      .InputList({floats({0.1f, -0.2f, 0.3f})})
      .InputList({floats({0.5f, 0.25f, -1})})
      .Input(Const(g, state));
  builder.Attr("loss_type", call.loss)
      .Attr("l1", call.l1)
      .Attr("l2", call.l2)
      .Attr(call.adaptive ? "adaptative" : "adaptive", call.adaptive)
      .Attr("num_loss_partitions", call.partitions)
      .Attr("num_inner_iterations", 1);
  Node* const node = builder.Build();
  if (node == nullptr) return g.status();
  return Evaluate(g, {node->output(0), node->output(1), node->output(2)});
}

TEST(Sdca, MatchesTensorFlow) {
  struct Row {
    const char* loss;
    float l1, l2;
    int partitions;
    std::vector<float> state, sparse, dense;
  };
  const std::vector<Row> rows = {
      {"logistic_loss",
       0.0f,
       1.0f,
       1,
       {0.48000428f, 0.59813887f, -0.69314718f, 1.0f, -0.38271207f, 2.1401107f, -1.1246703f, 2.0f,
        0.65207386f, 1.5242937f, -0.18838508f, 0.5f},
       {-0.019995732f, -0.039991464f, -0.13271208f},
       {-0.019995732f, -0.53084832f, 0.79061079f}},
      {"logistic_loss",
       0.1f,
       0.5f,
       2,
       {0.48928595f, 0.55435526f, -0.69314718f, 1.0f, -0.28191173f, 1.5419141f, -1.1246703f, 2.0f,
        0.30427819f, 1.2434181f, -0.18838508f, 0.5f},
       {-0.021428104f, -0.042856209f, -0.063823447f},
       {-0.021428104f, -0.25529379f, 0.53783458f}},
      {"squared_loss",
       0.0f,
       1.0f,
       1,
       {0.54285717f, 0.31999999f, -0.375f, 1.0f, -0.29210526f, 0.42250001f, 0.0625f, 2.0f,
        0.82954544f, 4.0f, -0.05859375f, 0.5f},
       {0.042857144f, 0.085714288f, -0.042105265f},
       {0.042857144f, -0.16842106f, 1.0568181f}},
      {"squared_loss",
       0.1f,
       0.5f,
       2,
       {0.50800002f, 0.24499999f, -0.375f, 1.0f, -0.24714285f, 0.022499999f, 0.0625f, 2.0f,
        0.29736844f, 2.8900001f, -0.05859375f, 0.5f},
       {0.015999999f, 0.031999998f, 0.0057142857f},
       {0.015999999f, 0.022857143f, 0.51710528f}},
      {"hinge_loss",
       0.0f,
       1.0f,
       1,
       {0.63333333f, 0.80000001f, -0.5f, 1.0f, -0.44411764f, 3.3f, -0.5f, 2.0f, 1.0f, 2.0f,
        -0.0625f, 0.5f},
       {0.13333334f, 0.26666668f, -0.19411765f},
       {0.13333334f, -0.7764706f, 1.3125f}},
      {"hinge_loss",
       0.1f,
       0.5f,
       2,
       {0.52916664f, 0.69999999f, -0.5f, 1.0f, -0.28382352f, 2.3f, -0.5f, 2.0f, 0.31388891f, 1.7f,
        -0.0625f, 0.5f},
       {0.058333334f, 0.11666667f, -0.067647062f},
       {0.058333334f, -0.27058825f, 0.56666666f}},
      {"smooth_hinge_loss",
       0.0f,
       1.0f,
       1,
       {0.54285717f, 0.31999999f, -0.375f, 1.0f, -0.39736843f, 2.3f, -0.4375f, 2.0f, 0.82954544f,
        1.75f, -0.05859375f, 0.5f},
       {0.042857144f, 0.085714288f, -0.14736842f},
       {0.042857144f, -0.58947366f, 1.0568181f}},
      {"smooth_hinge_loss",
       0.1f,
       0.5f,
       2,
       {0.50800002f, 0.24499999f, -0.375f, 1.0f, -0.27571428f, 1.3f, -0.4375f, 2.0f, 0.29736844f,
        1.45f, -0.05859375f, 0.5f},
       {0.015999999f, 0.031999998f, -0.051428571f},
       {0.015999999f, -0.20571429f, 0.51710528f}},
      {"poisson_loss",
       0.0f,
       1.0f,
       1,
       {0.38550705f, 1.0214027f, -0.84657359f, 1.0f, -0.63069749f, 3.8310816f, -1.6931472f, 2.0f,
        0.59228939f, 1.5248935f, -0.49591997f, 0.5f},
       {-0.11449297f, -0.22898594f, -0.13069752f},
       {-0.11449297f, -0.52279007f, 0.70093411f}},
      {"poisson_loss",
       0.1f,
       0.5f,
       2,
       {0.46169463f, 1.0498588f, -0.84657359f, 1.0f, -0.52345037f, 2.3236685f, -1.6931472f, 2.0f,
        0.2428762f, 1.2453591f, -0.49591997f, 0.5f},
       {-0.076610774f, -0.15322155f, -0.046900768f},
       {-0.076610774f, -0.18760307f, 0.35362861f}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.loss);
    const auto out =
        RunSdca({.loss = row.loss, .l1 = row.l1, .l2 = row.l2, .partitions = row.partitions});
    ASSERT_TRUE(out.ok()) << out.status();
    const auto near = [](const std::vector<float>& values) {
      return testing::Pointwise(testing::FloatNear(2e-6f), values);
    };
    EXPECT_THAT((*out)[0].flat<float>(), near(row.state));
    EXPECT_THAT((*out)[1].flat<float>(), near(row.sparse));
    EXPECT_THAT((*out)[2].flat<float>(), near(row.dense));
  }
}

TEST(Sdca, AdaptiveStepsVisitAsManyExamples) {
  const auto out = RunSdca({.loss = "squared_loss", .adaptive = true});
  ASSERT_TRUE(out.ok()) << out.status();
  int visited = 0;
  for (int i = 0; i < 3; ++i) visited += (*out)[0].data<float>()[4 * i + 3] > 0 ? 1 : 0;
  EXPECT_GE(visited, 1);
}

TEST(Sdca, RowsAfterTheExamplesAreIgnored) {
  const auto three = RunSdca({.loss = "hinge_loss"}),
             five = RunSdca({.loss = "hinge_loss", .rows = 5});
  ASSERT_TRUE(three.ok() && five.ok()) << five.status();
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT((*five)[i].flat<float>(), testing::ElementsAreArray((*three)[i].flat<float>()));
}

TEST(Sdca, RejectsWhatDoesNotMatch) {
  const auto words = [](const SdcaCall& call) {
    return std::string(RunSdca(call).status().message());
  };
  EXPECT_THAT(words({.loss = "hinge_loss", .labels = {1, 0.5f, 1}}),
              testing::HasSubstr("Only labels of 0.0 or 1.0"));
  EXPECT_THAT(words({.loss = "poisson_loss", .labels = {1, -1, 1}}),
              testing::HasSubstr("Only non-negative labels"));
  EXPECT_THAT(words({.loss = "hinge_loss", .labels = {1, 0}}),
              testing::HasSubstr("Expected 3 example labels but got 2"));
  EXPECT_THAT(words({.loss = "hinge_loss", .features = {5, 8, 9}}),
              testing::HasSubstr("out of valid range: 8"));
  EXPECT_THAT(words({.loss = "hinge_loss", .features = {5, 5, 9}}),
              testing::HasSubstr("Duplicate index in sparse vector"));
  EXPECT_THAT(words({.loss = "hinge_loss", .width = 4}),
              testing::HasSubstr("More dense features than we have parameters for"));
  EXPECT_THAT(words({.loss = "hinge_loss", .rows = 2}),
              testing::HasSubstr("must have a row for each of the 3 examples, but have 2"));
}

TEST(Sdca, ShrinkL1MovesWeightsTowardZero) {
  Graph g;
  g.versions().producer = 1;
  Node* const variable =
      AddNode(g, "VariableV2", {}, {{"dtype", DT_FLOAT}, {"shape", Shape({4})}}, "w");
  ASSERT_NE(variable, nullptr) << g.status();
  const Output w = variable->output(0);
  const Output value = Const<float>(g, {4}, {1, -1, 0.25f, -0.5f});
  Node* const assign = AddNode("Assign", {w, value});
  NodeBuilder builder(g, "SdcaShrinkL1");
  builder.InputList({w}).Attr("l1", 0.25f).Attr("l2", 0.5f);
  Node* const shrink = builder.Build();
  ASSERT_TRUE(g.status().ok()) << g.status();
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {Operation(assign)}, &resources).ok());
  ASSERT_TRUE(EvaluateTargets(g, {Operation(shrink)}, &resources).ok());
  const auto out = Evaluate(g, {w}, &resources);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<float>(), testing::ElementsAre(0.5f, -0.5f, 0, 0));
}

TEST(Sdca, FprintIsFarmHashs) {
  const auto repeated = [](const std::string& s, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += s;
    return out;
  };
  const auto out = RunFed(
      "SdcaFprint", {Tensor::Vector<std::string>({"", "abc", repeated("x", 15), repeated("y", 16),
                                                  repeated("0123456789", 4), repeated("ab", 80),
                                                  repeated("weir", 100)})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<int64_t>(),
              testing::ElementsAre(4463240938071824939, 4374473821787594281, 4143508125394299908,
                                   -6879828354153669051, 8195766718438951253, 6372078740667408537,
                                   -4402676820063434622, 1755095428770705036, -4060723740408526925,
                                   8261645813233478467, -7452414956637583497, 3397550058931662676,
                                   -8245577071150052473, -2695893319667878792));
}

}  // namespace
}  // namespace weir
