#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"

// Fusion of elementwise neighbors, and of reductions after them: the ops that a traced step runs,
// and that not a bit of the results changes, except for the rounding of sums.
namespace weir {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr double kRounding = 5e-5;  // of sums of floats; everything else agrees to the bit

class FuseElementwise : public testing::Test {
 protected:
  Output Input(const Shape& shape, DataType dtype = DT_FLOAT) {
    const Output x = Placeholder(g_, dtype, shape);
    Tensor t(dtype, shape);
    std::uniform_real_distribution<float> values(-2, 2);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      if (dtype == DT_FLOAT) {
        t.data<float>()[i] = values(random_);
      } else if (dtype == DT_DOUBLE) {
        t.data<double>()[i] = values(random_);
      } else if (dtype == DT_BFLOAT16) {
        t.data<bfloat16>()[i] = bfloat16(values(random_));
      } else if (dtype == DT_HALF) {
        t.data<half>()[i] = half(values(random_));
      } else {
        t.SetIntAt(i, static_cast<int64_t>(values(random_) * 10));
      }
    }
    feeds_.emplace_back(x, t);
    return x;
  }

  Tensors Run(const Outputs& ys, SessionOptions options, std::vector<NodeTrace>* trace = nullptr) {
    Session session = *Session::Create(g_, std::move(options));
    auto out = session.Run(feeds_, ys, {}, {.trace = trace});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *out : Tensors(ys.size());
  }
  // Returns how often each op runs. Checks that the values equal those without fusion, with any
  // number of threads, up to `rounding`: relative, and absolute for values below 1.
  std::map<std::string, int> OpsFor(const Outputs& ys, double rounding = 0) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const Tensors want = Run(ys, {.num_threads = 2, .disable = {"fusion"}});
    std::vector<NodeTrace> trace;
    for (const int threads : {1, 3}) {
      trace.clear();
      const Tensors got = Run(ys, {.num_threads = threads}, &trace);
      for (size_t i = 0; i < ys.size(); ++i) {
        if (rounding == 0) {
          EXPECT_TRUE(IdenticalTensors(got[i], want[i])) << "result " << i;
        } else {
          ExpectClose(got[i], want[i], rounding);
        }
      }
    }
    std::map<std::string, int> ops;
    for (const NodeTrace& node : trace) ++ops[node.op];
    return ops;
  }

  static double At(const Tensor& t, int64_t i) {
    switch (t.dtype()) {
      case DT_FLOAT:
        return t.data<float>()[i];
      case DT_DOUBLE:
        return t.data<double>()[i];
      case DT_HALF:
        return static_cast<double>(t.data<half>()[i]);
      default:
        return static_cast<double>(t.data<bfloat16>()[i]);
    }
  }
  static void ExpectClose(const Tensor& got, const Tensor& want, double rounding) {
    ASSERT_EQ(got.shape(), want.shape());
    ASSERT_EQ(got.dtype(), want.dtype());
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      const double w = At(want, i), g = At(got, i);
      if (std::isnan(w)) {
        EXPECT_TRUE(std::isnan(g)) << g << " at " << i;
      } else if (std::isinf(w)) {
        EXPECT_EQ(g, w) << "at " << i;
      } else {
        EXPECT_NEAR(g, w, rounding * std::max(1.0, std::abs(w))) << "at " << i;
      }
    }
  }

  Graph g_;
  Feeds feeds_;
  std::mt19937 random_{17};
};

TEST_F(FuseElementwise, AChainOfOpsIsOneNode) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_BFLOAT16, DT_INT32}) {
    const Output x = Input({7, 1031}, dtype);
    Output y = Square(x) + x;
    y = Maximum(-y, x) - x;
    if (dtype != DT_INT32) y = Sigmoid(y) * Tanh(x);
    EXPECT_THAT(OpsFor({y}), ElementsAre(Pair("_FusedElementwise", 1))) << DataTypeName(dtype);
  }
}

// As models of language write it: with a power for the cube.
TEST_F(FuseElementwise, GeluIsOneNode) {
  const Output x = Input({40, 70});
  const Output by_erf = x * (0.5f * (1.f + Erf(x / Sqrt(Const(g_, 2.f)))));
  const Output cubic = std::sqrt(2 / M_PI) * (x + 0.044715 * Pow(x, 3.f));
  const Output by_tanh = x * (0.5f * (1.f + Tanh(cubic)));
  for (const Output& y : {by_erf, by_tanh}) {
    EXPECT_THAT(OpsFor({y}), ElementsAre(Pair("_FusedElementwise", 1)));
    EXPECT_THAT(OpsFor(DenseGradients({y}, {x})), ElementsAre(Pair("_FusedElementwise", 1)));
  }
}

// Consecutive cheap ops keep their values in registers (kernels/math/register_fusion.h), eight
// vectors of elements at a time: each op with a scalar and with elements on either side, values
// with other users, and ops that cannot be stages in between.
TEST_F(FuseElementwise, PipelinesOfCheapOpsReturnTheSameBits) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
    for (const int64_t n : {2, 63, 64, 128, 129, 1000, 4096, 20011}) {
      const Output x = Input({n}, dtype), a = Input({n}, dtype), b = Input({n}, dtype),
                   number = Input({}, dtype);
      Output y = number - (x * number + a);
      y = a / (b - y);
      y = Maximum(number, Minimum(y / number, b));
      y = SquaredDifference(Abs(-y), number);
      const Output kept = Sqrt(y) + number;
      y = Square(Reciprocal(kept)) * Rsqrt(kept);
      y = Relu6(Relu(a + y)) * kept;
      const Output also = y + number;
      const Output z = Tanh(also) - Minimum(b, also * also);
      const auto ops = OpsFor({z});
      EXPECT_TRUE(n < 64 || ops == (std::map<std::string, int>{{"_FusedElementwise", 1}})) << n;
      OpsFor({also, z, Maximum(z, number) * z});
      feeds_.clear();
    }
  }
}

