// Loops over scalars that are fused into one node: which ones, and that not a bit of the results
// changes.

#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class FuseScalarLoops : public testing::Test {
 protected:
  template <class T>
  Output Feed(T value) {
    const Output x = Placeholder(g_, DataTypeOf<T>::value, {});
    feeds_.emplace_back(x, Tensor::Scalar<T>(value));
    return x;
  }

  Tensors Run(const Outputs& ys, SessionOptions options, std::vector<NodeTrace>* trace = nullptr) {
    Session session = *Session::Create(g_, std::move(options));
    if (init_) {
      EXPECT_TRUE(session.Run({}, {}, {*init_}).ok());
    }
    auto out = session.Run(feeds_, ys, {}, {.trace = trace});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *std::move(out) : Tensors(ys.size());
  }

  // Returns how often each op runs, after comparing the results with those of v1 loops.
  std::map<std::string, int> OpsFor(const Outputs& ys) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const Tensors want = Run(ys, {.disable = {"structure_loops", "fusion"}});
    std::vector<NodeTrace> trace;
    const Tensors got = Run(ys, {}, &trace);
    for (size_t i = 0; i < ys.size(); ++i) {
      EXPECT_TRUE(IdenticalTensors(got[i], want[i]))
          << "result " << i << ": " << got[i].ToString(5) << " instead of " << want[i].ToString(5);
    }
    std::map<std::string, int> ops;
    for (const NodeTrace& node : trace) ++ops[node.op];
    return ops;
  }
  bool IsFused(const Outputs& ys) { return OpsFor(ys).contains("_ScalarLoop"); }

  Graph g_;
  Feeds feeds_;
  std::optional<Operation> init_;
};

TEST_F(FuseScalarLoops, CountsAndComputes) {
  for (const int times : {0, 1, 2, 1000, 5000}) {
    const Output n = Feed(times), x = Feed(1.5f);
    const Outputs out = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                                  [](const Outputs& v) {
                                    return Outputs{v[0] + 1, v[1] * 0.999f + 1.f};
                                  },
                                  {Const(g_, 0), x});
    const auto ops = OpsFor({out[0], out[1], out[1] * 2.f});
    EXPECT_THAT(ops, Contains(testing::Pair("_ScalarLoop", 1))) << times;
    EXPECT_EQ(ops.count("Less") + ops.count("LoopCond") + ops.count("Enter"), 0u) << times;
  }
}

TEST_F(FuseScalarLoops, VariablesOfAllTypesAreSwapped) {
  const Output n = Feed(int64_t{7});
  const Outputs out =
      WhileLoop([&](const Outputs& v) { return LogicalAnd(v[0] < n, LogicalNot(v[5])); },
                [](const Outputs& v) {
                  return Outputs{v[0] + int64_t{1},
                                 v[2],
                                 v[1] + v[2],
                                 Cast(v[0], DT_DOUBLE) * Sqrt(v[3]),
                                 v[4] + Cast(v[0], DT_INT32),
                                 Greater(v[3], Const<double>(v[3].graph(), 1e6))};
                },
                {Const(g_, int64_t{0}), Feed(1.f), Feed(2.f), Feed(3.0), Feed(4), Feed(false)});
  EXPECT_TRUE(IsFused(out));
}

// In each iteration the condition is computed first, and the body may use its intermediate values.
TEST_F(FuseScalarLoops, TheBodyUsesValuesOfTheCondition) {
  const Output x = Feed(0.1f);
  Output squared;
  const Outputs out = WhileLoop(
      [&](const Outputs& v) {
        squared = Square(v[0]);
        return squared < 1e4f;
      },
      [&](const Outputs& v) { return Outputs{v[0] + Square(v[0]) + 1.f}; }, {x});
  EXPECT_TRUE(IsFused(out));
}

TEST_F(FuseScalarLoops, NestedLoopsFromTheInsideOut) {
  const Output n = Feed(6);
  const auto below = [&](const Outputs& v) { return v[0] < n; };
  const Outputs out = WhileLoop(below,
                                [&](const Outputs& v) {
                                  const Outputs inner =
                                      WhileLoop(below,
                                                [](const Outputs& w) {
                                                  return Outputs{w[0] + 1, w[1] * 1.25f};
                                                },
                                                {v[0], v[1]});
                                  return Outputs{v[0] + 1, inner[1] - Cast(v[0], DT_FLOAT)};
                                },
                                {Const(g_, 0), Feed(1.f)});
  EXPECT_THAT(OpsFor(out), Contains(testing::Pair("_ScalarLoop", 6)));
}

TEST_F(FuseScalarLoops, ALoopUsesResultsOfAnother) {
  const Output n = Feed(5);
  const auto grow = [](const Outputs& v) { return Outputs{v[0] + 1, v[1] * 1.5f}; };
  const auto below = [&](const Outputs& v) { return v[0] < n; };
  const Outputs first = WhileLoop(below, grow, {Const(g_, 0), Feed(1.f)});
  const Outputs second = WhileLoop([&](const Outputs& v) { return v[1] < first[1] * 100.f; }, grow,
                                   {first[0], first[1]});
  EXPECT_THAT(OpsFor({first[1], second[0], second[1]}), Contains(testing::Pair("_ScalarLoop", 2)));
}

TEST_F(FuseScalarLoops, VariablesAreReadBeforeTheLoop) {
  const Variable start = GetVariable(g_, "start", {}, Constant(2.0));
  init_ = GlobalVariablesInitializer(g_);
  const Output limit = Feed(50.f);
  const Outputs out =
      WhileLoop([&](const Outputs& v) { return v[0] < limit; },
                [&](const Outputs& v) { return Outputs{v[0] * 1.75f}; }, {start.value()});
  EXPECT_TRUE(IsFused(out));
}

