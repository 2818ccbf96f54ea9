#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

// Control edges to nodes that only compute.
namespace weir {
namespace {

using ::testing::Contains;
using ::testing::Not;

class PruneControlEdgesTest : public testing::Test {
 protected:
  Tensors Run(const Outputs& ys, SessionOptions options = {.num_threads = 2}) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, std::move(options));
    if (init_.valid()) {
      EXPECT_TRUE(session.Run({}, {}, {init_}).ok());
    }
    ops_.clear();
    std::vector<NodeTrace> trace;
    const auto out = session.Run(feeds_, ys, {}, {.trace = &trace});
    EXPECT_TRUE(out.ok()) << out.status();
    for (const NodeTrace& node : trace) ops_.insert(node.op);
    return out.ok() ? *out : Tensors(ys.size());
  }
  Output Input(const Shape& shape) {
    Tensor t(DT_FLOAT, shape);
    for (int64_t i = 0; i < t.num_elements(); ++i) t.data<float>()[i] = 0.25f * (i % 7) - 0.5f;
    const Output x = Placeholder(g_, DT_FLOAT, shape);
    feeds_.emplace_back(x, t);
    return x;
  }
  Variable Counter(absl::string_view name) {
    const Variable v = GetVariable(g_, name, {}, Zeros());
    init_ = GlobalVariablesInitializer(g_);
    return v;
  }
  // Returns the value with control edges from all of `others`.
  Output WithControls(const Outputs& others, const Output& value) {
    std::vector<Operation> ends;
    for (const Output& other : others) ends.emplace_back(other);
    const ControlDependencies after(g_, {Group(g_, ends)});
    return Identity(value);
  }

  Graph g_;
  Feeds feeds_;
  Operation init_;
  std::multiset<std::string> ops_;
};

// Python's gradients of Mul and MatMul: each waits for both.
TEST_F(PruneControlEdgesTest, GradientsThatAreTiedTogetherAreFused) {
  const Output a = Input({40, 40}), b = Input({40, 40}), dy = Input({40, 40});
  const Output da = dy * b, db = dy * a;
  const Output x = Tanh(WithControls({da, db}, da)), y = Tanh(WithControls({da, db}, db));
  const Tensors got = Run({x, y});
  EXPECT_THAT(ops_, testing::ElementsAre("_FusedElementwise", "_FusedElementwise"));
  const Tensors want = Run({x, y}, {.disable = {"prune_control_edges"}});
  EXPECT_THAT(ops_, Contains("Tanh").Times(2));
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(IdenticalTensors(got[i], want[i]));
}

// As tf.function makes results wait for its reads.
TEST_F(PruneControlEdgesTest, ReadsOrderNothingWithoutWrites) {
  const Variable v = Counter("v");
  const Output x = Input({40, 40}), read = v.read_value();
  const Output y = Tanh(WithControls({read}, x * read) + x);
  const Tensors got = Run({y});
  EXPECT_THAT(ops_, Not(Contains("Mul")));
  const Tensors want = Run({y}, {.disable = {"prune_control_edges"}});
  EXPECT_THAT(ops_, Contains("Mul"));
  EXPECT_TRUE(IdenticalTensors(got[0], want[0]));
}

// The gradient of a variance, as Python builds it: the difference waits for the incoming gradient,
// which depends on a variable that the difference does not depend on. Every user of the difference
// uses that gradient too.
TEST_F(PruneControlEdgesTest, EdgesImpliedByUsersAreDropped) {
  const Variable scale = Counter("scale");
  const Output x = Input({40, 40}), y = Input({40, 40});
  const Output dy = y * scale.read_value();
  const Output two = WithControls({dy}, Const(g_, 2.f)), difference = WithControls({dy}, x - 1.f);
  const Output dx = two * dy * difference;
  const Output counted =
      Counter("steps").AssignAdd(1.f);  // an effect: it makes the time of reads observable
  const Tensor got = Run({dx, counted})[0];
  EXPECT_THAT(ops_, Contains("_FusedElementwise").Times(1));
  EXPECT_THAT(ops_, Not(Contains("Sub")));
  EXPECT_THAT(ops_, Not(Contains("NoOp")));
  EXPECT_TRUE(IdenticalTensors(got, Run({dx, counted}, {.disable = {"prune_control_edges"}})[0]));
  EXPECT_THAT(ops_, Contains("NoOp"));
}