// Gradients of the ops of a pipeline are stages themselves.
TEST_F(FuseElementwise, PipelinesOfGradientsReturnTheSameBits) {
  const Output x = Input({9, 300});
  const Output y = Relu(Sigmoid(Tanh(x * 2.f)) - 0.4f) * Relu6(x);
  OpsFor(DenseGradients({ReduceSum(y)}, {x}), kRounding);
}

TEST_F(FuseElementwise, ArgumentsOfOtherShapesAreBroadcast) {
  const Output x = Input({5, 700, 3});
  const Output y = (x * Input({}) + Input({3})) * Input({700, 1}) - Input({5, 1, 1});
  EXPECT_THAT(OpsFor({y}), ElementsAre(Pair("_FusedElementwise", 1)));
  // An operand of a smaller shape is computed before.
  const Output z = x + Rsqrt(Square(Input({3})) + 1.f);
  EXPECT_THAT(OpsFor({z * x}), ElementsAre(Pair("_FusedElementwise", 2)));
}

// A broadcast gradient is never stored as a tensor: its users take the input of the broadcast, if
// all of them are regions.
TEST_F(FuseElementwise, BroadcastsBecomeArguments) {
  const Output x = Input({64, 48}), rows = Input({64, 1}), one = Input({1, 1});
  const Output spread = Tile(rows, {1, 48});
  EXPECT_THAT(OpsFor({spread * x}), ElementsAre(Pair("_FusedElementwise", 1)));
  EXPECT_THAT(OpsFor({Square(spread * x), Cumsum(spread - x, Const(g_, 0))}),
              ElementsAre(Pair("Cumsum", 1), Pair("_FusedElementwise", 2)));
  const Output everywhere = BroadcastTo(one, {64, 48});
  EXPECT_THAT(OpsFor({everywhere * x + spread}), ElementsAre(Pair("_FusedElementwise", 1)));
  EXPECT_THAT(OpsFor({spread * Input({48})}), ElementsAre(Pair("_FusedElementwise", 1)));
  // The arguments determine the shape of the result.
  EXPECT_THAT(OpsFor({everywhere * spread}),
              ElementsAre(Pair("Tile", 1), Pair("_FusedElementwise", 1)));
  // Other nodes need it as a tensor.
  EXPECT_THAT(OpsFor({spread * x, spread}),
              ElementsAre(Pair("Tile", 1), Pair("_FusedElementwise", 1)));
  // It repeats more than single elements.
  EXPECT_THAT(OpsFor({Square(Tile(Input({32, 1}), {2, 48}) * x)}),
              ElementsAre(Pair("Tile", 1), Pair("_FusedElementwise", 1)));
  // The gradient of the mean, as in every training step.
  const Output loss = ReduceMean(Square(x));
  EXPECT_EQ(OpsFor({Gradients({loss}, {x})[0].dense()}).count("Tile"), 0u);
}

// The gradient of a mean, as Python builds it: broadcast, then divided by a count, which may be
// fed.
TEST_F(FuseElementwise, OpsMoveBeforeBroadcasts) {
  const Output x = Input({64, 48}), rows = Input({64, 1}), count = Input({}), two = Const(g_, 2.f);
  for (const Output& spread : {Tile(rows, {1, 48}), BroadcastTo(rows, {64, 48})}) {
    const Output mean = spread / count, variance = Input({64, 1}) * (two * (spread / 48.f));
    EXPECT_THAT(OpsFor({mean * x}), ElementsAre(Pair("RealDiv", 1), Pair("_FusedElementwise", 1)));
    // Moves before the last one; the small ops on the way become one node.
    EXPECT_THAT(OpsFor({Cumsum(Square(-variance), 1)}),
                UnorderedElementsAre(Pair("Cumsum", 1), Pair(spread.node->op_name(), 1),
                                     Pair("_FusedElementwise", 1)));
  }
  const Output spread = Tile(rows, {1, 48});
  // With an operand of the full size, and with one that is larger than the input of the broadcast.
  for (const Output& other : {x, Input({48})}) {
    EXPECT_THAT(OpsFor({Cumsum(spread - other, 1)}),
                ElementsAre(Pair("Cumsum", 1), Pair("_FusedElementwise", 1)));
  }
  EXPECT_THAT(OpsFor({Cumsum(spread * spread, 1)}),
              ElementsAre(Pair("Cumsum", 1), Pair("Mul", 1), Pair("Tile", 1)));
  // A broadcast value that is needed itself, and one whose user is fetched after the broadcast has
  // sunk.
  EXPECT_THAT(OpsFor({spread / count, spread}), ElementsAre(Pair("RealDiv", 1), Pair("Tile", 1)));
  EXPECT_THAT(OpsFor({spread / count}), ElementsAre(Pair("RealDiv", 1), Pair("Tile", 1)));
  // A Tile that repeats more than single elements sinks in the same way.
  EXPECT_THAT(OpsFor({Cumsum(Square(Tile(Input({8, 3}), {8, 16})), 0)}),
              ElementsAre(Pair("Cumsum", 1), Pair("Square", 1), Pair("Tile", 1)));
}

TEST_F(FuseElementwise, AFewTermsOfAddNAreASum) {
  for (const DataType dtype : {DT_FLOAT, DT_HALF, DT_INT64}) {
    const Output x = Input({33, 65}, dtype), y = Input({33, 65}, dtype);
    EXPECT_THAT(OpsFor({AddN({Square(x), y}) * x}), ElementsAre(Pair("_FusedElementwise", 1)));
  }
  const Output x = Input({33, 65}), y = Input({33, 65});
  EXPECT_THAT(OpsFor({-AddN({Square(x), y, Square(-x), y, x * y})}),
              ElementsAre(Pair("_FusedElementwise", 1)));
  // As an additional result.
  const Output sum = AddN({Square(x), y, x});
  EXPECT_THAT(OpsFor({Cumsum(sum, 0), Tanh(sum) * x}),
              ElementsAre(Pair("Cumsum", 1), Pair("_FusedElementwise", 1)));
  EXPECT_THAT(OpsFor({-AddN(Outputs(9, Square(x)))}), Contains(Pair("AddN", 1)));
  Output y9 = x;
  for (int i = 0; i < 20; ++i) y9 = AddN({Square(y9), y9, x, y, x}) * 0.01f;
  EXPECT_LE(OpsFor({y9})["_FusedElementwise"], 3);
}

