#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

// Shape inference for values that are popped from stacks or read from arrays: their users are fused
// only if the shapes are known.
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

TEST_F(StackShapes, AreShapesOfPushedValues) {
  const Output stack = NewStack();
  const Output popped = Pop(stack, Push(stack, Input({3, 5}, 0.5f)));
  const Tensors got = Run({Chain(popped)});
  EXPECT_THAT(ops_, Contains("_FusedElementwise"));
  EXPECT_EQ(got[0].shape(), Shape({3, 5}));
  EXPECT_NEAR(got[0].data<float>()[14], std::tanh(0.25f), 1e-6);
}

// A loop pushes, a second one pops: this determines the shapes of the second loop's loop-carried
// values, too.
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

// Also for arrays, whatever op stores the values.
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

TEST_F(StackShapes, AreUnknownIfTheHandleEscapes) {
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

// ---- lists, which are values

class ListShapes : public StackShapes {
 protected:
  Output NewList() {
    return NodeBuilder(g_, "EmptyTensorList")
        .Input(Const(g_, -1))
        .Input(Const(g_, -1))
        .Attr("element_dtype", DT_FLOAT)
        .BuildOutput();
  }
  static Output Add(const char* op, const Outputs& inputs) {
    return AddOp(op, std::vector<Arg>(inputs.begin(), inputs.end()), {{"element_dtype", DT_FLOAT}});
  }
  struct Popped {
    Output list, tensor;
  };
  static Popped PopBack(const Output& list) {
    Node* const pop = NodeBuilder(list.graph(), "TensorListPopBack")
                          .Input(list)
                          .Input(Const(list.graph(), -1))
                          .Attr("element_dtype", DT_FLOAT)
                          .Build();
    return {pop->output(0), pop->output(1)};
  }
};

TEST_F(ListShapes, AreShapesOfStoredValues) {
  const Output x = Input({3, 5}, 0.5f);
  const Output list = Add("TensorListPushBack", {Add("TensorListPushBack", {NewList(), x}), x});
  const Output set = Add("TensorListSetItem", {list, Const(g_, 0), x * 2.f});
  const Output got = Add("TensorListGetItem", {set, Const(g_, 1), Const(g_, -1)});
  const Output rows = Add("TensorListFromTensor", {Input({4, 2, 7}, 1), Const(g_, -1)});
  const Output row = Add("TensorListGetItem", {rows, Const(g_, 3), Const(g_, -1)});
  const Tensors out = Run({Chain(PopBack(set).tensor), Chain(got), Chain(row)});
  EXPECT_EQ(ops_.count("_FusedElementwise"), 3);
  EXPECT_EQ(out[0].shape(), Shape({3, 5}));
  EXPECT_EQ(out[2].shape(), Shape({2, 7}));
}

// One loop pushes, the next one pops the elements.
TEST_F(ListShapes, GoThroughLoops) {
  const Output x = Input({3, 5}, 0.5f), three = Const(g_, 3);
  const Outputs pushed =
      WhileLoop([&](const Outputs& v) { return v[0] < three; },
                [&](const Outputs& v) {
                  return Outputs{v[0] + 1, Add("TensorListPushBack", {v[1], v[2]}), v[2] * 2.f};
                },
                {Const(g_, 0), NewList(), x});
  const Output zeros = Placeholder(g_, DT_FLOAT, Shape::UnknownRank());
  feeds_.emplace_back(zeros, Tensor(DT_FLOAT, Shape({3, 5})));
  std::fill_n(feeds_.back().second.data<float>(), 15, 0.f);
  const Outputs popped = WhileLoop([&](const Outputs& v) { return v[0] < three; },
                                   [&](const Outputs& v) {
                                     const Popped p = PopBack(v[1]);
                                     return Outputs{v[0] + 1, p.list, v[2] + Chain(p.tensor)};
                                   },
                                   {Const(g_, 0), pushed[1], zeros});
  ASSERT_EQ(popped.size(), 3) << g_.status();
  const Tensors out = Run({popped[2]});
  EXPECT_EQ(ops_.count("_FusedElementwise"), 3);
  EXPECT_NEAR(out[0].data<float>()[14], std::tanh(0.25f) + std::tanh(1.f) + std::tanh(4.f), 1e-5);
}

TEST_F(ListShapes, AreUnknownOfDifferentOnes) {
  const Output x = Input({3, 5}, 0.5f), y = Input({2}, 1);
  const Popped last =
      PopBack(Add("TensorListPushBack", {Add("TensorListPushBack", {NewList(), x}), y}));
  const Tensors out = Run({Chain(last.tensor), Chain(PopBack(last.list).tensor)});
  EXPECT_THAT(ops_, Not(Contains("_FusedElementwise")));
  EXPECT_EQ(out[0].shape(), Shape({2}));
  EXPECT_EQ(out[1].shape(), Shape({3, 5}));
}

// Two concatenated lists, and a fed list, may contain anything.
TEST_F(ListShapes, AreUnknownIfAnotherValueFlowsIn) {
  const Output x = Input({3, 5}, 0.5f), y = Input({2}, 1);
  const Output joined =
      Add("TensorListConcatLists", {Add("TensorListPushBack", {NewList(), y}), NewList()});
  const Popped last = PopBack(Add("TensorListPushBack", {joined, x}));
  const Tensors out = Run({Chain(last.tensor), Chain(PopBack(last.list).tensor)});
  EXPECT_THAT(ops_, Not(Contains("_FusedElementwise")));
  EXPECT_EQ(out[0].shape(), Shape({3, 5}));
  EXPECT_EQ(out[1].shape(), Shape({2}));
  const Output some = Placeholder(g_, DT_VARIANT, {});
  feeds_.emplace_back(some, Run({joined})[0]);
  const Popped fed = PopBack(Add("TensorListPushBack", {some, x}));
  EXPECT_EQ(Run({Chain(PopBack(fed.list).tensor)})[0].shape(), Shape({2}));
  EXPECT_THAT(ops_, Not(Contains("_FusedElementwise")));
}

// The elements of a list that is an element of another one are not those of the other one.
TEST_F(ListShapes, AreUnknownOfListsInLists) {
  const Output x = Input({3, 5}, 0.5f);
  const auto scalar = [&] { return Const(g_, -1); };
  const auto list_of = [&](DataType type) {
    return AddOp("EmptyTensorList", {scalar(), scalar()}, {{"element_dtype", type}});
  };
  const Output inner = Add("TensorListPushBack", {list_of(DT_FLOAT), x});
  const Output outer =
      AddOp("TensorListPushBack", {list_of(DT_VARIANT), inner}, {{"element_dtype", DT_VARIANT}});
  const Output got =
      AddOp("TensorListGetItem", {outer, Const(g_, 0), scalar()}, {{"element_dtype", DT_VARIANT}});
  const Output item =
      AddOp("TensorListGetItem", {got, Const(g_, 0), scalar()}, {{"element_dtype", DT_FLOAT}});
  const Tensors out = Run({item, ShapeTensor(item)});
  EXPECT_EQ(out[0].shape(), Shape({3, 5}));
  ASSERT_EQ(out[1].num_elements(), 2);
  EXPECT_EQ(out[1].data<int32_t>()[1], 5);
}

}  // namespace
}  // namespace weir