// The gradient of the labels' product with log probabilities, as Python builds it: the waiting
// value is summed and negated before it is combined with the value that it waited for.
TEST_F(PruneControlEdgesTest, EdgesImpliedByIndirectUsersAreDropped) {
  const Variable w = Counter("w");
  const Output y = Input({40, 40}), z = Input({40, 40}) * w.read_value();
  const Output dy = WithControls({z}, y * 2.f);
  const Output dx = ReduceSum(-dy, {1}, /*keep_dims=*/true) * z + dy;
  const Output counted = Counter("steps").AssignAdd(1.f);
  const Tensor got = Run({dx, counted})[0];
  EXPECT_THAT(ops_, Not(Contains("NoOp")));
  EXPECT_TRUE(IdenticalTensors(got, Run({dx, counted}, {.disable = {"prune_control_edges"}})[0]));
  EXPECT_THAT(ops_, Contains("NoOp"));
}

// increment ..> x -> y, z -> read. Neither y nor z contributes the increment without x.
TEST_F(PruneControlEdgesTest, ParallelPathsDoNotRelyOnEachOther) {
  const Variable v = Counter("v");
  const Output x = WithControls({-v.AssignAdd(1.f)}, Input({}) * 2.f);
  const Output y = -x, z = Tanh(x);
  Output seen;
  {
    const ControlDependencies after(g_, {y * z});
    seen = v.read_value();
  }
  EXPECT_EQ(Run({seen}, {.num_threads = 1})[0].scalar<float>(), 1);
}

// An assertion, and an op that would fail by itself.
TEST_F(PruneControlEdgesTest, OpsThatMayFailKeepTheirEdges) {
  const Output x = Input({3}), row = Placeholder(g_, DT_INT32, Shape({1}));
  feeds_.emplace_back(row, Tensor::Vector<int32_t>({7}));
  const Output checked = CheckNumerics(Log(x - 10.f), "a logarithm");
  Output taken, other;
  {
    const ControlDependencies after(g_, {checked});
    taken = Gather(x, row);
    other = Identity(x);
  }
  Session session = *Session::Create(g_, {.num_threads = 1});
  const absl::Status status = session.Run(feeds_, {taken + other}).status();
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("a logarithm"));
}

TEST_F(PruneControlEdgesTest, FetchesKeepTheirControlEdges) {
  const Output x = Input({3}), checked = CheckNumerics(Log(x - 10.f), "a logarithm");
  const Output y = WithControls({checked}, x * 2.f);
  Session session = *Session::Create(g_, {.num_threads = 1});
  for (const auto& status :
       {session.Run(feeds_, {y}).status(), session.Run(feeds_, {}, {Operation(y)}).status()})
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("a logarithm"));
}

// No other path contributes the increment to the read.
TEST_F(PruneControlEdgesTest, EdgesThatOneUserDependsOnStay) {
  const Variable v = Counter("v");
  const Output one = v.AssignAdd(1.f);
  const Output x = WithControls({-one}, Input({}) * 2.f), y = Tanh(x) * one;
  Output seen;
  {
    const ControlDependencies after(g_, {Exp(x)});
    seen = v.read_value();
  }
  EXPECT_EQ(Run({seen, y})[0].scalar<float>(), 1);
}

// increment ..> constants -> computed values ..> read. The pass must not rely on one constant, or
// on a value computed from it, to contribute the increment in place of another.
TEST_F(PruneControlEdgesTest, ConstantsThatContributeAnEffectStay) {
  const Variable v = Counter("v");
  const Output one = v.AssignAdd(1.f);
  Output k, other;
  {
    const ControlDependencies after(g_, {one});
    k = Const(g_, 2.f);
    other = Const(g_, 3.f);
  }
  for (const Output& computed : {-k * k, -k * -other, k + other, -(-(-(-(-(-k)))))}) {
    Output seen;
    {
      const ControlDependencies after(g_, {computed});
      seen = v.read_value();
    }
    EXPECT_EQ(Run({seen}, {.num_threads = 1})[0].scalar<float>(), 1);
    EXPECT_EQ(Run({seen * 1.f, computed}, {.num_threads = 1})[0].scalar<float>(), 1);
  }
}

// Their users wait for the same effect in any case: so they become constants, and so do the values
// computed from them.
TEST_F(PruneControlEdgesTest, RedundantEdgesToConstantsAreDropped) {
  const Variable v = Counter("v");
  const Output x = Input({3}), one = v.AssignAdd(1.f);
  Output k, other;
  {
    const ControlDependencies after(g_, {one});
    k = Const(g_, 2.f);
    other = Const(g_, 3.f);
  }
  const Output y = x * one * (-k * other + k);
  const Tensor got = Run({y})[0];
  EXPECT_THAT(ops_, Not(Contains("Neg")));
  EXPECT_THAT(ops_, Not(Contains("Const")));
  EXPECT_TRUE(IdenticalTensors(got, Run({y}, {.disable = {"prune_control_edges", "fusion"}})[0]));
  EXPECT_THAT(ops_, Contains("Neg"));
}

