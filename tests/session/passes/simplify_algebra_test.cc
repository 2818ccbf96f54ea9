#include <cmath>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/random/random.h"
#include "weir/session/session.h"

// Redundant values are not computed again: the trace of a step shows which nodes run.
namespace weir {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class Simplify : public testing::Test {
 protected:
  Output X(DataType type = DT_FLOAT, Shape shape = {2, 3}) {
    return Placeholder(g_, type, shape, "x");
  }

  // Returns the nodes that run for y; stores its value in value_.
  std::set<std::string> NodesFor(const Output& y, std::set<std::string> disable = {}) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    absl::StatusOr<Session> session = Session::Create(g_, {.disable = std::move(disable)});
    EXPECT_TRUE(session.ok()) << session.status();
    std::vector<NodeTrace> trace;
    Feeds feeds;
    if (const auto x = g_.FindOutput("x"); x.ok()) feeds.emplace_back(*x, fed_);
    const auto out = session->Run(feeds, {y}, {}, {.trace = &trace});
    EXPECT_TRUE(out.ok()) << out.status();
    if (out.ok()) value_ = (*out)[0];
    std::set<std::string> names;
    for (const NodeTrace& node : trace) names.insert(node.node);
    return names;
  }

  // Returns the nodes between x and Neg(y), which is fetched.
  std::set<std::string> NodesBehind(const Output& y, std::set<std::string> disable = {}) {
    std::set<std::string> names = NodesFor(Negative(y, "end"), std::move(disable));
    EXPECT_EQ(names.erase("end"), 1u);
    names.erase("x");
    return names;
  }

  Graph g_;
  Tensor fed_ = Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor value_;
};

TEST_F(Simplify, PassThroughNodesAreNotRun) {
  const Output x = X();
  const Output same = Transpose(Reshape(StopGradient(Identity(x)), {2, 3}), {0, 1});
  EXPECT_THAT(NodesBehind(Cast(same, DT_FLOAT)), UnorderedElementsAre());
  EXPECT_EQ(value_.flat<float>()[5], -6);
}

TEST_F(Simplify, ShapeChangesAreKept) {
  EXPECT_THAT(NodesBehind(Reshape(X(), {3, 2}, "r")), UnorderedElementsAre("r"));
  EXPECT_EQ(value_.shape(), Shape({3, 2}));
}

TEST_F(Simplify, IsTurnedOffByName) {
  const Output y = Identity(X(), "same");
  EXPECT_THAT(NodesBehind(y, {"remove_no_ops"}), Contains("same"));
}

TEST_F(Simplify, FetchedPassThroughNodesAreNotRun) {
  const Output same = Identity(Reshape(X(), {2, 3}), "same");
  EXPECT_THAT(NodesFor(same), UnorderedElementsAre());
  EXPECT_EQ(value_.flat<float>()[5], 6);
  EXPECT_THAT(NodesFor(same, {"remove_no_ops"}), Contains("same"));
}

TEST_F(Simplify, ATargetIsRun) {
  const Output x = X(), target = Identity(x, "target");
  Session session = *Session::Create(g_);
  std::vector<NodeTrace> trace;
  ASSERT_TRUE(session.Run({{x, fed_}}, {target}, {target}, {.trace = &trace}).ok());
  ASSERT_EQ(trace.size(), 1u);
  EXPECT_EQ(trace[0].node, "target");
}

TEST_F(Simplify, AControlEdgeKeepsItsNode) {
  const Variable v = GetVariable(g_, "v", {}, Zeros());
  const Output x = Placeholder(g_, DT_FLOAT, {}, "x");
  fed_ = Tensor::Scalar(5.f);
  const Operation assign = v.Assign(x);
  Output after;
  {
    const ControlDependencies order(g_, {assign});
    after = Identity(x, "after");
  }
  EXPECT_THAT(NodesFor(Negative(after, "end")), Contains(HasSubstr("ssign")));
}

// Python ties a constant to its branch by a control edge, and uses the same kind of edge for an
// explicit dependency of the author.
TEST_F(Simplify, ExplicitControlEdgesOfBranchConstantsAreKept) {
  const Variable v = GetVariable(g_, "v", {1}, Zeros());
  const Output x = Placeholder(g_, DT_FLOAT, {}, "x");
  const Outputs out = Cond(
      Greater(x, Const(g_, 0.f)),
      [&]() -> Outputs {
        const ControlDependencies order(g_, {v.AssignAdd(Const(g_, {5.f}))});
        return {AddOp("ResourceGather", {v.handle(), Const(g_, 0)}, {{"dtype", DT_FLOAT}})};
      },
      [&]() -> Outputs { return {x * Const(g_, 3.f)}; });
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g_)).ok());
  const auto run = [&](float value) {
    const auto result = session.Run({{x, Tensor::Scalar(value)}}, out);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? (*result)[0].scalar<float>() : 0;
  };
  EXPECT_EQ(run(1), 5);
  EXPECT_EQ(run(2), 10);
  EXPECT_EQ(run(-2), -6);
}

TEST_F(Simplify, TimesOneMinusZeroAndTheLike) {
  const Output x = X();
  const Output one = Const(g_, 1.f), zero = Const(g_, 0.f), ones = Const(g_, {1.f, 1.f, 1.f});
  EXPECT_THAT(NodesBehind((one * (x * ones) / one) - zero), UnorderedElementsAre());
  EXPECT_EQ(value_.flat<float>()[0], -1);
}