TEST_F(FuseElementwise, ABiasIsASum) {
  const Output x = Input({64, 32}), b = Input({32});
  EXPECT_THAT(OpsFor({Tanh(BiasAdd(Square(x), b))}), ElementsAre(Pair("_FusedElementwise", 1)));
}

TEST_F(FuseElementwise, ABiasOfAnotherLengthIsAnError) {
  const Output x = Input({2, 1024}), b = Placeholder(g_, DT_FLOAT, Shape({-1}));
  feeds_.emplace_back(b, Tensor::Vector<float>({1.f}));
  const Output y = Tanh(BiasAdd(Square(x), b));
  Session session = *Session::Create(g_, {.num_threads = 1});
  EXPECT_TRUE(absl::IsInvalidArgument(session.Run(feeds_, {y}).status()));
}

TEST_F(FuseElementwise, AttributesOfOpsAreKept) {
  const Output x = Input({40, 40});
  const Output leaky = AddOp("LeakyRelu", {x}, {{"alpha", 0.3f}});
  const Output other = AddOp("LeakyRelu", {leaky * x}, {{"alpha", 0.01f}});
  EXPECT_THAT(OpsFor({other}), ElementsAre(Pair("_FusedElementwise", 1)));
}

TEST_F(FuseElementwise, SharedValuesAreComputedOnce) {
  const Output x = Input({2000});
  const Output shared = Tanh(x);
  // Two results that share a value: it is an additional result of the first region, and an argument
  // of the second.
  EXPECT_THAT(OpsFor({Square(shared) + x, -(shared * x)}),
              ElementsAre(Pair("_FusedElementwise", 2)));
  // A value that is used twice within one result.
  EXPECT_THAT(OpsFor({shared * Square(shared)}), ElementsAre(Pair("_FusedElementwise", 1)));
  // A value that is fetched as well, and one that another node waits for.
  EXPECT_THAT(OpsFor({shared, Square(-shared)}), ElementsAre(Pair("_FusedElementwise", 1)));
  const Output a = Sigmoid(x), b = a * a;
  Output late;
  {
    const ControlDependencies after(g_, {a});
    late = ReduceSum(x);
  }
  EXPECT_THAT(OpsFor({Tanh(b), late}), Contains(Pair("_FusedElementwise", 1)));
}

// One more multiplication costs less than a tensor that is written and read again.
TEST_F(FuseElementwise, CheapValuesAreRecomputedByEachUser) {
  const Output x = Input({700, 600}), scale = Input({700, 1}), y = Input({700, 600});
  const Output product = x * scale;
  EXPECT_THAT(OpsFor({ReduceSum(-product, {1}), Tanh(product) + y}, kRounding),
              UnorderedElementsAre(Pair("_FusedElementwise", 1), Pair("_FusedReduction", 1)));
  // The same holds for the ops before it, up to a few.
  const Output shifted = x - scale, negative = -shifted;
  EXPECT_THAT(
      OpsFor({ReduceSum(negative, {1}), Tanh(negative) * y, Square(shifted) * y}, kRounding),
      UnorderedElementsAre(Pair("_FusedElementwise", 2), Pair("_FusedReduction", 1)));
  Output steps = x;
  for (int i = 0; i < 8; ++i) steps = -Abs(steps) * scale;
  EXPECT_THAT(OpsFor({ReduceSum(steps, {1}), Tanh(steps) * y}, kRounding),
              UnorderedElementsAre(Pair("_FusedElementwise", 2), Pair("_FusedReduction", 1)));
  // Recomputed from two tensors by regions that read both already.
  EXPECT_THAT(OpsFor({ReduceSum(-(x * y) * x * y, {1}), Tanh(x * y) * x * y}, kRounding),
              UnorderedElementsAre(Pair("_FusedElementwise", 1), Pair("_FusedReduction", 1)));
  // Another node needs it in memory.
  EXPECT_THAT(OpsFor({ReduceSum(-product, {1}), Cumsum(product, 1)}, kRounding),
              UnorderedElementsAre(Pair("Mul", 1), Pair("_FusedReduction", 1), Pair("Cumsum", 1)));
  // It stays in a cache.
  const Output small = Input({50, 60}) * Input({50, 1});
  EXPECT_THAT(OpsFor({ReduceSum(-small, {1}), ReduceMax(Abs(small), {0})}, kRounding),
              UnorderedElementsAre(Pair("Mul", 1), Pair("_FusedReduction", 2)));
}

TEST_F(FuseElementwise, FillsBecomeScalars) {
  const Output x = Input({40, 60});
  EXPECT_THAT(OpsFor({Tanh(x * Fill(Ints{40, 60}, Input({})))}),
              ElementsAre(Pair("_FusedElementwise", 1)));
}

TEST_F(FuseElementwise, ComparisonsAreFusedWithTheirUsers) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float values[] = {0.f, -0.f, 1.f, -1.f, kNan, kInf, -kInf};
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
    feeds_.clear();
    const Output x = Input({3, 2003}, dtype), y = Input({3, 2003}, dtype), a = Input({2003}, dtype),
                 row = Input({3, 1}, dtype);
    for (size_t k = 0; k < 2; ++k) {
      for (int64_t i = 0; i < 49; ++i) {
        const float v = values[k == 0 ? i / 7 : i % 7];
        Tensor& t = feeds_[k].second;
        dtype == DT_FLOAT ? t.data<float>()[i] = v : t.data<double>()[i] = v;
      }
    }
    const Output zero = Cast(Const(g_, 0.f), dtype);
    for (const Output& m : {Equal(x, y), NotEqual(x, y), Less(x, y), LessEqual(x, y), Greater(x, y),
                            GreaterEqual(x, y), Greater(x, row), Less(row, x), Equal(x, zero)}) {
      const Outputs results = {Tanh(Cast(m, dtype)), SelectV2(m, x, ZerosLike(x)) + y,
                               SelectV2(m, zero, y) * x, SelectV2(m, a, y), Select(m, -x, y)};
      for (const Output& result : results) {
        EXPECT_THAT(OpsFor({result}), ElementsAre(Pair("_FusedElementwise", 1)))
            << m.node->op_name() << " " << result.node->op_name();
      }
      EXPECT_THAT(OpsFor(results), ElementsAre(Pair("_FusedElementwise", 5)));
      EXPECT_THAT(OpsFor({ReduceSum(Cast(m, dtype), {1})}),
                  ElementsAre(Pair("_FusedReduction", 1)));
    }
    // The compared value joins the region.
    const Output s = x - y;
    EXPECT_THAT(OpsFor({SelectV2(Greater(s, zero), s, -s)}),
                ElementsAre(Pair("_FusedElementwise", 1)));
  }
}

