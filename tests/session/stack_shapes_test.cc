#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/array.h"
#include "weir/ops/control_flow.h"
#include "weir/ops/math.h"
#include "weir/session/session.h"

// What is known of values that are popped from stacks or read from arrays: whether their users are
// fused tells it.
namespace weir {
namespace {

using ::testing::Contains;
using ::testing::Not;

class StackShapes : public testing::Test {
 protected:
  Output NewStack() {
    return NodeBuilder(g_, "StackV2").Input(Const(g_, 4)).Attr("elem_type", DT_FLOAT).BuildOutput();
  }
  Output Push(const Output& stack, const Output& value, const std::vector<Operation>& after = {}) {
    const ControlDependencies pushed(g_, after);
    return NodeBuilder(g_, "StackPushV2").Input(stack).Input(value).BuildOutput();
  }
  Output Pop(const Output& stack, const Output& after) {
    const ControlDependencies pushed(g_, {after});
    return NodeBuilder(g_, "StackPopV2").Input(stack).Attr("elem_type", DT_FLOAT).BuildOutput();
  }
  Output Input(const Shape& shape, float value) {
    Tensor t(DT_FLOAT, shape);
    for (float& f : t.flat<float>()) f = value;
    const Output x = Placeholder(g_, DT_FLOAT, shape);
    feeds_.emplace_back(x, t);
    return x;
  }
  static Output Chain(const Output& x) { return Tanh(Square(-x)); }

  Tensors Run(const Outputs& ys) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, {.num_threads = 2});
    ops_.clear();
    std::vector<NodeTrace> trace;
    const auto out = session.Run(feeds_, ys, {}, {.trace = &trace});
    EXPECT_TRUE(out.ok()) << out.status();
    for (const NodeTrace& node : trace) ops_.insert(node.op);
    return out.ok() ? *out : Tensors(ys.size());
  }

  Graph g_;
  Feeds feeds_;
  std::multiset<std::string> ops_;
};

TEST_F(StackShapes, AreThoseOfWhatIsPushed) {
  const Output stack = NewStack();
  const Output popped = Pop(stack, Push(stack, Input({3, 5}, 0.5f)));
  const Tensors got = Run({Chain(popped)});
  EXPECT_THAT(ops_, Contains("_FusedElementwise"));
  EXPECT_EQ(got[0].shape(), Shape({3, 5}));
  EXPECT_NEAR(got[0].data<float>()[14], std::tanh(0.25f), 1e-6);
}

// A loop pushes, a second one pops: the shapes of what goes round in that one follow, too.
TEST_F(StackShapes, GoThroughLoops) {
  const Output stack = NewStack(), x = Input({3, 5}, 0.5f);
  const EnterOptions constant = {.is_constant = true};
  const auto loop = [&](const std::string& frame, const Output& start,
                        const std::function<Output(const Output& stack, const Output& v)>& body) {
    const Output i_enter = Enter(Const(g_, 0), frame), v_enter = Enter(start, frame);
    const Output i = Merge({i_enter, i_enter}).output, v = Merge({v_enter, v_enter}).output;
    const Output go_on = LoopCond(i < Enter(Const(g_, 3), frame, constant));
    const SwitchResult is = Switch(i, go_on), vs = Switch(v, go_on);
    const Output next = body(Enter(stack, frame, constant), Identity(vs.on_true));
    EXPECT_TRUE(
        g_.SetInput(i.node, 1, NextIteration(is.on_true + Enter(Const(g_, 1), frame, constant)))
            .ok());
    EXPECT_TRUE(g_.SetInput(v.node, 1, NextIteration(next)).ok());
    return Exit(vs.on_false);
  };
  const Output forward =
      loop("forward", x, [&](const Output& s, const Output& v) { return Push(s, v) + v; });
  const Output backward = loop("backward", forward, [&](const Output& s, const Output& v) {
    return Chain(Pop(s, v)) + v * v;
  });
  const Tensors got = Run({backward});
  EXPECT_EQ(ops_.count("_FusedElementwise"), 3);
  EXPECT_EQ(got[0].shape(), Shape({3, 5}));
}

// Of arrays too, whatever way values come there.
TEST_F(StackShapes, AreKnownOfTensorArrays) {
  for (const bool scattered : {false, true}) {
    const Output x = Input({2, 3, 5}, 0.5f), y = Input({3, 5}, 0.25f);
    Node* const array =
        NodeBuilder(g_, "TensorArrayV3").Input(Const(g_, 2)).Attr("dtype", DT_FLOAT).Build();
    const Output handle = array->output(0);
    Output flow = array->output(1);
    if (scattered) {
      flow = NodeBuilder(g_, "TensorArrayScatterV3")
                 .Input(handle)
                 .Input(Const(g_, {0, 1}))
                 .Input(x)
                 .Input(flow)
                 .BuildOutput();
    } else {
      for (const int at : {0, 1}) {
        flow = NodeBuilder(g_, "TensorArrayWriteV3")
                   .Input(handle)
                   .Input(Const(g_, at))
                   .Input(y)
                   .Input(flow)
                   .BuildOutput();
      }
    }
    const Output read = NodeBuilder(g_, "TensorArrayReadV3")
                            .Input(handle)
                            .Input(Const(g_, 1))
                            .Input(flow)
                            .Attr("dtype", DT_FLOAT)
                            .BuildOutput();
    const Tensors got = Run({Chain(read)});
    EXPECT_THAT(ops_, Contains("_FusedElementwise"));
    EXPECT_EQ(got[0].shape(), Shape({3, 5}));
  }
}

TEST_F(StackShapes, DifferentOnesAreUnknown) {
  const Output stack = NewStack(), x = Input({3, 5}, 0.5f), y = Input({2}, 1);
  const Output first = Push(stack, x), second = Push(stack, y, {first});
  const Output one = Pop(stack, second), other = Pop(stack, one);
  const Tensors got = Run({Chain(one), Chain(other)});
  EXPECT_THAT(ops_, Not(Contains("_FusedElementwise")));
  EXPECT_EQ(got[0].shape(), Shape({2}));
  EXPECT_EQ(got[1].shape(), Shape({3, 5}));
}

TEST_F(StackShapes, AreUnknownIfTheHandleGoesElsewhere) {
  const Output stack = NewStack(), x = Input({3, 5}, 0.5f), y = Input({2}, 1);
  const Output yes = Placeholder(g_, DT_BOOL, {});
  feeds_.emplace_back(yes, Tensor::Scalar(true));
  const Output elsewhere = Push(Switch(stack, yes).on_true, y);
  const Output first = Push(stack, x, {elsewhere});
  const Output one = Pop(stack, first), other = Pop(stack, one);
  const Tensors got = Run({Chain(one), Chain(other)});
  EXPECT_THAT(ops_, Not(Contains("_FusedElementwise")));
  EXPECT_EQ(got[1].shape(), Shape({2}));
}

}  // namespace
}  // namespace weir
