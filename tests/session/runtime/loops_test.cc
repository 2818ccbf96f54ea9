// While loops: results, termination, and errors.

#include "weir/ops/framework/while_loop.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/containers/tensor_array.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/test_models.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoopsTest : public ::testing::Test {
 protected:
  absl::StatusOr<Tensors> Try(const Outputs& fetches, const Feeds& feeds = {}) {
    if (!g_.status().ok()) return g_.status();
    Session session = *Session::Create(g_, {.num_threads = 2});
    return session.Run(feeds, fetches);
  }
  Tensors Run(const Outputs& fetches, const Feeds& feeds = {}) {
    auto out = Try(fetches, feeds);
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *std::move(out) : Tensors(fetches.size(), Tensor::Scalar(0.f));
  }
  Outputs Repeat(Output times, const LoopBodyFn& body, const Outputs& vars,
                 WhileOptions options = {}) {
    return RepeatedBody(g_, times, body, vars, options);
  }
  static std::vector<float> Floats(const Tensor& t) {
    return {t.flat<float>().begin(), t.flat<float>().end()};
  }

  Graph g_;
};

TEST_F(LoopsTest, CountsUpToALimitThatIsFed) {
  const Output n = Placeholder(g_, DT_INT32, {});
  const Outputs out = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                                [](const Outputs& v) {
                                  return Outputs{v[0] + 1, v[1] * 2};
                                },
                                {Const(g_, 0), Const(g_, 1)});
  for (const int limit : {0, 1, 2, 10}) {
    const Tensors r = Run(out, {{n, Tensor::Scalar<int32_t>(limit)}});
    EXPECT_EQ(r[0].scalar<int32_t>(), limit);
    EXPECT_EQ(r[1].scalar<int32_t>(), 1 << limit);
  }
}

TEST_F(LoopsTest, ValuesChangePlaces) {
  const Outputs out = Repeat(Const(g_, 4),
                             [](const Outputs& v) {
                               return Outputs{v[1], v[2], v[0]};
                             },
                             {Const(g_, {1.f, 2.f}), Const(g_, {3.f, 4.f}), Const(g_, {5.f, 6.f})});
  const Tensors r = Run(out);
  EXPECT_THAT(Floats(r[0]), ElementsAre(3, 4));
  EXPECT_THAT(Floats(r[1]), ElementsAre(5, 6));
  EXPECT_THAT(Floats(r[2]), ElementsAre(1, 2));
}

TEST_F(LoopsTest, FibonacciInPlace) {
  const Output one = Const(g_, 1.f);
  const Outputs out = Repeat(Const(g_, 20),
                             [](const Outputs& v) {
                               return Outputs{v[1], v[0] + v[1]};
                             },
                             {one, one});
  EXPECT_EQ(Run({out[1]})[0].scalar<float>(), 17711);
}

TEST_F(LoopsTest, NestedLoopsStartAfreshEachTime) {
  // sum over i < 5 of sum over j < i of (i * j)
  const Outputs outer = WhileLoop([&](const Outputs& v) { return v[0] < 5; },
                                  [&](const Outputs& v) {
                                    const Outputs inner =
                                        WhileLoop([&](const Outputs& w) { return w[0] < v[0]; },
                                                  [&](const Outputs& w) {
                                                    return Outputs{w[0] + 1, w[1] + v[0] * w[0]};
                                                  },
                                                  {Const(g_, 0), v[1]});
                                    return Outputs{v[0] + 1, inner[1]};
                                  },
                                  {Const(g_, 0), Const(g_, 0)});
  int want = 0;
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < i; ++j) want += i * j;
  }
  EXPECT_EQ(Run({outer[1]})[0].scalar<int32_t>(), want);
}

TEST_F(LoopsTest, ConditionalsAreEvaluatedInEachIteration) {
  const Outputs out = WhileLoop(
      [&](const Outputs& v) { return v[0] < 6; },
      [&](const Outputs& v) {
        const Output odd = Equal(FloorMod(v[0], Const(g_, 2)), Const(g_, 1));
        return Outputs{v[0] + 1, Cond(
                                     odd, [&] { return v[1] * 10; }, [&] { return v[1] + v[0]; })};
      },
      {Const(g_, 0), Const(g_, 1)});
  int want = 1;
  for (int i = 0; i < 6; ++i) want = i % 2 == 1 ? want * 10 : want + i;
  EXPECT_EQ(Run({out[1]})[0].scalar<int32_t>(), want);
}

