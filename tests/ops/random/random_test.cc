#include "weir/ops/random/random.h"

#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/evaluate.h"
#include "tests/ops/random/random_goldens.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math.h"

namespace weir {
namespace {

uint64_t Fnv(const Tensor& t) {
  uint64_t h = 0xcbf29ce484222325u;
  const auto* bytes = static_cast<const uint8_t*>(t.raw());
  for (size_t i = 0; i < t.num_bytes(); ++i) h = (h ^ bytes[i]) * 0x100000001b3u;
  return h;
}

Output Ramp(Graph& g, const Shape& shape) {
  Tensor t(DT_INT32, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<int32_t>()[i] = static_cast<int32_t>(i);
  return Const(g, t);
}

// Distributions with parameters, candidate samplers and shuffled indices; invalid for other ops.
Output ParameterizedNode(Graph& g, const RandomGolden& row, DataType dtype, const Attrs& seeds) {
  const absl::string_view op = row.op;
  const bool stateless = absl::StartsWith(op, "Stateless");
  const auto parameter = [&](std::initializer_list<double> values, DataType type) {
    return Cast(Const<double>(g, values), type);
  };
  std::vector<Arg> args;
  Attrs attrs = stateless ? Attrs() : seeds;
  const Output seed = Const<int64_t>(g, {-3, 4});
  const auto shape = [&](int64_t dims) {
    return Ints(std::vector<int64_t>(row.shape.begin(), row.shape.begin() + dims)).In(g, "shape");
  };
  if (absl::StrContains(op, "Gamma")) {
    args = {shape(stateless ? 2 : 1)};
    if (absl::EndsWith(op, "V2")) args.push_back(seed);
    if (absl::EndsWith(op, "V3")) {
      args.push_back(Const<uint64_t>(g, {3}));
      args.push_back(Const<uint64_t>(g, {5, 6}));
      args.push_back(Const(g, int32_t{1}));
    }
    args.push_back(parameter({0.3, 1, 2.5, 40}, dtype));
  } else if (absl::StrContains(op, "Poisson")) {
    args = {shape(stateless ? 2 : 1)};
    if (stateless) args.push_back(seed);
    args.push_back(parameter({0.5, 3, 11, 200}, DT_DOUBLE));
    attrs.push_back({"dtype", dtype});
  } else if (absl::StrContains(op, "Binomial")) {
    args = {shape(2), seed, parameter({5, 40, 200, 1000}, DT_DOUBLE),
            parameter({0.3, 0.5, 0.9, 0.02}, DT_DOUBLE)};
    attrs.push_back({"dtype", dtype});
  } else if (absl::StrContains(op, "ParameterizedTruncated")) {
    args = {shape(2)};
    if (stateless) args.push_back(seed);
    for (const auto& values : {std::initializer_list<double>{0, 0, 0, 1},
                               {1, 1, 1, 2},
                               {-2, -0.5, 3, -INFINITY},
                               {INFINITY, 0.5, INFINITY, -2}}) {
      args.push_back(parameter(values, dtype));
    }
  } else if (op == "RandomIndexShuffle") {
    args = {Cast(Ramp(g, Shape({100})), dtype), parameter({1, 2, 3}, dtype),
            Cast(Const(g, int32_t{99}), dtype)};
    attrs = {{"rounds", 6}};
  } else if (absl::EndsWith(op, "CandidateSampler")) {
    args = {Const<int64_t>(g, Shape({2, 2}), {1, 3, 0, 2})};
    const bool fixed = absl::StartsWith(op, "Fixed");
    attrs.insert(attrs.end(), {{"num_true", 2},
                               {"num_sampled", row.shape[0]},
                               {"unique", !fixed},
                               {"range_max", fixed ? 6 : 20}});
    if (fixed) {
      attrs.insert(attrs.end(), {{"num_reserved_ids", 1},
                                 {"distortion", 0.75f},
                                 {"unigrams", std::vector<float>{1, 5, 2, 9, 3}}});
    }
  } else {
    return {};
  }
  return AddOp(op, args, attrs);
}

// Adds the node that the golden's row describes, with the seeds of make_random_goldens.py.
Output GoldenNode(Graph& g, const RandomGolden& row) {
  const std::string op = row.op;
  const bool stateless = op.rfind("Stateless", 0) == 0,
             v2 = op.size() > 2 && op.substr(op.size() - 2) == "V2";
  const DataType dtype = DataTypeFromName(std::string(row.dtype) == "float16"   ? "half"
                                          : std::string(row.dtype) == "float32" ? "float"
                                          : std::string(row.dtype) == "float64" ? "double"
                                                                                : row.dtype);
  const Shape shape{absl::MakeConstSpan(row.shape)};
  const Output seed = Const<int64_t>(g, {-3, 4});
  const Attrs seeds = {{"seed", 7}, {"seed2", 11}};
  if (const Output node = ParameterizedNode(g, row, dtype, seeds); node.valid()) return node;
  if (op.find("Multinomial") != std::string::npos) {
    const Output logits = Const<float>(g, Shape({2, 4}), {0, 1, 2, -1, .5f, -INFINITY, .25f, 3});
    const Output count = Const(g, int32_t{9});
    return stateless ? AddOp(op, {logits, count, seed}) : AddOp(op, {logits, count}, seeds);
  }
  if (op == "RandomShuffle") return AddOp(op, {Ramp(g, shape)}, seeds);
  std::vector<Arg> args = {Ints(shape).In(g, "shape")};
  if (v2) {
    args.push_back(Const<uint64_t>(g, {3}));
    args.push_back(Const<uint64_t>(g, {5, 6}));
    args.push_back(Const(g, int32_t{1}));
  } else if (stateless) {
    args.push_back(seed);
  }
  Attrs attrs;
  if (op.find("UniformInt") != std::string::npos) {
    args.push_back(ConstOf(g, dtype, -5));
    args.push_back(ConstOf(g, dtype, (1u << 31) - 100));
  } else {
    attrs = {{"dtype", dtype}};
  }
  if (!stateless) attrs.insert(attrs.end(), seeds.begin(), seeds.end());
  return AddOp(op, args, attrs);
}

// Normal samples are computed with logarithms and sines, some of which a GPU's library rounds
// differently. All other results have the same bits on every device.
bool MayBeRounded(const RandomGolden& row) { return absl::StrContains(row.op, "Normal"); }

Tensor AsDoubles(const Tensor& t) {
  Graph g;
  return (*Evaluate(g, {Cast(Const(g, t), DT_DOUBLE)}))[0];
}

void ExpectRounded(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  const double rounding = want.dtype() == DT_DOUBLE  ? 1e-14
                          : want.dtype() == DT_FLOAT ? 2e-6
                                                     : 2e-2;  // of 16 bits
  const Tensor a = AsDoubles(got), b = AsDoubles(want);
  for (int64_t i = 0; i < b.num_elements(); ++i)
    ASSERT_NEAR(a.data<double>()[i], b.data<double>()[i], rounding) << "element " << i;
}

// If the program has a GPU, it must match too.
TEST(Random, StreamsMatchTensorFlowBitForBitOverTwoRuns) {
  for (const RandomGolden& row : RandomGoldens()) {
    SCOPED_TRACE(testing::Message()
                 << row.op << " " << row.dtype << " of " << row.shape.size() << " dims");
    Graph g;
    const Output node = GoldenNode(g, row);
    ASSERT_TRUE(g.status().ok()) << g.status();
    ResourceMap state, cpu_state;
    for (const uint64_t hash : row.hashes) {
      const absl::StatusOr<Tensors> out = Evaluate(g, {node}, &state);
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ((*out)[0].shape(), Shape(absl::MakeConstSpan(row.shape)));
      const EvaluateOnCpu cpu;
      const absl::StatusOr<Tensors> on_cpu = Evaluate(g, {node}, &cpu_state);
      ASSERT_TRUE(on_cpu.ok()) << on_cpu.status();
      EXPECT_EQ(Fnv((*on_cpu)[0]), hash) << (*on_cpu)[0].ToString(12);
      if (MayBeRounded(row)) {
        ExpectRounded((*out)[0], (*on_cpu)[0]);
      } else {
        EXPECT_EQ(Fnv((*out)[0]), hash) << (*out)[0].ToString(12);
      }
    }
  }
}

TEST(Random, WithoutSeedsEverySessionDrawsItsOwnNumbers) {
  Graph g;
  const Output x = RandomUniform(g, {4});
  std::set<float> seen;
  for (int session = 0; session < 3; ++session) {
    ResourceMap state;
    for (int run = 0; run < 2; ++run) seen.insert((*Evaluate(g, {x}, &state))[0].data<float>()[0]);
  }
  EXPECT_GT(seen.size(), 4u);
}

TEST(Random, UniformWithBoundsAddsTensorFlowsNodes) {
  Graph g;
  g.set_seed(5);
  EXPECT_EQ(RandomUniform(g, {2}, {.min = -1, .max = 3}).name(), "random_uniform:0");
  for (const char* name : {"shape", "min", "max", "RandomUniform", "sub", "mul"}) {
    EXPECT_NE(g.FindNode(absl::StrCat("random_uniform/", name)), nullptr) << name;
  }
  EXPECT_EQ(RandomUniform(g, {2}, {.max = 3}).name(), "random_uniform_1/Mul:0");
  EXPECT_EQ(RandomUniform(g, {2}).name(), "random_uniform_2/RandomUniform:0");
  const Output ints = RandomUniform(g, {2}, {.max = 9, .dtype = DT_INT32}, "dice");
  EXPECT_EQ(ints.name(), "dice:0");
  EXPECT_EQ(ints.node->op_name(), "RandomUniformInt");
  EXPECT_EQ(ints.node->attr<int64_t>("seed"), 5);
  EXPECT_EQ(ints.node->attr<int64_t>("seed2"), 3);
  EXPECT_TRUE(g.status().ok()) << g.status();
}

TEST(Random, StatelessBuildersAddTensorFlowsNodes) {
  Graph g;
  const Output seed = Const<int64_t>(g, {1, 2}, "seed");
  EXPECT_EQ(StatelessRandomNormal(seed, {3}).name(), "stateless_random_normal:0");
  EXPECT_NE(g.FindNode("stateless_random_normal/StatelessRandomNormalV2"), nullptr);
  EXPECT_NE(g.FindNode("stateless_random_normal/StatelessRandomNormalV2/alg"), nullptr);
  EXPECT_EQ(StatelessRandomUniform(seed, {3}, {.dtype = DT_INT32}).node->op_name(),
            "StatelessRandomUniformFullIntV2");
  const auto out =
      Evaluate(g, {StatelessRandomUniform(seed, {3}), StatelessTruncatedNormal(seed, {3})});
  ASSERT_TRUE(out.ok()) << out.status();
}

TEST(Random, PhiloxIsTheSelectedGenerator) {
  Graph g;
  const auto out = Evaluate(g, {Output(AddNode(g, "StatelessRandomGetAlg", {}))});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<int32_t>(), 1);
}

TEST(Random, ShapesAreInferredFromConstants) {
  Graph g;
  EXPECT_EQ(RandomNormal(g, {2, 3}).shape(), Shape({2, 3}));
  EXPECT_EQ(Multinomial(Const<float>(g, Shape({2, 4}), {0, 0, 0, 0, 0, 0, 0, 0}), 5).shape(),
            Shape({2, 5}));
}

absl::Status RunError(Graph& g, Output node) {
  if (!g.status().ok()) return g.status();
  return Evaluate(g, {node}).status();
}

TEST(Random, BadArgumentsAreInvalid) {
  const auto expect = [](absl::Status status, absl::string_view part) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_NE(status.message().find(std::string(part)), absl::string_view::npos) << status;
  };
  {
    Graph g;
    const Output shape = Placeholder(g, DT_INT32, {1});
    const Output node = AddOp("RandomUniform", {shape}, {{"dtype", DT_FLOAT}});
    expect(Evaluate(g, {{shape, Tensor::Vector<int32_t>({-2})}}, {node}).status(),
           "Dimension -2 must be >= 0");
  }
  {
    Graph g;
    expect(RunError(g, RandomUniform(g, {2}, {.min = 3, .max = 3, .dtype = DT_INT32})),
           "Need minval < maxval, got 3 >= 3");
  }
  {
    Graph g;
    expect(RunError(g, RandomUniform(g, {2}, {.dtype = DT_INT32})), "needs options.max");
  }
  {
    Graph g;
    const Output alg = Const(g, int32_t{2});
    expect(RunError(g, AddOp("StatelessRandomUniformV2",
                             {Const<int32_t>(g, {2}), Const<uint64_t>(g, {3}),
                              Const<uint64_t>(g, {5, 6}), alg})),
           "Unsupported algorithm id: 2");
  }
  {
    Graph g;
    const Output logits = Placeholder(g, DT_FLOAT);
    const Output node = AddOp("Multinomial", {logits, Const(g, int32_t{3})});
    expect(Evaluate(g, {{logits, Tensor(DT_FLOAT, Shape({2, 0}))}}, {node}).status(),
           "num_classes should be positive");
    expect(Evaluate(g, {{logits, Tensor(DT_FLOAT, Shape({2}))}}, {node}).status(),
           "logits should be a matrix");
  }
}

TEST(Random, EmptyRangeIsValidForAnEmptyTensor) {
  Graph g;
  const auto out = Evaluate(g, {RandomUniform(g, {0, 2}, {.min = 3, .max = 3, .dtype = DT_INT64})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].shape(), Shape({0, 2}));
}

TEST(Random, ShuffleKeepsStringsAndRows) {
  Graph g;
  const Output words = Const(g, std::vector<std::string>{"a", "b", "c", "d"});
  const auto out = Evaluate(g, {RandomShuffle(words, 3), RandomShuffle(Ramp(g, {1, 3}), 3)});
  ASSERT_TRUE(out.ok()) << out.status();
  const auto shuffled = (*out)[0].flat<std::string>();
  EXPECT_EQ(std::set<std::string>(shuffled.begin(), shuffled.end()),
            (std::set<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ((*out)[1].shape(), Shape({1, 3}));
}

TEST(Random, NormalsHaveTheMomentsOfANormalDistribution) {
  Graph g;
  const auto out = Evaluate(
      g, {RandomNormal(g, {100000}, {.seed = 1}), TruncatedNormal(g, {100000}, {.seed = 1})});
  ASSERT_TRUE(out.ok()) << out.status();
  const double deviations[] = {1, 0.87962566};
  for (int k = 0; k < 2; ++k) {
    double sum = 0, squares = 0;
    for (const float x : (*out)[k].flat<float>()) {
      sum += x;
      squares += x * x;
      if (k == 1) {
        EXPECT_LT(std::abs(x), 2);
      }
    }
    EXPECT_NEAR(sum / 1e5, 0, 0.015);
    EXPECT_NEAR(std::sqrt(squares / 1e5), deviations[k], 0.01);
  }
}

}  // namespace
}  // namespace weir