TEST_F(FuseElementwise, ComparisonsThatAreNotFused) {
  const Output x = Input({40, 60}), y = Input({40, 60}), rows = Input({40});
  const Output m = Less(x, y);
  EXPECT_THAT(OpsFor({Tanh(Cast(m, DT_FLOAT)), m}),
              UnorderedElementsAre(Pair("Less", 1), Pair("_FusedElementwise", 1)));
  EXPECT_THAT(OpsFor({Tanh(Cast(LogicalNot(m), DT_FLOAT))}), Contains(Pair("Cast", 1)));
  EXPECT_THAT(OpsFor({Tanh(Cast(m, DT_DOUBLE))}), Contains(Pair("Cast", 1)));
  // The condition selects rows.
  EXPECT_THAT(OpsFor({-Select(Less(rows, Input({40})), x, y)}), Contains(Pair("Select", 1)));
  const Output i = Input({40, 60}, DT_INT32), j = Input({40, 60}, DT_INT32);
  EXPECT_THAT(OpsFor({Tanh(SelectV2(Less(i, j), x, y))}), Contains(Pair("SelectV2", 1)));
}

// Decayed moments, and the update computed from them: Adam, in small ops.
TEST_F(FuseElementwise, SeveralResults) {
  for (const Shape& shape : {Shape({3}), Shape({70}), Shape({130, 51}), Shape({100000})}) {
    const Output m = Input(shape), v = Input(shape), g = Input(shape), w = Input(shape);
    const Output next_m = m * 0.9f + g * 0.1f, next_v = Abs(v) * 0.99f + Square(g) * 0.01f;
    const Output next_w = w - next_m / (Sqrt(next_v) + 1e-6f) * Input({});
    EXPECT_THAT(OpsFor({next_m, next_v, next_w}), ElementsAre(Pair("_FusedElementwise", 1)));
    feeds_.clear();
  }
}

// A result may overwrite an argument that later ops still use, or another argument.
TEST_F(FuseElementwise, ResultsMayOverwriteArguments) {
  for (const int64_t n : {40, 1500, 70000}) {
    const Output x = Input({n}), y = Input({n});
    // Not elementwise, so that these are temporary values of the step without other users.
    const Output a = Cumsum(x, 0), b = Cumsum(y, 0);
    const Output first = a + b, second = first * a, third = second - Tanh(b);
    EXPECT_THAT(OpsFor({Cumsum(first, 0), Cumsum(second, 0), Cumsum(third, 0)}),
                ElementsAre(Pair("Cumsum", 5), Pair("_FusedElementwise", 1)));
    feeds_.clear();
  }
}

TEST_F(FuseElementwise, TheNumberOfResultsIsLimited) {
  Output y = Input({2000});
  Outputs all;
  for (int i = 0; i < 30; ++i) all.push_back(y = Tanh(y));
  const auto ops = OpsFor(all);
  EXPECT_GE(ops.at("_FusedElementwise"), 4);
  EXPECT_LE(ops.at("_FusedElementwise"), 6);
}

// A node that the region would depend on, and that depends on the region, is not fused.
TEST_F(FuseElementwise, NoCycles) {
  const Output x = Input({50, 60}), e = Exp(x);
  // By the value of a reduction: a pattern similar to a softmax that is none.
  EXPECT_THAT(OpsFor({e * ReduceMax(Square(e), {1}, true)}),
              ElementsAre(Pair("Exp", 1), Pair("Mul", 1), Pair("_FusedReduction", 1)));
  // By a control edge.
  const Output t = Tanh(x);
  Output late;
  {
    const ControlDependencies after(g_, {CheckNumerics(t, "t")});
    late = Identity(x);
  }
  EXPECT_EQ(OpsFor({Square(t) * late}).at("Tanh"), 1);
  // Through another region's second result, which comes before that region.
  const Output p = Sigmoid(x), q = p * x, r = Sigmoid(q) * q;
  const Output s = ReduceMax(p, {1}, true), u = Cumsum(q, 0) + s;
  OpsFor({r * u, u, Cumsum(p, 0) * r, Cumsum(r, 1) - p});
  // Too far for the search.
  Output far = t;
  for (int i = 0; i < 100; ++i) far = Cumsum(far, i % 2);
  EXPECT_EQ(OpsFor({Square(t) - far}).at("Tanh"), 1);
  EXPECT_EQ(OpsFor({-Square(t), far}).count("Tanh"), 0);
}

TEST_F(FuseElementwise, ControlEdgesAreKept) {
  const Output x = Input({2000});
  const Output waited = CheckNumerics(x, "x");
  Output y;
  {
    const ControlDependencies after(g_, {waited});
    y = Square(x);
  }
  EXPECT_THAT(OpsFor({-Tanh(y)}), ElementsAre(Pair("CheckNumerics", 1), Pair("Square", 1),
                                              Pair("_FusedElementwise", 1)));
}

TEST_F(FuseElementwise, AFewSmallNodesAreNotFused) {
  const Output x = Input({4});
  EXPECT_THAT(OpsFor({Square(Tanh(x))}), ElementsAre(Pair("Square", 1), Pair("Tanh", 1)));
  EXPECT_THAT(OpsFor({Square(Tanh(-x))}), ElementsAre(Pair("_FusedElementwise", 1)));
}