// The node that a constant waits for runs before an op on the constant fails.
TEST_F(PruneControlEdgesTest, ConstantsOfFailingOpsKeepControlEdges) {
  const Output x = Input({3}), checked = CheckNumerics(Log(x - 10.f), "a logarithm");
  Output row;
  {
    const ControlDependencies after(g_, {Operation(checked)});
    row = Const(g_, Tensor::Vector<int32_t>({7}));
  }
  const Output y = checked * Gather(Const(g_, Tensor::Vector<float>({1, 2})), row);
  Session session = *Session::Create(g_, {.num_threads = 1});
  const absl::Status status = session.Run(feeds_, {y}).status();
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("a logarithm"));
}

// increment ..> x -> another increment ..> read: the read sees the first increment only by way of
// x.
TEST_F(PruneControlEdgesTest, EffectsStayInOrder) {
  const Variable first = Counter("first"), second = Counter("second");
  const Output x = WithControls({-first.AssignAdd(1.f)}, Const(g_, 5.f) * Input({}));
  Output seen;
  {
    const ControlDependencies after(g_, {second.AssignAdd(x)});
    seen = first.read_value();
  }
  EXPECT_EQ(Run({seen})[0].scalar<float>(), 1);
}

// A read that must precede a write whose value waits for it.
TEST_F(PruneControlEdgesTest, ReadsOfVariablesStayInOrder) {
  const Variable v = Counter("v");
  const Output old = v.read_value();
  const Output x = WithControls({Tanh(old)}, Input({}) + 3.f);
  Output both;
  {
    const ControlDependencies after(g_, {v.Assign(x)});
    both = Stack({old, v.read_value()});
  }
  const Tensor seen = Run({both})[0];
  EXPECT_EQ(seen.data<float>()[0], 0);
  EXPECT_EQ(seen.data<float>()[1], 2.5f);
}

TEST_F(PruneControlEdgesTest, AControlEdgeFromAFinalValueWaitsForTheLoop) {
  const Variable rounds = Counter("rounds");
  const Outputs out = WhileLoop([&](const Outputs& v) { return v[0] < 3; },
                                [&](const Outputs& v) {
                                  const ControlDependencies counted(g_, {rounds.AssignAdd(1.f)});
                                  return Outputs{v[0] + 1};
                                },
                                {Const(g_, 0)});
  const Output x = WithControls({-out[0]}, Input({}) * 2.f);
  const ControlDependencies after(g_, {x});
  const Output seen = rounds.read_value();
  for (const std::set<std::string>& disable :
       std::vector<std::set<std::string>>{{}, {"structure_loops"}}) {
    EXPECT_EQ(Run({seen}, {.num_threads = 2, .disable = disable})[0].scalar<float>(), 3);
  }
}

class PruneStackEdgesTest : public PruneControlEdgesTest {
 protected:
  PruneStackEdgesTest() {
    stack_ =
        NodeBuilder(g_, "StackV2").Input(Const(g_, 2)).Attr("elem_type", DT_FLOAT).BuildOutput();
    const Output first = Push(Const(g_, 1.f));
    const ControlDependencies after(g_, {first});
    pushed_ = Push(Const(g_, 2.f));
  }
  Output Push(const Output& value) {
    return NodeBuilder(g_, "StackPushV2").Input(stack_).Input(value).BuildOutput();
  }
  Output Pop(const Output& after) {
    const ControlDependencies pushed(g_, {after});
    return NodeBuilder(g_, "StackPopV2").Input(stack_).Attr("elem_type", DT_FLOAT).BuildOutput();
  }
  Output stack_, pushed_;
};

TEST_F(PruneStackEdgesTest, EdgesForUnobservedStacksAreDropped) {
  const Output popped = Pop(pushed_), x = Input({}) * 2.f;
  const Output y = Tanh(WithControls({-popped}, x));
  Run({y, popped});
  EXPECT_THAT(ops_, Not(Contains("Identity")));
  Run({y, popped}, {.disable = {"prune_control_edges"}});
  EXPECT_THAT(ops_, Contains("Identity"));
}

TEST_F(PruneStackEdgesTest, ForOneThatIsPoppedAgainStay) {
  const Output popped = Pop(pushed_);
  const Output x = WithControls({-popped}, Input({}) * 2.f);
  const Output next = Pop(x);
  const Tensors got = Run({popped, next});
  EXPECT_EQ(got[0].scalar<float>(), 2);
  EXPECT_EQ(got[1].scalar<float>(), 1);
}

}  // namespace
}  // namespace weir
