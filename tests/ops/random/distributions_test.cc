#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/nn/candidate.h"
#include "weir/tests/evaluate.h"

// Gradients checked to order 1 by tests: RandomGamma, StatelessParameterizedTruncatedNormal,
// StatelessRandomGammaV2, StatelessRandomGammaV3.

// Candidate samplers, generators in variables, and gradients of samples.
namespace weir {
namespace {

uint64_t Fnv(const Tensor& t) {
  uint64_t h = 0xcbf29ce484222325u;
  const auto* bytes = static_cast<const uint8_t*>(t.raw());
  for (size_t i = 0; i < t.num_bytes(); ++i) h = (h ^ bytes[i]) * 0x100000001b3u;
  return h;
}

// The values that TensorFlow returns for a generator in state (1, 2, 3), over three runs, and the
// state after them.
TEST(Random, StatefulBinomialAdvancesItsGenerator) {
  Graph g;
  const Output handle(AddNode(g, "VarHandleOp", {}, {{"dtype", DT_INT64}, {"shape", Shape({3})}}));
  Node* init = AddNode("AssignVariableOp", {handle, Const<int64_t>(g, {1, 2, 3})});
  const Output x =
      AddOp("StatefulRandomBinomial", {handle, Const(g, int64_t{1}), Const<int32_t>(g, {5}),
                                       Const<double>(g, 100.0), Const<double>(g, 0.25)});
  const Output state = AddOp("ReadVariableOp", {handle}, {{"dtype", DT_INT64}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {Operation(init)}, &resources).ok());
  for (const std::vector<int64_t>& want :
       {std::vector<int64_t>{28, 25, 26, 29, 35}, {23, 24, 21, 31, 26}, {28, 26, 27, 24, 24}}) {
    const absl::StatusOr<Tensors> out = Evaluate(g, {x}, &resources);
    ASSERT_TRUE(out.ok()) << out.status();
    for (int64_t i = 0; i < 5; ++i) EXPECT_EQ((*out)[0].data<int64_t>()[i], want[i]) << i;
  }
  const absl::StatusOr<Tensors> after = Evaluate(g, {state}, &resources);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ((*after)[0].data<int64_t>()[0], 307201);
}

// Also for a result without elements, for which the generator is not used.
TEST(Random, BinomialOfAGeneratorNamesAnAlgorithmThatIsNoScalar) {
  for (const int32_t samples : {0, 5}) {
    Graph g;
    const Output handle(
        AddNode(g, "VarHandleOp", {}, {{"dtype", DT_INT64}, {"shape", Shape({3})}}));
    const Output x = AddOp("StatefulRandomBinomial",
                           {handle, Const<int64_t>(g, {1}), Const<int32_t>(g, {samples}),
                            Const<double>(g, 100.0), Const<double>(g, 0.25)});
    ASSERT_TRUE(g.status().ok()) << g.status();
    ResourceMap resources;
    const absl::Status status = Evaluate(g, {x}, &resources).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << samples;
    EXPECT_NE(status.message().find("the algorithm, must have shape [], not [1]"),
              absl::string_view::npos)
        << samples << ": " << status;
  }
}

// The values that TensorFlow returns for a generator in state (1, 2, 3), over two runs of seven
// samples.
TEST(Random, GeneratorsInVariablesMatchTensorFlow) {
  const struct {
    const char* op;
    DataType type;
    uint64_t hashes[2];
  } rows[] = {
      {"StatefulUniform", DT_HALF, {0x613c5518893df047u, 0xdf82c6f3cd2e6ffeu}},
      {"StatefulStandardNormalV2", DT_HALF, {0x82573bc13ea9741au, 0x6f78e634c9a9760du}},
      {"StatefulTruncatedNormal", DT_BFLOAT16, {0x12180aa571da730eu, 0x1df9d3360c372124u}},
      {"StatefulUniform", DT_BFLOAT16, {0xae4e1d399ef1a3c1u, 0x681d7a6a0f39c8aau}},
      {"StatefulUniform", DT_FLOAT, {0xf818970b8e5b5703u, 0xf6c03ec9e1451a27u}},
      {"StatefulStandardNormalV2", DT_FLOAT, {0x56d36f84337cc87au, 0x42065e4e866ec1e8u}},
      {"StatefulTruncatedNormal", DT_FLOAT, {0x3cf4c95d34507f6eu, 0x6b1781777fa64adfu}},
      {"StatefulUniform", DT_DOUBLE, {0x07f43f640ec71e77u, 0xb66d1df07b35f8a5u}},
      {"StatefulStandardNormalV2", DT_DOUBLE, {0x25dc98d9c6d43f62u, 0xb4cb1e31769f9dfbu}},
      {"StatefulTruncatedNormal", DT_DOUBLE, {0xf5e4c5abb8e98e39u, 0xf2dbb99416253130u}},
      {"StatefulUniformInt", DT_INT32, {0xf5ace2b85fe512feu, 0xfe89b218303e22d1u}},
      {"StatefulUniformInt", DT_INT64, {0x520abf273e240202u, 0x757fb242624ab348u}},
      {"StatefulUniformFullInt", DT_INT32, {0x3672215a18b00952u, 0x535de5dfd72c12fbu}},
      {"StatefulUniformFullInt", DT_UINT64, {0xdcc975757e4d2e3fu, 0xb4d99af5285bbf85u}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(testing::Message() << row.op << " " << DataTypeName(row.type));
    Graph g;
    const Output handle(
        AddNode(g, "VarHandleOp", {}, {{"dtype", DT_INT64}, {"shape", Shape({3})}}));
    Node* init = AddNode("AssignVariableOp", {handle, Const<int64_t>(g, {1, 2, 3})});
    std::vector<Arg> args = {handle, Const(g, int64_t{1}), Const<int32_t>(g, {7})};
    Attrs attrs = {{"dtype", row.type}};
    if (std::string(row.op) == "StatefulUniformInt") {
      args.push_back(ConstOf(g, row.type, -5));
      args.push_back(ConstOf(g, row.type, (1u << 31) - 100));
      attrs.clear();
    }
    const Output x = AddOp(row.op, args, attrs);
    const Output state =
        AddOp("RngReadAndSkip", {handle, Const(g, int32_t{1}), Const(g, uint64_t{0})});
    ASSERT_TRUE(g.status().ok()) << g.status();
    ResourceMap resources;
    ASSERT_TRUE(EvaluateTargets(g, {Operation(init)}, &resources).ok());
    for (const uint64_t hash : row.hashes) {
      const absl::StatusOr<Tensors> out = Evaluate(g, {x}, &resources);
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ(Fnv((*out)[0]), hash) << (*out)[0].ToString(12);
    }
    const absl::StatusOr<Tensors> after = Evaluate(g, {state}, &resources);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ((*after)[0].data<int64_t>()[0], 1 + 2 * 7 * 256);
    EXPECT_EQ((*after)[0].data<int64_t>()[2], 3);
  }
}

TEST(Random, GeneratorsSkipAndRejectOtherAlgorithms) {
  Graph g;
  const Output handle(AddNode(g, "VarHandleOp", {}, {{"dtype", DT_INT64}, {"shape", Shape({3})}}));
  Node* init = AddNode("AssignVariableOp", {handle, Const<int64_t>(g, {1, 2, 3})});
  Node* skip = AddNode("RngSkip", {handle, Const(g, int64_t{1}), Const(g, int64_t{5})});
  const Output state =
      AddOp("RngReadAndSkip", {handle, Const(g, int32_t{1}), Const(g, uint64_t{7})});
  const Output other =
      AddOp("StatefulUniform", {handle, Const(g, int64_t{9}), Const<int32_t>(g, {7})});
  const Output never =
      AddOp("NonDeterministicInts", {Const<int32_t>(g, {3})}, {{"dtype", DT_UINT64}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(Evaluate(g, {state}).status().code(), absl::StatusCode::kNotFound);
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {Operation(init)}, &resources).ok());
  ASSERT_TRUE(EvaluateTargets(g, {Operation(skip)}, &resources).ok());
  for (const int64_t counter : {1281, 3073}) {
    const absl::StatusOr<Tensors> out = Evaluate(g, {state}, &resources);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].data<int64_t>()[0], counter);
  }
  EXPECT_EQ(Evaluate(g, {other}, &resources).status().code(), absl::StatusCode::kInvalidArgument);
  const absl::StatusOr<Tensors> a = Evaluate(g, {never}), b = Evaluate(g, {never});
  ASSERT_TRUE(a.ok() && b.ok()) << a.status();
  EXPECT_FALSE(IdenticalTensors((*a)[0], (*b)[0]));
}

// In a graph whose version still allows it.
TEST(Random, RandomPoissonMatchesRandomPoissonV2) {
  Graph g;
  g.versions().producer = 24;
  const Output shape = Const<int32_t>(g, {9}), rate = Const(g, std::vector<double>{0.5, 20});
  const Attrs seeds = {{"seed", 7}, {"seed2", 11}};
  const Output first = AddOp("RandomPoisson", {shape, rate}, seeds);
  Attrs typed = seeds;
  typed.push_back({"dtype", DT_DOUBLE});
  const Output second = AddOp("RandomPoissonV2", {shape, rate}, typed);
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> out = Evaluate(g, {first, second});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(IdenticalTensors((*out)[0], (*out)[1]));
}

// The expected counts of the classes 1, 3, 0, 2 that TensorFlow returns in two runs.
TEST(Random, CandidateSamplersReturnExpectedCounts) {
  const struct {
    const char* op;
    std::vector<float> runs[2];
  } rows[] = {
      {"UniformCandidateSampler",
       {{0.486657917f, 0.486657917f, 0.486657917f, 0.486657917f},
        {0.431199908f, 0.431199908f, 0.431199908f, 0.431199908f}}},
      {"LogUniformCandidateSampler",
       {{0.911934912f, 0.72583127f, 0.987622082f, 0.815000057f},
        {0.792400599f, 0.567122936f, 0.941678286f, 0.664403915f}}},
      {"LearnedUnigramCandidateSampler",
       {{0.431199908f, 0.431199908f, 0.431199908f, 0.431199908f},
        {0.648004353f, 0.648004353f, 0.648004353f, 0.648004353f}}},
  };
  for (const auto& row : rows) {
    Graph g;
    Node* node = AddNode(row.op, {Const<int64_t>(g, Shape({2, 2}), {1, 3, 0, 2})},
                         {{"num_true", 2},
                          {"num_sampled", 9},
                          {"unique", true},
                          {"range_max", 20},
                          {"seed", 7},
                          {"seed2", 11}});
    ASSERT_TRUE(g.status().ok()) << g.status();
    ResourceMap resources;
    for (const std::vector<float>& want : row.runs) {
      const absl::StatusOr<Tensors> out = Evaluate(g, {node->output(1)}, &resources);
      ASSERT_TRUE(out.ok()) << out.status();
      for (int i = 0; i < 4; ++i) EXPECT_FLOAT_EQ((*out)[0].data<float>()[i], want[i]) << row.op;
    }
  }
}

TEST(Random, AllCandidateSamplerReturnsEveryClassOnce) {
  Graph g;
  Node* node = AddNode("AllCandidateSampler", {Const<int64_t>(g, Shape({1, 2}), {1, 3})},
                       {{"num_true", 2}, {"num_sampled", 4}, {"unique", true}});
  const absl::StatusOr<Tensors> out =
      Evaluate(g, {node->output(0), node->output(1), node->output(2)});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ((*out)[0].data<int64_t>()[i], i);
  EXPECT_EQ((*out)[1].data<float>()[1], 1);
  EXPECT_EQ((*out)[2].data<float>()[3], 1);
}

TEST(Random, AccidentalHitsAreFound) {
  Graph g;
  const AccidentalHits hits = ComputeAccidentalHits(
      Const<int64_t>(g, Shape({3, 2}), {7, 1, 2, 9, 5, 5}), Const<int64_t>(g, {5, 7, 7, 8}), 2);
  const absl::StatusOr<Tensors> out = Evaluate(g, {hits.indices, hits.ids, hits.weights});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ((*out)[0].shape(), Shape({3}));
  const int64_t rows[] = {0, 2, 2}, ids[] = {2, 0, 0};
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*out)[0].IntAt(i), rows[i]);
    EXPECT_EQ((*out)[1].IntAt(i), ids[i]);
    EXPECT_EQ((*out)[2].data<float>()[i], -std::numeric_limits<float>::max());
  }
}