TEST_F(FuseElementwise, LongChainsAndManyArgumentsAreSeveralNodes) {
  Output y = Input({1500});
  for (int i = 0; i < 200; ++i) y = Tanh(y + 0.125f);
  auto ops = OpsFor({y});
  EXPECT_GE(ops["_FusedElementwise"], 4);
  EXPECT_EQ(ops.size(), 1u);
  Output sum = Input({1500});
  for (int i = 0; i < 30; ++i) sum = sum * Input({1500});
  ops = OpsFor({sum});
  EXPECT_LE(ops["_FusedElementwise"], 4);
}

TEST_F(FuseElementwise, BranchesAndLoopsKeepTheirNodes) {
  const Output x = Input({1500}), p = Placeholder(g_, DT_BOOL, {});
  const auto taken = [&] { return Outputs{Square(Tanh(x) + x)}; };
  const auto other = [&] { return Outputs{-Sigmoid(x * x)}; };
  const Output y = Cond(p, taken, other)[0];
  for (const bool value : {true, false}) {
    feeds_.emplace_back(p, Tensor::Scalar(value));
    EXPECT_EQ(OpsFor({y})["_FusedElementwise"], 2) << "one of them is dead";
    feeds_.pop_back();
  }
  const Outputs r = WhileLoop([](const Outputs& v) { return v[0] < 5; },
                              [&](const Outputs& v) {
                                return Outputs{v[0] + 1, Tanh(v[1] * x + x) - v[1]};
                              },
                              {Const(g_, 0), x});
  EXPECT_EQ(OpsFor({r[1]})["_FusedElementwise"], 5);
}

// A scalar that is broadcast in a branch, and a constant of the branch.
TEST_F(FuseElementwise, FillsOfUntakenBranchesAreDead) {
  const Output x = Input({40, 60}), p = Placeholder(g_, DT_BOOL, {});
  Tensor table(DT_FLOAT, Shape({40, 60}));
  for (int64_t i = 0; i < 2400; ++i) table.data<float>()[i] = 0.01f * static_cast<float>(i);
  const auto taken = [&] {
    const Output half = Fill(ShapeTensor(Identity(x)), Const(g_, 0.5f));
    return Outputs{Square(half * Const(g_, table))};
  };
  const auto other = [&] { return Outputs{-Sigmoid(x * x)}; };
  const Output y = Cond(p, taken, other)[0];
  for (const bool value : {true, false}) {
    feeds_.emplace_back(p, Tensor::Scalar(value));
    OpsFor({y});
    feeds_.pop_back();
  }
}

// ---- reductions

TEST_F(FuseElementwise, AReductionEndsTheNode) {
  const Output x = Input({40, 1031}), y = Input({40, 1031});
  const Output loss = ReduceMean(SquaredDifference(x, y));
  EXPECT_THAT(OpsFor({loss}, kRounding), ElementsAre(Pair("_FusedReduction", 1)));
  const Output scale = ReduceSum(x * y * 0.5f, {0});
  EXPECT_THAT(OpsFor({scale}, kRounding), ElementsAre(Pair("_FusedReduction", 1)));
  EXPECT_THAT(OpsFor({ReduceMax(Tanh(x) - y, {1}, true)}), ElementsAre(Pair("_FusedReduction", 1)));
}

// All sequences of kept and reduced dimensions; runs that are shorter than a tile, longer, and no
// multiple of anything; enough results for several threads, and too few.
TEST_F(FuseElementwise, OverAnyAxes) {
  const std::vector<Shape> shapes = {
      {1500},          {3, 700},         {700, 3},         {70, 2000},       {2000, 70},
      {5, 1, 6000},    {9, 40, 33},      {2, 33, 1025},    {300, 3, 5},      {3, 5, 7, 90},
      {64, 2, 30, 11}, {2, 3, 4, 5, 60}, {1, 4096, 1, 10}, {16, 3, 2, 2, 9}, {70, 1, 2000, 1}};
  for (const Shape& shape : shapes) {
    for (unsigned mask = 1; mask < 1u << shape.rank(); ++mask) {
      std::vector<int64_t> axes;
      int64_t count = 1;
      for (int i = 0; i < shape.rank(); ++i) {
        if ((mask >> i & 1) == 0) continue;
        axes.push_back(i % 2 == 0 ? i : i - shape.rank());
        count *= shape.dim(i);
      }
      if (count < 2) continue;
      const Output x = Input(shape), row = Input({shape.dim(-1)});
      const auto sums =
          OpsFor({ReduceSum(x * row, axes), ReduceMean(Square(x) - row, axes, true)}, kRounding);
      EXPECT_THAT(sums, ElementsAre(Pair("_FusedReduction", 2)));
      const auto extremes =
          OpsFor({ReduceMax(x - row, axes), ReduceMin(Square(row * x), axes, true)});
      EXPECT_THAT(extremes, ElementsAre(Pair("_FusedReduction", 2)));
      ASSERT_FALSE(HasFailure()) << shape.ToString() << " axes " << absl::StrJoin(axes, ",");
      feeds_.clear();
    }
  }
}

TEST_F(FuseElementwise, ReductionsOfAllTypes) {
  for (const DataType type : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_INT32, DT_INT64}) {
    const Output x = Input({60, 130}, type), y = Input({60, 1}, type);
    // A sum of 16-bit floats is accumulated in double, and rounded once.
    const double rounding = type == DT_INT32 || type == DT_INT64 ? 0
                            : type == DT_FLOAT                   ? kRounding
                            : type == DT_DOUBLE                  ? 1e-12
                                                                 : 1e-3;
    for (const char* op : {"Sum", "Mean", "Max", "Min", "EuclideanNorm"}) {
      for (const int axis : {0, 1}) {
        const Output z = AddOp(op, {x - y, Const(g_, axis)});
        EXPECT_THAT(OpsFor({z}, rounding), ElementsAre(Pair("_FusedReduction", 1)))
            << op << " of " << DataTypeName(type);
      }
    }
    feeds_.clear();
  }
  const Output x = Input({60, 130});
  const Output product = AddOp("Prod", {Square(x) + 0.5f, Const(g_, 1)});
  EXPECT_THAT(OpsFor({product}, kRounding), ElementsAre(Pair("_FusedReduction", 1)));
}