TEST_F(FuseScalarLoops, OtherLoopsAreNotFused) {
  const Output n = Feed(3);
  const auto below = [&](const Outputs& v) { return v[0] < n; };
  const Output row = Placeholder(g_, DT_FLOAT, {2});
  feeds_.emplace_back(row, Tensor::Vector<float>({1, 2}));
  // A variable that is not a scalar; an op that can fail; an op on tensors.
  EXPECT_FALSE(IsFused({WhileLoop(below,
                                  [](const Outputs& v) {
                                    return Outputs{v[0] + 1, v[1] * 2.f};
                                  },
                                  {Const(g_, 0), row})[1]}));
  const Output divisor = Feed(2);
  EXPECT_FALSE(IsFused({WhileLoop(below,
                                  [&](const Outputs& v) {
                                    return Outputs{v[0] + 1, FloorDiv(v[1], divisor)};
                                  },
                                  {Const(g_, 0), Feed(100)})[1]}));
  EXPECT_FALSE(IsFused({WhileLoop(below,
                                  [&](const Outputs& v) {
                                    return Outputs{v[0] + 1, v[1] + ReduceSum(row * v[1])};
                                  },
                                  {Const(g_, 0), Feed(1.f)})[1]}));
}

// Gradients use the values that each iteration has computed.
TEST_F(FuseScalarLoops, LoopsWithGradientsAreNotFused) {
  const Output n = Feed(4), x = Feed(1.1f);
  const Output y = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                             [](const Outputs& v) {
                               return Outputs{v[0] + 1, v[1] * v[1]};
                             },
                             {Const(g_, 0), x})[1];
  OpsFor({y, Gradients({y}, {x})[0].dense()});
}

TEST_F(FuseScalarLoops, EndsWhenTheStepIsCancelled) {
  const Output x = Feed(0.f), limit = Feed(1.f);
  const Output y = WhileLoop([&](const Outputs& v) { return v[0] < limit; },
                             [](const Outputs& v) { return Outputs{v[0] * 0.5f}; }, {x})[0];
  Session session = *Session::Create(g_);
  EXPECT_EQ(
      session.Run(feeds_, {y}, {}, {.timeout = std::chrono::milliseconds(50)}).status().code(),
      absl::StatusCode::kDeadlineExceeded);
  Cancellation cancellation;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancellation.Cancel(absl::CancelledError("enough"));
  });
  const absl::Status status =
      session.Run(feeds_, {y}, {}, {.cancellation = &cancellation}).status();
  canceller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(status.message(), HasSubstr("enough"));
}

// A graph may contain the op itself, with any attributes.
TEST_F(FuseScalarLoops, MalformedNodesAreErrors) {
  struct Attributes {
    std::vector<std::string> ops = {"Less", "AddV2"};
    std::vector<int64_t> operands = {0, 1, 0, 0};
    std::vector<float> params = {0, 0};
    std::vector<DataType> types = {DT_BOOL, DT_FLOAT};
    int64_t condition_ops = 1, condition = 2;
    std::vector<int64_t> next = {3};
  };
  const auto run = [&](const Attributes& a) {
    Node* const node = NodeBuilder(g_, "_ScalarLoop")
                           .InputList({Feed(1.f)})
                           .InputList({Feed(50.f)})
                           .Attr("variable_types", std::vector<DataType>{DT_FLOAT})
                           .Attr("invariant_types", std::vector<DataType>{DT_FLOAT})
                           .Attr("fused_ops", a.ops)
                           .Attr("operands", a.operands)
                           .Attr("params", a.params)
                           .Attr("types", a.types)
                           .Attr("num_condition_ops", a.condition_ops)
                           .Attr("condition", a.condition)
                           .Attr("next", a.next)
                           .Build();
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_);
    return session.Run(feeds_, {Output(node, 0)});
  };
  const absl::StatusOr<Tensors> good = run({});
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ((*good)[0].scalar<float>(), 64);
  const auto refused = [&](const Attributes& a) {
    const absl::StatusCode code = run(a).status().code();
    return code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kUnimplemented;
  };
  EXPECT_TRUE(refused({.ops = {"Less"}}));
  EXPECT_TRUE(refused({.ops = {"Less", "MatMul"}}));
  EXPECT_TRUE(refused({.operands = {0, 1, 0, 4}}));
  EXPECT_TRUE(refused({.operands = {-1, 1, 0, 0}}));
  EXPECT_TRUE(refused({.operands = {0, 1, 0, 2}})) << "a float and a bool";
  EXPECT_TRUE(refused({.params = {0}}));
  EXPECT_TRUE(refused({.types = {DT_BOOL, DT_DOUBLE}}));
  EXPECT_TRUE(refused({.types = {DT_BOOL, DT_STRING}}));
  EXPECT_TRUE(refused({.condition_ops = 3}));
  EXPECT_TRUE(refused({.condition_ops = 0})) << "the condition is computed later";
  EXPECT_TRUE(refused({.condition = 0})) << "a float";
  EXPECT_TRUE(refused({.condition = 1 << 20}));
  EXPECT_TRUE(refused({.next = {}}));
  EXPECT_TRUE(refused({.next = {2}})) << "a bool";
  EXPECT_TRUE(refused({.next = {4}}));
}

}  // namespace
}  // namespace weir
