#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/scope.h"
#include "weir/ops/array.h"
#include "weir/ops/cond.h"
#include "weir/ops/control_flow.h"
#include "weir/ops/gradients.h"
#include "weir/ops/math.h"
#include "weir/ops/nn.h"
#include "weir/ops/while_loop.h"
#include "weir/session/session.h"

// What becomes of element-wise neighbours: the ops that a traced step runs, and that not a bit of
// the results changes.
namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

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
  // How often each op runs. The values are those without fusion, with any number of threads.
  std::map<std::string, int> OpsFor(const Outputs& ys) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const Tensors want = Run(ys, {.num_threads = 2, .disable = {"fusion"}});
    std::vector<NodeTrace> trace;
    for (const int threads : {1, 3}) {
      trace.clear();
      const Tensors got = Run(ys, {.num_threads = threads}, &trace);
      for (size_t i = 0; i < ys.size(); ++i)
        EXPECT_TRUE(IdenticalTensors(got[i], want[i])) << "result " << i;
    }
    std::map<std::string, int> ops;
    for (const NodeTrace& node : trace) ++ops[node.op];
    return ops;
  }

  Graph g_;
  Feeds feeds_;
  std::mt19937 random_{17};
};

TEST_F(FuseElementwise, AChainIsOneNode) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_BFLOAT16, DT_INT32}) {
    const Output x = Input({7, 1031}, dtype);
    Output y = Square(x) + x;
    y = Maximum(-y, x) - x;
    if (dtype != DT_INT32) y = Sigmoid(y) * Tanh(x);
    EXPECT_THAT(OpsFor({y}), ElementsAre(Pair("_FusedElementwise", 1))) << DataTypeName(dtype);
  }
}

TEST_F(FuseElementwise, ArgumentsOfOtherShapesAreRepeated) {
  const Output x = Input({5, 700, 3});
  const Output y = (x * Input({}) + Input({3})) * Input({700, 1}) - Input({5, 1, 1});
  EXPECT_THAT(OpsFor({y}), ElementsAre(Pair("_FusedElementwise", 1)));
  // What is computed in a smaller shape is computed before.
  const Output z = x + Rsqrt(Square(Input({3})) + 1.f);
  EXPECT_THAT(OpsFor({z * x}), ElementsAre(Pair("_FusedElementwise", 2)));
}

TEST_F(FuseElementwise, ABiasIsASum) {
  const Output x = Input({64, 32}), b = Input({32});
  EXPECT_THAT(OpsFor({Tanh(BiasAdd(Square(x), b))}), ElementsAre(Pair("_FusedElementwise", 1)));
}

TEST_F(FuseElementwise, ABiasOfAnotherLengthIsRefused) {
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

TEST_F(FuseElementwise, WhatIsNeededElsewhereIsComputedOnce) {
  const Output x = Input({2000});
  const Output shared = Tanh(x);
  // Two results that share a value: it is a node of its own.
  const auto ops = OpsFor({Square(shared) + x, -(shared * x)});
  EXPECT_THAT(ops, ElementsAre(Pair("Tanh", 1), Pair("_FusedElementwise", 2)));
  // A value that is used twice within one result.
  EXPECT_THAT(OpsFor({shared * Square(shared)}), ElementsAre(Pair("_FusedElementwise", 1)));
  // A value that is fetched as well.
  EXPECT_THAT(OpsFor({shared, Square(-shared)}),
              ElementsAre(Pair("Tanh", 1), Pair("_FusedElementwise", 1)));
}

TEST_F(FuseElementwise, ControlEdgesAreKept) {
  const Output x = Input({2000});
  const Output waited = Tanh(x);
  Output y;
  {
    const ControlDependencies after(g_, {waited});
    y = Square(x);
  }
  EXPECT_THAT(OpsFor({-(y + waited)}),
              ElementsAre(Pair("Square", 1), Pair("Tanh", 1), Pair("_FusedElementwise", 1)));
}

TEST_F(FuseElementwise, AFewSmallNodesStayAsTheyAre) {
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
    EXPECT_EQ(OpsFor({y})["_FusedElementwise"], 2) << "one of them dead";
    feeds_.pop_back();
  }
  const Outputs r = WhileLoop([](const Outputs& v) { return v[0] < 5; },
                              [&](const Outputs& v) {
                                return Outputs{v[0] + 1, Tanh(v[1] * x + x) - v[1]};
                              },
                              {Const(g_, 0), x});
  EXPECT_EQ(OpsFor({r[1]})["_FusedElementwise"], 5);
}

// Graphs that nobody thought of: values of several shapes, used any number of times.
TEST_F(FuseElementwise, RandomGraphsGiveTheSameBits) {
  for (int round = 0; round < 60; ++round) {
    const int64_t rows = 1 + random_() % 70, columns = 1 + random_() % 90;
    Outputs values = {Input({rows, columns}), Input({rows, columns}), Input({rows, 1}),
                      Input({columns}), Input({})};
    for (int i = 0; i < 60; ++i) {
      const auto any = [&] {
        const size_t recent = std::min<size_t>(values.size(), 12);
        return values[values.size() - 1 - random_() % recent];
      };
      switch (random_() % 8) {
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
    ASSERT_FALSE(HasFailure()) << "round " << round;
    feeds_.clear();
  }
}

TEST_F(FuseElementwise, MalformedNodesAreRefused) {
  const Output x = Input({3}), y = Input({4});
  const auto refused = [&](std::vector<std::string> ops, std::vector<int64_t> operands,
                           std::vector<float> params, const Outputs& args) {
    NodeBuilder builder(g_, "_FusedElementwise");
    builder.InputList(args)
        .Attr("fused_ops", std::move(ops))
        .Attr("operands", std::move(operands))
        .Attr("params", std::move(params));
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
}

}  // namespace
}  // namespace weir