TEST_F(FuseElementwise, SharedInputsOfReductionsAreComputedOnce) {
  const Output x = Input({50, 60}), e = Exp(x);
  EXPECT_THAT(OpsFor({e * 2.f, ReduceSum(e, {1})}),
              ElementsAre(Pair("Sum", 1), Pair("_FusedElementwise", 1)));
  // Fetched, or reduced twice.
  EXPECT_THAT(OpsFor({e, ReduceSum(e, {0})}), ElementsAre(Pair("Exp", 1), Pair("Sum", 1)));
  EXPECT_THAT(OpsFor({ReduceMax(e), ReduceSum(e)}),
              ElementsAre(Pair("Exp", 1), Pair("Max", 1), Pair("Sum", 1)));
}

TEST_F(FuseElementwise, EpiloguesOfReductionsAreFused) {
  for (const Shape& shape : {Shape({50, 60}), Shape({2000, 7}), Shape({3, 4000}), Shape({70000})}) {
    const Output x = Input(shape), rows = Input({shape.dim(0), 1}), count = Input({});
    const int64_t last = shape.rank() - 1;
    for (const bool keep : {true, false}) {
      EXPECT_THAT(OpsFor({Rsqrt(ReduceMean(Square(x), {last}, keep) + 0.5f)}, kRounding),
                  ElementsAre(Pair("_FusedReduction", 1)));
      EXPECT_THAT(OpsFor({-Tanh(ReduceSum(Square(x) * 0.01f, {0}, keep) * count)}, kRounding),
                  ElementsAre(Pair("_FusedReduction", 1)));
      // The sum equals that of the single node, bit for bit.
      EXPECT_THAT(OpsFor({Square(ReduceSum(x, {0}, keep)) / count}),
                  ElementsAre(Pair("_FusedReduction", 1)));
    }
    // Other arguments, results with several uses, and users of another shape.
    if (shape.rank() == 2) {
      const Output largest = ReduceMax(Tanh(x), {1}, true);
      EXPECT_THAT(OpsFor({x - largest * rows / (largest + count)}),
                  UnorderedElementsAre(Pair("Sub", 1), Pair("_FusedReduction", 1)));
    }
    feeds_.clear();
  }
}

TEST_F(FuseElementwise, EpiloguesThatAreNotFused) {
  const Output x = Input({50, 60}), rows = Input({50, 1});
  // The result itself is needed.
  const Output sum = ReduceSum(Square(x), {1}, true);
  EXPECT_THAT(OpsFor({sum, Sqrt(sum)}, kRounding),
              ElementsAre(Pair("Sqrt", 1), Pair("_FusedReduction", 1)));
  // Neither of two reductions waits for the other, unless that is ready earlier anyway.
  EXPECT_THAT(OpsFor({ReduceMax(Square(x), {1}, true) - ReduceMin(-x, {1}, true)}),
              ElementsAre(Pair("Sub", 1), Pair("_FusedReduction", 2)));
  Output late = x;
  for (int i = 0; i < 20; ++i) late = Cumsum(late, 0);
  EXPECT_THAT(OpsFor({ReduceMax(Square(x), {1}, true) - ReduceMin(late, {1}, true)}),
              ElementsAre(Pair("Cumsum", 20), Pair("_FusedReduction", 2)));
  // The epilogue has two results.
  const Output root = Sqrt(Maximum(ReduceMax(Square(x), {1}, true), rows));
  const auto ops = OpsFor({Cumsum(root, 0), Cumsum(root - rows, 0)});
  EXPECT_THAT(ops, Contains(Pair("_FusedReduction", 1)));
  // On small tensors a region needs three nodes.
  const Output small = Input({3, 4});
  EXPECT_THAT(OpsFor({-ReduceMax(small, {1})}), ElementsAre(Pair("Max", 1), Pair("Neg", 1)));
  EXPECT_THAT(OpsFor({Tanh(-ReduceMax(small, {1}))}), ElementsAre(Pair("_FusedReduction", 1)));
}

TEST_F(FuseElementwise, ReductionsThatAreNotFused) {
  const Output x = Input({50, 60}), axes = Placeholder(g_, DT_INT32, Shape({1}));
  feeds_.emplace_back(axes, Tensor::Vector<int32_t>({1}));
  EXPECT_THAT(OpsFor({AddOp("Sum", {Square(x), axes})}),
              ElementsAre(Pair("Square", 1), Pair("Sum", 1)))
      << "axes that are fed";
  EXPECT_THAT(OpsFor({ReduceSum(Square(Input({3, 4})))}),
              ElementsAre(Pair("Square", 1), Pair("Sum", 1)))
      << "small";
  const Output wide = Input({2, 70000});
  EXPECT_THAT(OpsFor({ReduceSum(Square(wide), {0})}),
              ElementsAre(Pair("Square", 1), Pair("Sum", 1)))
      << "too many results for a copy per thread";
  EXPECT_THAT(OpsFor({ReduceSum(Square(Input({3, 0})), {1})}),
              ElementsAre(Pair("Square", 1), Pair("Sum", 1)))
      << "an empty tensor";
}

TEST_F(FuseElementwise, NanStaysNan) {
  Tensor t(DT_FLOAT, {30, 100});
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<float>()[i] = static_cast<float>(i % 13);
  t.data<float>()[250] = std::numeric_limits<float>::quiet_NaN();
  t.data<float>()[555] = std::numeric_limits<float>::infinity();
  const Output x = Placeholder(g_, DT_FLOAT, t.shape());
  feeds_.emplace_back(x, t);
  for (const int64_t axis : {0, 1}) {
    EXPECT_THAT(OpsFor({ReduceMax(x * 2.f, {axis}), ReduceMin(-x, {axis})}, kRounding),
                ElementsAre(Pair("_FusedReduction", 2)));
    EXPECT_THAT(OpsFor({ReduceSum(x * 2.f, {axis})}, kRounding),
                ElementsAre(Pair("_FusedReduction", 1)));
  }
}