TEST_F(LoopsTest, ALoopInABranchRunsOnlyIfTheBranchIsTaken) {
  const Variable v = GetVariable(g_, "v", {}, Zeros());
  const Output take = Placeholder(g_, DT_BOOL, {});
  const Output out = Cond(
      take,
      [&] {
        return Repeat(Const(g_, 3),
                      [&](const Outputs& w) { return Outputs{w[0] + v.AssignAdd(1.f)}; },
                      {Const(g_, 0.f)})[0];
      },
      [&] { return Const(g_, -1.f); });
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(Feeds{}, Outputs{}, {Operation(v.initializer())}).ok());
  EXPECT_EQ((*session.Run({{take, Tensor::Scalar(false)}}, {out}))[0].scalar<float>(), -1);
  EXPECT_EQ((*session.Run(Feeds{}, {v.value()}))[0].scalar<float>(), 0);
  EXPECT_EQ((*session.Run({{take, Tensor::Scalar(true)}}, {out}))[0].scalar<float>(), 1 + 2 + 3);
  EXPECT_EQ((*session.Run(Feeds{}, {v.value()}))[0].scalar<float>(), 3);
}

TEST_F(LoopsTest, ShapesMayGrowIfTheyAreSaidTo) {
  const Output x = Const(g_, {1.f, 2.f});
  const Outputs out = Repeat(Const(g_, 3),
                             [](const Outputs& v) {
                               return Outputs{Concat({v[0], v[0] + 1.f}, 0)};
                             },
                             {x}, {.shape_invariants = std::vector<Shape>{{}, {-1}}});
  EXPECT_EQ(out[0].shape(), Shape({-1}));
  EXPECT_THAT(Floats(Run(out)[0]), ElementsAre(1, 2, 2, 3, 2, 3, 3, 4, 2, 3, 3, 4, 3, 4, 4, 5));
}

TEST_F(LoopsTest, BigValuesKeepTheirContents) {
  const Output x = Fill(Const(g_, {100, 1000}), Const(g_, 1.f));
  const Outputs out = Repeat(Const(g_, 5),
                             [](const Outputs& v) {
                               return Outputs{v[1], v[0] + v[1]};
                             },
                             {x, x});
  const Tensor r = Run({out[1]})[0];
  for (const float f : {r.flat<float>()[0], r.flat<float>()[99999]}) EXPECT_EQ(f, 13);
}

TEST_F(LoopsTest, StopsAfterTheMostIterations) {
  const Outputs out = WhileLoop([&](const Outputs&) { return Const(g_, true); },
                                [](const Outputs& v) { return Outputs{v[0] + 2}; }, {Const(g_, 0)},
                                {.maximum_iterations = 7});
  EXPECT_EQ(Run(out)[0].scalar<int32_t>(), 14);
}