// The quantile of a sample is constant when alpha changes.
TEST(Random, GammaGradientsMatchFiniteDifferences) {
  const std::vector<double> alpha = {0.01, 0.3, 1, 2.5, 40, 1e3},
                            sample = {1e-3, 0.2, 1.7, 4., 38, 1020};
  // TensorFlow's values.
  const double want[] = {0.635413800719, 1.21203726129, 1.51649951196,
                         1.33960819537,  0.97864269564, 1.01010232923};
  Graph g;
  const Output x = AddOp("RandomGammaGrad", {Const(g, alpha), Const(g, sample)});
  const absl::StatusOr<Tensors> out = Evaluate(g, {x});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int i = 0; i < 6; ++i) EXPECT_NEAR((*out)[0].data<double>()[i], want[i], 1e-9) << i;
}

TEST(Random, SamplesHaveGradientsWithRespectToTheirParameters) {
  Graph g;
  const Output alpha = Const(g, std::vector<double>{0.7, 2, 5});
  const Attrs seeds = {{"seed", 7}, {"seed2", 11}};
  const Output stateful = AddOp("RandomGamma", {Const<int32_t>(g, {2}), alpha}, seeds);
  const Output stateless = AddOp("StatelessRandomGammaV2",
                                 {Const<int32_t>(g, {2, 3}), Const<int64_t>(g, {1, 2}), alpha});
  for (const Output& sample : {stateful, stateless}) {
    const Outputs grads = DenseGradients({sample}, {alpha});
    const Output each = AddOp("RandomGammaGrad", {alpha, sample});
    ASSERT_TRUE(g.status().ok()) << g.status();
    const absl::StatusOr<Tensors> out = Evaluate(g, {grads[0], each});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int i = 0; i < 3; ++i) {
      const double* d = (*out)[1].data<double>();
      EXPECT_NEAR((*out)[0].data<double>()[i], d[i] + d[i + 3], 1e-12);
    }
  }
}