TEST_F(FuseElementwise, ReductionsInBranchesAndLoops) {
  const Output x = Input({30, 50}), p = Placeholder(g_, DT_BOOL, {});
  const Output y = Cond(
      p, [&] { return Outputs{ReduceMax(Square(x), {1})}; },
      [&] { return Outputs{ReduceMin(Square(x) - x, {1})}; })[0];
  for (const bool value : {true, false}) {
    feeds_.emplace_back(p, Tensor::Scalar(value));
    OpsFor({y});
    feeds_.pop_back();
  }
  const Outputs r = WhileLoop([](const Outputs& v) { return v[0] < 4; },
                              [&](const Outputs& v) {
                                return Outputs{v[0] + 1, v[1] - ReduceMax(v[1] * x, {1}, true)};
                              },
                              {Const(g_, 0), x});
  EXPECT_EQ(OpsFor({r[1]})["_FusedReduction"], 4);
}

// A next value of the loop variable that no node in the loop uses.
TEST_F(FuseElementwise, ALoopDependsOnValuesFromOutside) {
  const Output x = Input({30, 50}), y = Tanh(x - 0.5f);
  const Outputs r = WhileLoop([](const Outputs& v) { return v[0] < 4; },
                              [&](const Outputs& v) {
                                return Outputs{v[0] + 1, y};
                              },
                              {Const(g_, 0), x});
  OpsFor({y * Square(r[1]) + 1.f});
}

// In a graph without shapes a node may get other shapes than those that the step was compiled for.
TEST_F(FuseElementwise, AReductionOfUnknownShape) {
  const Output x = Placeholder(g_, DT_FLOAT, Shape::UnknownRank()),
               y = Placeholder(g_, DT_FLOAT, Shape::UnknownRank());
  NodeBuilder builder(g_, "_FusedReduction");
  builder.InputList({x, y})
      .InputList({})
      .Attr("fused_ops", std::vector<std::string>{"AddV2", "Sum"})
      .Attr("operands", std::vector<int64_t>{0, 1})
      .Attr("params", std::vector<float>{0})
      .Attr("axes", std::vector<int64_t>{1});
  const Output z = builder.BuildOutput();
  NodeBuilder ended(g_, "_FusedReduction");
  ended.InputList({x, y})
      .InputList({y})
      .Attr("fused_ops", std::vector<std::string>{"AddV2", "Sum", "Sub"})
      .Attr("operands", std::vector<int64_t>{0, 1})
      .Attr("params", std::vector<float>{0})
      .Attr("end_operands", std::vector<int64_t>{0, 1})
      .Attr("end_params", std::vector<float>{0})
      .Attr("axes", std::vector<int64_t>{1});
  const Output less = ended.BuildOutput();
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_, {.num_threads = 2});
  for (const Shape& shape : {Shape({2, 3}), Shape({0, 3}), Shape({4, 0}), Shape({2, 1}),
                             Shape({1, 1}), Shape({1, 300}), Shape({3, 100000})}) {
    const Tensor t = Tensor::Zeros(DT_FLOAT, shape), one = Tensor::Scalar(1.f);
    auto out = session.Run({{x, t}, {y, one}}, {z, less});
    ASSERT_TRUE(out.ok()) << out.status();
    for (const int k : {0, 1}) {
      ASSERT_EQ((*out)[k].shape(), Shape({shape.dim(0)}));
      for (int64_t i = 0; i < shape.dim(0); ++i)
        EXPECT_EQ((*out)[k].data<float>()[i], static_cast<float>(shape.dim(1) - k));
    }
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      session.Run({{x, Tensor::Scalar(1.f)}, {y, Tensor::Scalar(1.f)}}, {z}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      session.Run({{x, Tensor::Zeros(DT_FLOAT, {2, 3})}, {y, Tensor::Zeros(DT_FLOAT, {4, 5})}}, {z})
          .status()));
}

// Random graphs: values of several shapes, each used any number of times.
TEST_F(FuseElementwise, RandomGraphsReturnTheSameBits) {
  for (int round = 0; round < 60; ++round) {
    const int64_t rows = 1 + random_() % 70, columns = 1 + random_() % 90;
    Outputs values = {Input({rows, columns}), Input({rows, columns}), Input({rows, 1}),
                      Input({columns}), Input({})};
    for (int i = 0; i < 60; ++i) {
      const auto any = [&] {
        const size_t recent = std::min<size_t>(values.size(), 12);
        return values[values.size() - 1 - random_() % recent];
      };
      switch (random_() % 10) {
        case 8:
          values.push_back(SelectV2(Less(any(), any()), any(), any()));
          break;
        case 9:
          values.push_back(Cast(GreaterEqual(any(), any()), DT_FLOAT) - any());
          break;
        case 0:
          values.push_back(any() + any());
          break;
        case 1:
          values.push_back(any() - any());
          break;
        case 2:
          values.push_back(Tanh(any() * any()));
          break;
        case 3:
          values.push_back(Maximum(any(), any()));
          break;
        case 4:
          values.push_back(Sigmoid(any()));
          break;
        case 5:
          values.push_back(Relu(any()));
          break;
        case 6:
          values.push_back(Abs(-any()));
          break;
        default:
          values.push_back(Minimum(any(), any()) * 0.5f);
      }
    }
    const Outputs fetches = {values.back(), values[values.size() - 7], values[20]};
    OpsFor(fetches);
    // Fetches many of the values.
    Outputs more(values.begin() + 5 + random_() % 20, values.end());
    std::shuffle(more.begin(), more.end(), random_);
    OpsFor(more);
    OpsFor({ReduceSum(values.back()), ReduceMean(values[40])}, kRounding);
    ASSERT_FALSE(HasFailure()) << "round " << round;
    feeds_.clear();
  }
}