TEST_F(Simplify, OnesThatBroadcastAreMultiplied) {
  const Output row = Placeholder(g_, DT_FLOAT, {3}, "x");
  fed_ = Tensor::Of<float>({3}, {1, 2, 3});
  const Output ones = Fill(Const(g_, {2, 3}), Const(g_, 1.f));
  EXPECT_THAT(NodesBehind(Multiply(row, ones, "m")), UnorderedElementsAre("m"));
  EXPECT_EQ(value_.shape(), Shape({2, 3}));
}

TEST_F(Simplify, PlusZeroTurnsMinusZeroIntoZero) {
  fed_ = Tensor::Of<float>({2, 3}, {-0.f, 1, 2, 3, 4, 5});
  EXPECT_THAT(NodesBehind(Add(X(), Const(g_, 0.f), "a")), UnorderedElementsAre("a"));
  EXPECT_TRUE(std::signbit(value_.flat<float>()[0]));
}

TEST_F(Simplify, PlusZeroOfIntegersIsNothing) {
  fed_ = Tensor::Of<int32_t>({2}, {7, 8});
  EXPECT_THAT(NodesBehind(X(DT_INT32, {2}) + Const(g_, 0)), UnorderedElementsAre());
}

TEST_F(Simplify, ThereAndBackIsNothing) {
  const Output x = X();
  const Output same = Transpose(Transpose(Negative(Negative(x)), {1, 0}), {1, 0});
  EXPECT_THAT(NodesFor(Square(same, "end")), UnorderedElementsAre("end"));
  EXPECT_EQ(value_.flat<float>()[3], 16);
}

TEST_F(Simplify, EqualExpressionsAreComputedOnce) {
  const Output x = X();
  const auto f = [&](const char* name) { return ReduceSum(Square(x), {1}, false, name); };
  const Output sum = f("one") + f("two");
  EXPECT_THAT(NodesFor(sum), Not(Contains("two")));
  EXPECT_EQ(value_.flat<float>()[0], 2 * (1 + 4 + 9));
  EXPECT_THAT(NodesFor(sum, {"eliminate_common_subexpressions"}), Contains("two"));
}

TEST_F(Simplify, DifferentAttributesAreDifferent) {
  const Output x = X();
  const Output y = MatMul(x, x, {.transpose_a = true, .name = "a"});
  const Output z = MatMul(x, Transpose(x, {1, 0}), {.name = "b"});
  EXPECT_THAT(NodesBehind(ReduceSum(y, {0, 1}) + ReduceSum(z, {0, 1})), Contains("b"));
}

TEST_F(Simplify, RandomNumbersDifferInEachIteration) {
  const Output a = RandomUniform(g_, {100}), b = RandomUniform(g_, {100});
  NodesFor(Subtract(a, b));
  EXPECT_NE(value_.flat<float>()[0], 0);
}

TEST_F(Simplify, AVariableReadTwiceMayHaveTwoValues) {
  const Variable v = GetVariable(g_, "v", {}, Zeros());
  const Output before = v.read_value();
  Output after;
  {
    const ControlDependencies first(g_, {before});
    const ControlDependencies then(g_, {v.AssignAdd(1.f)});
    after = v.read_value();
  }
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g_)).ok());
  const auto out = session.Run({Subtract(after, before)});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), 1);
}

TEST_F(Simplify, BranchesKeepTheirOwn) {
  const Output x = Placeholder(g_, DT_FLOAT, {}, "x");
  const Output y = Cond(
      Greater(x, Const(g_, 0.f)), [&] { return Square(x) * 1.f; }, [&] { return Square(x) + 1.f; });
  fed_ = Tensor::Scalar(3.f);
  NodesFor(y);
  EXPECT_EQ(value_.scalar<float>(), 9);
  fed_ = Tensor::Scalar(-3.f);
  NodesFor(y);
  EXPECT_EQ(value_.scalar<float>(), 10);
}

TEST_F(Simplify, AnUnknownNameIsAnError) {
  const auto session = Session::Create(g_, {.disable = {"no_opps"}});
  EXPECT_EQ(session.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("no_opps"));
}

// The initial values of large variables are computed in the step, in memory that becomes the
// variable's: as constants they would stay allocated. Values with other uses, and small ones, are
// folded.
TEST_F(Simplify, LargeInitialValuesAreNoConstants) {
  const Shape large({300, 300}), small({3, 3});
  const auto halves = [&](const Shape& shape, const char* name) {
    return Fill(shape, Const(g_, 0.5f), name);
  };
  const Variable v = MakeVariable(halves(large, "v_value") * 2.f, {.name = "v"}),
                 w = MakeVariable(halves(small, "w_value"), {.name = "w"});
  const Output both = halves(large, "both");
  const Variable u = MakeVariable(both, {.name = "u"});
  Session session = *Session::Create(g_);
  std::vector<NodeTrace> trace;
  ASSERT_TRUE(session.Run({}, {both}, {GlobalVariablesInitializer(g_)}, {.trace = &trace}).ok());
  std::set<std::string> names;
  for (const NodeTrace& node : trace) names.insert(node.node);
  EXPECT_THAT(names, Contains("v_value"));
  EXPECT_THAT(names, Not(Contains("w_value")));
  EXPECT_THAT(names, Not(Contains("both")));
  const void* made = nullptr;
  for (const NodeTrace& node : trace) {
    if (node.op == "Mul" || node.op == "_FusedElementwise") made = node.outputs[0].data;
  }
  const auto values = session.Run({v.value(), u.value()});
  ASSERT_TRUE(values.ok());
  EXPECT_EQ((*values)[0].raw(), made) << "copied";
  EXPECT_EQ((*values)[0].data<float>()[89999], 1.f);
  EXPECT_EQ((*values)[1].data<float>()[89999], 0.5f);
}

}  // namespace
}  // namespace weir