TEST_F(LoopsTest, FetchesValuesOfTheLastIteration) {
  Output inside;
  const Outputs out = Repeat(Const(g_, 3),
                             [&](const Outputs& v) {
                               inside = v[0] + 1.f;
                               return Outputs{inside};
                             },
                             {Const(g_, 0.f)});
  EXPECT_EQ(Run(out)[0].scalar<float>(), 3);
  const absl::Status s = Try({inside}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_THAT(s.message(), AllOf(HasSubstr(inside.node->name()), HasSubstr("not fetchable"),
                                 HasSubstr("while/while_context")));
}

TEST_F(LoopsTest, ValuesFromOutsideNeedAnEnter) {
  const Output x = Const(g_, 1.f);
  const Output inside = Enter(x, "frame");
  const Output mixed = inside + x;
  const absl::Status s = Try({Exit(mixed)}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_THAT(s.message(), AllOf(HasSubstr(mixed.node->name()), HasSubstr("different frames")));
  EXPECT_TRUE(absl::IsInvalidArgument(Try({Exit(x)}).status()));
}

TEST_F(LoopsTest, AnErrorInAnIterationNamesItsNodeAndEndsTheStep) {
  const Output x = Placeholder(g_, DT_INT32, {});
  const Outputs out = WhileLoop([&](const Outputs& v) { return v[0] < 5; },
                                [&](const Outputs& v) {
                                  return Outputs{v[0] + 1, FloorDiv(v[1], x - v[0], "divide")};
                                },
                                {Const(g_, 0), Const(g_, 100)});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  const auto bad = session.Run({{x, Tensor::Scalar<int32_t>(3)}}, out);
  EXPECT_THAT(bad.status().message(), AllOf(HasSubstr("divide"), HasSubstr("ivision by zero")));
  const auto good = session.Run({{x, Tensor::Scalar<int32_t>(6)}}, out);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ((*good)[1].scalar<int32_t>(), 100 / 6 / 5 / 4 / 3 / 2);
}

TEST_F(LoopsTest, AnEndlessLoopEndsWithItsTimeLimit) {
  const Outputs out = WhileLoop([&](const Outputs&) { return Const(g_, true); },
                                [](const Outputs& v) { return Outputs{v[0] + 1}; }, {Const(g_, 0)});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  const auto r = session.Run(Feeds{}, out, {}, {.timeout = std::chrono::milliseconds(50)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(r.status())) << r.status();
}

TEST_F(LoopsTest, ControlDependenciesFromOutsideAreKept) {
  const Variable v = GetVariable(g_, "v", {}, Zeros());
  const Output before = v.Assign(5.f);
  const Outputs out = Repeat(Const(g_, 2),
                             [&](const Outputs& w) {
                               const ControlDependencies after(g_, {before});
                               return Outputs{w[0] + v.read_value()};
                             },
                             {Const(g_, 0.f)});
  EXPECT_EQ(Run(out)[0].scalar<float>(), 10);
}

TEST_F(LoopsTest, VariablesOfALoopBodyAreCreatedOutsideTheLoop) {
  const Outputs out = Repeat(Const(g_, 3),
                             [&](const Outputs& w) {
                               const Variable v = GetVariable(g_, "inner", {}, Constant(2.f));
                               return Outputs{w[0] * v.value()};
                             },
                             {Const(g_, 1.f)});
  const Operation init = GlobalVariablesInitializer(g_);
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(Feeds{}, Outputs{}, {init}).ok());
  EXPECT_EQ((*session.Run(Feeds{}, out))[0].scalar<float>(), 8);
}

TEST_F(LoopsTest, BodiesMustReturnTheirArgumentTypes) {
  Repeat(Const(g_, 3), [](const Outputs&) { return Outputs{}; }, {Const(g_, 0.f)});
  EXPECT_THAT(g_.TakeStatus().message(), HasSubstr("must match 'loop_vars'"));
  Repeat(Const(g_, 3),
         [](const Outputs& v) {
           return Outputs{Concat({v[0], v[0]}, 0)};
         },
         {Const(g_, {0.f})});
  EXPECT_THAT(g_.TakeStatus().message(),
              AllOf(HasSubstr("enters the loop with shape"), HasSubstr("shape_invariants")));
  Repeat(Const(g_, 3), [](const Outputs& v) { return Outputs{Cast(v[0], DT_INT32)}; },
         {Const(g_, 0.f)});
  EXPECT_TRUE(absl::IsInvalidArgument(g_.TakeStatus()));
  EXPECT_EQ(Run({Const(g_, 1.f)})[0].scalar<float>(), 1);  // and the graph is still usable
}

TEST_F(LoopsTest, RejectsLoopsNestedTooDeeply) {
  Output x = Const(g_, 1.f);
  for (int i = 0; i < 200; ++i) x = Enter(x, absl::StrCat("frame", i));
  for (int i = 0; i < 200; ++i) x = Exit(x);
  const absl::Status s = Try({x}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_THAT(s.message(), HasSubstr("nested"));
}

Output NewStack(Graph& g, int max_size, DataType type = DT_FLOAT) {
  return AddOp("StackV2", {Const(g, max_size)}, {{"elem_type", type}, {"stack_name", "s"}});
}
Output Push(const Output& stack, const Output& value) {
  return AddOp("StackPushV2", {stack, value});
}
Output Pop(const Output& stack, DataType type = DT_FLOAT) {
  return AddOp("StackPopV2", {stack}, {{"elem_type", type}});
}

// As the gradient of a loop uses them: one loop pushes, another one pops.
TEST_F(LoopsTest, StacksReturnTheLastValueFirst) {
  const Output stack = NewStack(g_, -1);
  const Outputs pushed =
      Repeat(Const(g_, 4), [&](const Outputs& v) { return Outputs{Push(stack, v[0]) * 2.f}; },
             {Const(g_, {1.f, 3.f})});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Outputs popped;
  {
    const ControlDependencies after(g_, {pushed[0]});
    popped =
        Repeat(Const(g_, 4), [&](const Outputs& v) { return Outputs{v[0] * 10.f + Pop(stack)}; },
               {Const(g_, {0.f, 0.f})},
               {.shape_invariants = std::vector<Shape>{{}, Shape::UnknownRank()}});
  }
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  for (int step = 0; step < 2; ++step)  // each step has its own stack
    EXPECT_THAT(Floats(Run({popped[0]})[0]), ElementsAre(8421, 25263));
}

TEST_F(LoopsTest, StacksRejectMismatches) {
  const Output stack = NewStack(g_, 1);
  const Output one = Push(stack, Const(g_, 1.f));
  Output two;
  {
    const ControlDependencies after(g_, {one});
    two = Push(stack, Const(g_, 2.f));
  }
  EXPECT_THAT(Try({two}).status().message(), HasSubstr("overflowed its max_size (1)"));
  EXPECT_THAT(Try({Pop(stack)}).status().message(), HasSubstr("is empty when calling Pop()"));
  EXPECT_THAT(Try({Pop(stack, DT_INT32)}).status().message(),
              HasSubstr("Must have type float but got int32"));
  EXPECT_THAT(Try({Push(stack, Const(g_, 1))}).status().message(), HasSubstr("Must have type"));
  Output late;
  {
    const ControlDependencies after(g_, {Operation(AddNode("StackCloseV2", {stack}, {}, ""))});
    late = Push(stack, Const(g_, 3.f));
  }
  EXPECT_THAT(Try({late}).status().message(), HasSubstr("already been closed"));
}

TEST_F(LoopsTest, OldStacksAreReferences) {
  const Output stack = Output(AddNode(g_, "Stack", {}, {{"elem_type", DT_FLOAT}}));
  const Output first = AddOp("StackPush", {stack, Const(g_, 1.f)});
  Output second, popped, late;
  {
    const ControlDependencies after(g_, {first});
    second = AddOp("StackPush", {stack, Const(g_, 2.f)});
  }
  {
    const ControlDependencies after(g_, {second});
    popped = AddOp("StackPop", {stack}, {{"elem_type", DT_FLOAT}});
  }
  EXPECT_EQ(Run({popped})[0].scalar<float>(), 2);
  {
    const ControlDependencies after(g_, {Operation(AddNode("StackClose", {stack}))});
    late = AddOp("StackPop", {stack}, {{"elem_type", DT_FLOAT}});
  }
  EXPECT_THAT(Try({late}).status().message(), HasSubstr("already been closed"));
}

TEST_F(LoopsTest, OldTensorArraysAreStringsOrReferencesToThem) {
  g_.versions().producer = 10;
  for (const char* op : {"TensorArray", "TensorArrayV2"}) {
    const Output handle = AddOp(op, {Const(g_, 4)}, {{"dtype", DT_FLOAT}});
    const TensorArray squares(DT_FLOAT, handle, Const(g_, 0.f));
    const Outputs r =
        WhileLoop([](const Outputs& v) { return v[0] < 4; },
                  [&](const Outputs& v) {
                    const Output x = Cast(v[0], DT_FLOAT);
                    return Outputs{v[0] + 1, squares.WithFlow(v[1]).Write(v[0], x * x).flow()};
                  },
                  {Const(g_, 0), squares.flow()});
    EXPECT_THAT(Floats(Run({squares.WithFlow(r[1]).Stack()})[0]), ElementsAre(0, 1, 4, 9));
  }
}

// The flow output of the write has no user, but a control edge waits for it.
TEST_F(LoopsTest, TensorArraysAreWrittenEvenIfTheirFlowIsUnused) {
  g_.versions().producer = 10;
  for (const char* op : {"TensorArray", "TensorArrayV2"}) {
    const Output handle = AddOp(op, {Const(g_, 1)}, {{"dtype", DT_FLOAT}});
    const TensorArray array(DT_FLOAT, handle, Const(g_, 0.f));
    const Output written = array.Write(0, Const(g_, 7.f)).flow();
    const ControlDependencies after(g_, {written});
    EXPECT_EQ(Run({array.Read(0)})[0].scalar<float>(), 7) << op;
  }
}

// Frames that no loop builder makes: a value that only passes through, and one that is loop-carried
// without its own condition.
TEST_F(LoopsTest, FramesWithoutALoopPassValuesThrough) {
  EXPECT_EQ(Run({Exit(Enter(Const(g_, 4.f), "f"))})[0].scalar<float>(), 4);
}

// No cycle of nodes, but no iteration can end: a value that enters depends on a value that leaves.
TEST_F(LoopsTest, EnteringValuesMustNotDependOnExitingOnes) {
  const Output enter = Enter(Const(g_, 1.f), "f");
  const Output merge = Merge({enter, enter}).output;
  const Output ten = Enter(Const(g_, 10.f), "f", {.is_constant = true});
  const SwitchResult go = Switch(merge, LoopCond(merge < ten));
  const Output left = Exit(go.on_false);
  const Output back = Enter(left, "f", {.is_constant = true});
  ASSERT_TRUE(g_.SetInput(merge.node, 1, NextIteration(go.on_true + back)).ok());
  const absl::Status s = Try({left}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  EXPECT_THAT(std::string(s.message()), HasSubstr("cycle through a while loop"));
}

// In the first iteration there is no loop-carried value, so the loop never iterates.
TEST_F(LoopsTest, AMergeThatNothingEntersIsDead) {
  const Output enter = Enter(Const(g_, 1.f), "f");
  const Output merge = Merge({enter, enter}).output, next_only = Merge({enter, enter}).output;
  const Output ten = Enter(Const(g_, 10.f), "f", {.is_constant = true});
  const SwitchResult go = Switch(merge, LoopCond(LogicalAnd(merge < ten, next_only < ten)));
  const Output next = NextIteration(go.on_true + ten);
  ASSERT_TRUE(g_.SetInput(merge.node, 1, next).ok());
  for (const int input : {0, 1}) ASSERT_TRUE(g_.SetInput(next_only.node, input, next).ok());
  const absl::Status s = Try({Exit(go.on_false)}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  EXPECT_THAT(std::string(s.message()), HasSubstr("does not have value"));
}

// In the second iteration it has no input, so the loop neither continues nor exits.
TEST_F(LoopsTest, AMergeWithoutALoopCarriedValueIsDead) {
  for (const bool twice : {true, false}) {
    const std::string frame = twice ? "f" : "g";
    const Output enter = Enter(Const(g_, 1.f), frame), limit = Enter(Const(g_, 100.f), frame);
    const Output merge = Merge({enter, enter}).output;
    const Output limits = Merge({limit, twice ? limit : Enter(Const(g_, 90.f), frame)}).output;
    const SwitchResult go = Switch(merge, LoopCond(merge < limits));
    const Output next = NextIteration(go.on_true + limits);
    ASSERT_TRUE(g_.SetInput(merge.node, 1, next).ok());
    const absl::Status s = Try({Exit(go.on_false)}).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
    EXPECT_THAT(std::string(s.message()), HasSubstr("does not have value"));
  }
}

TEST_F(LoopsTest, MergesOfSeveralValuesThatGoRound) {
  // Two back edges into one Merge: the value doubles while it is below 10, then grows by 100 once.
  const Output enter = Enter(Const(g_, 1.f), "f");
  const Output merge = Merge({enter, enter, enter}).output;
  const Output ten = Enter(Const(g_, 10.f), "f", {.is_constant = true});
  const Output hundred = Enter(Const(g_, 100.f), "f", {.is_constant = true});
  const SwitchResult small = Switch(merge, LoopCond(merge < ten));
  const SwitchResult middle = Switch(small.on_false, small.on_false < hundred);
  const Output two = Enter(Const(g_, 2.f), "f", {.is_constant = true});
  const Output twice = NextIteration(small.on_true * two);
  const Output more = NextIteration(middle.on_true + hundred);
  ASSERT_TRUE(g_.SetInput(merge.node, 1, twice).ok());
  ASSERT_TRUE(g_.SetInput(merge.node, 2, more).ok());
  EXPECT_EQ(Run({Exit(middle.on_false)})[0].scalar<float>(), 116);
}

}  // namespace
}  // namespace weir