TEST_F(FuseElementwise, MalformedNodesAreErrors) {
  const Output x = Input({3}), y = Input({4});
  const auto refused = [&](std::vector<std::string> ops, std::vector<int64_t> operands,
                           std::vector<float> params, const Outputs& args,
                           std::vector<int64_t> others_of = {}, int64_t num_others = -1) {
    NodeBuilder builder(g_, "_FusedElementwise");
    if (num_others < 0) num_others = static_cast<int64_t>(others_of.size());
    builder.InputList(args)
        .Attr("fused_ops", std::move(ops))
        .Attr("operands", std::move(operands))
        .Attr("params", std::move(params))
        .Attr("others_of", std::move(others_of))
        .Attr("num_others", num_others);
    const Output z = builder.BuildOutput();
    if (!g_.TakeStatus().ok()) return true;
    Session session = *Session::Create(g_, {.num_threads = 1});
    return !session.Run(feeds_, {z}).ok();
  };
  EXPECT_FALSE(refused({"Neg"}, {0, -1}, {0}, {x}));
  EXPECT_TRUE(refused({}, {}, {}, {x}));
  EXPECT_TRUE(refused({"Neg"}, {0}, {0}, {x}));
  EXPECT_TRUE(refused({"Neg"}, {0, -1}, {}, {x}));
  EXPECT_TRUE(refused({"Neg"}, {1, -1}, {0}, {x}));
  EXPECT_TRUE(refused({"Neg"}, {-1, -1}, {0}, {x}));
  EXPECT_TRUE(refused({"AddV2"}, {0, 2}, {0}, {x, x}));
  EXPECT_TRUE(refused({"MatMul"}, {0, 1}, {0}, {x, x}));
  EXPECT_TRUE(refused({"Less"}, {0, 1}, {0}, {x, x}));
  EXPECT_TRUE(refused({"AddV2"}, {0, 1}, {0}, {x, y}));
  EXPECT_TRUE(refused({"AddV2"}, {0, int64_t{1} << 40}, {0}, {x, x}));
  EXPECT_TRUE(refused(std::vector<std::string>(65, "Neg"), std::vector<int64_t>(130, 0),
                      std::vector<float>(65), {x}));
  EXPECT_FALSE(refused({"Neg", "Abs"}, {0, -1, 1, -1}, {0, 0}, {x}, {0}));
  EXPECT_TRUE(refused({"Neg", "Abs"}, {0, -1, 1, -1}, {0, 0}, {x}, {1}));
  EXPECT_TRUE(refused({"Neg", "Abs"}, {0, -1, 1, -1}, {0, 0}, {x}, {-1}));
  EXPECT_TRUE(refused({"Neg", "Abs"}, {0, -1, 1, -1}, {0, 0}, {x}, {0, 0}));
  EXPECT_TRUE(refused({"Neg", "Abs"}, {0, -1, 1, -1}, {0, 0}, {x}, {0}, 0));
  EXPECT_TRUE(refused({"Neg", "Abs"}, {0, -1, 1, -1}, {0, 0}, {x}, {}, 1));
  EXPECT_TRUE(refused({"Neg", "Abs"}, {0, -1, 1, -1}, {0, 0}, {x}, {}, int64_t{1} << 40));
  EXPECT_TRUE(refused(std::vector<std::string>(20, "Neg"), std::vector<int64_t>(40, 0),
                      std::vector<float>(20), {x}, {0, 1, 2, 3, 4, 5, 6, 7}));
  const auto reduction_refused = [&](std::vector<std::string> ops, std::vector<int64_t> operands,
                                     std::vector<int64_t> axes, const Outputs& end_args = {},
                                     std::vector<int64_t> end_operands = {}, size_t end = 0,
                                     size_t begin = 1) {
    NodeBuilder builder(g_, "_FusedReduction");
    builder.InputList({x})
        .InputList(end_args)
        .Attr("fused_ops", std::move(ops))
        .Attr("operands", std::move(operands))
        .Attr("params", std::vector<float>(begin))
        .Attr("end_operands", std::move(end_operands))
        .Attr("end_params", std::vector<float>(end))
        .Attr("axes", std::move(axes));
    const Output z = builder.BuildOutput();
    if (!g_.TakeStatus().ok()) return true;
    Session session = *Session::Create(g_, {.num_threads = 1});
    return !session.Run(feeds_, {z}).ok();
  };
  EXPECT_FALSE(reduction_refused({"Neg", "Sum"}, {0, -1}, {0}));
  EXPECT_FALSE(reduction_refused({"Neg", "Sum"}, {0, -1}, {}));
  EXPECT_TRUE(reduction_refused({"Neg", "Sum"}, {0, -1}, {1}));
  EXPECT_TRUE(reduction_refused({"Neg", "Sum"}, {0, -1}, {0, 0}));
  EXPECT_TRUE(reduction_refused({"Neg", "Neg"}, {0, -1}, {0}));
  EXPECT_TRUE(reduction_refused({"Sum"}, {0, -1}, {0}));
  EXPECT_TRUE(reduction_refused({}, {}, {0}));
  EXPECT_TRUE(reduction_refused({"Neg", "Sum"}, {0}, {0}));
  const Output one = Input({});
  EXPECT_FALSE(reduction_refused({"Neg", "Sum", "Sub"}, {0, -1}, {0}, {one}, {0, 1}, 1));
  EXPECT_FALSE(reduction_refused({"Sum", "Sub"}, {}, {0}, {one}, {0, 1}, 1, 0));
  EXPECT_FALSE(reduction_refused({"Sum"}, {}, {0}, {}, {}, 0, 0));
  EXPECT_TRUE(reduction_refused({"Sum", "Sub"}, {0, -1}, {0}, {one}, {0, 1}, 1, 0));
  EXPECT_TRUE(reduction_refused({"Neg", "Sum", "Sub"}, {0, -1}, {0}, {y}, {0, 1}, 1));
  EXPECT_TRUE(reduction_refused({"Neg", "Sum", "Sub"}, {0, -1}, {0}, {one}, {0, 2}, 1));
  EXPECT_TRUE(reduction_refused({"Neg", "Sum", "Sub"}, {0, -1}, {0}, {one}, {0, 1}, 0));
  EXPECT_TRUE(reduction_refused({"Neg", "Sum", "Sum"}, {0, -1}, {0}, {}, {0, -1}, 1));
  EXPECT_TRUE(reduction_refused({"Neg", "Sum"}, {0, -1}, {0}, {one}, {}, 0));
  EXPECT_TRUE(reduction_refused({"Neg", "Sum"}, {0, -1}, {0}, {}, {0, 1}, 0));
}

}  // namespace
}  // namespace weir