// A truncated normal sample moves with a bound, the more the nearer it is. The derivative is
// checked against differences of the formula for a fixed quantile. For the mean and the deviation,
// TensorFlow's derivative is that of a sample whose bounds move too.
TEST(Random, TruncatedNormalGradientsMatchFiniteDifferences) {
  const double parameters[] = {0.2, 1.5, -1, 2};
  const auto cdf = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  Graph g;
  Outputs inputs;
  for (const double p : parameters) inputs.push_back(Const<double>(g, p));
  const Output sample = AddOp("StatelessParameterizedTruncatedNormal",
                              {Const<int32_t>(g, {1}), Const<int64_t>(g, {1, 2}), inputs[0],
                               inputs[1], inputs[2], inputs[3]});
  Outputs fetches = DenseGradients({sample}, {inputs[0], inputs[1], inputs[2], inputs[3]});
  fetches.push_back(sample);
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> out = Evaluate(g, fetches);
  ASSERT_TRUE(out.ok()) << out.status();
  const double x = (*out)[4].data<double>()[0];
  const auto quantile = [&](const double* p, double at) {
    const double low = cdf((p[2] - p[0]) / p[1]), high = cdf((p[3] - p[0]) / p[1]);
    return (cdf((at - p[0]) / p[1]) - low) / (high - low);
  };
  constexpr double kStep = 1e-6;
  const double density =
      (quantile(parameters, x + kStep) - quantile(parameters, x - kStep)) / (2 * kStep);
  EXPECT_NEAR((*out)[0].data<double>()[0], 1, 1e-12);
  EXPECT_NEAR((*out)[1].data<double>()[0], (x - parameters[0]) / parameters[1], 1e-12);
  for (int k = 2; k < 4; ++k) {
    double above[4], below[4];
    std::copy_n(parameters, 4, above);
    std::copy_n(parameters, 4, below);
    above[k] += kStep;
    below[k] -= kStep;
    const double slope = (quantile(above, x) - quantile(below, x)) / (2 * kStep);
    EXPECT_NEAR((*out)[k].data<double>()[0], -slope / density, 1e-6) << k;
  }
}

}  // namespace
}  // namespace weir
