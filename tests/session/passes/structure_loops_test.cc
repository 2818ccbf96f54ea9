// Structured loops: which loops are structured, and that results are equal bit for bit.

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/containers/queue.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

class StructureLoops : public testing::Test {
 protected:
  Output Input(const Shape& shape) {
    const Output x = Placeholder(g_, DT_FLOAT, shape);
    feeds_.emplace_back(x, UniformFloats(shape, random_));
    return x;
  }
  Output Limit(int n) {
    limit_ = Placeholder(g_, DT_INT32, {});
    SetLimit(n);
    return limit_;
  }
  void SetLimit(int n) {
    std::erase_if(feeds_, [&](const auto& feed) { return feed.first == limit_; });
    feeds_.emplace_back(limit_, Tensor::Scalar<int32_t>(n));
  }

  Tensors Run(const Outputs& ys, SessionOptions options, std::vector<NodeTrace>* trace = nullptr) {
    Session session = *Session::Create(g_, std::move(options));
    for (const Operation& init : init_) EXPECT_TRUE(session.Run({}, {}, {init}).ok());
    Tensors first;
    for (int step = 0; step < 2;
         ++step) {  // the second run reuses the frame as the first has left it
      if (trace != nullptr) trace->clear();
      auto out = session.Run(feeds_, ys, {}, {.trace = trace});
      EXPECT_TRUE(out.ok()) << out.status();
      if (!out.ok()) return Tensors(ys.size());
      for (size_t i = 0; i < ys.size() && step > 0 && init_.empty(); ++i)
        EXPECT_TRUE(IdenticalTensors((*out)[i], first[i]))
            << "result " << i << " of the second step";
      first = *std::move(out);
    }
    return first;
  }

  // Native loops, and structured ones in several configurations, give identical results. Returns
  // the ops that ran.
  std::set<std::string> Compare(const Outputs& ys) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const Tensors want = Run(ys, {.num_threads = 2, .disable = {"structure_loops", "fusion"}});
    std::vector<NodeTrace> trace;
    const auto compare = [&](SessionOptions options, const char* how) {
      const Tensors got = Run(ys, std::move(options), &trace);
      for (size_t i = 0; i < ys.size(); ++i) {
        EXPECT_TRUE(IdenticalTensors(got[i], want[i]))
            << "result " << i << " " << how << ": " << got[i].ToString(20) << " instead of "
            << want[i].ToString(20);
      }
    };
    compare({.num_threads = 2, .disable = {"fusion", "plan_memory"}}, "without memory plan");
    compare({.num_threads = 2, .disable = {"fusion", "in_place"}}, "without in-place");
    compare({.num_threads = 3,
             .disable = {"fusion", "remove_no_ops", "eliminate_common_subexpressions"}},
            "as it is");
    compare({.num_threads = 1}, "with all");
    std::set<std::string> ops;
    for (const NodeTrace& node : trace) ops.insert(node.op);
    return ops;
  }
  bool IsStructured(const Outputs& ys) { return Compare(ys).count("Merge") == 0; }

  Graph g_;
  Feeds feeds_;
  Output limit_;
  std::vector<Operation> init_;
  std::mt19937 random_{5};
};

TEST_F(StructureLoops, VariablesChangePlaces) {
  const Output n = Limit(0), x = Input({3}), zero = Const(g_, 0);
  const Outputs fibonacci = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                                      [](const Outputs& v) {
                                        return Outputs{v[0] + 1, v[2], v[1] + v[2]};
                                      },
                                      {zero, x, x + 1.f});
  const Outputs turned = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                                   [](const Outputs& v) {
                                     return Outputs{v[0] + 1, v[2], v[3], v[1], v[2]};
                                   },
                                   {zero, x, x * 2.f, x * 3.f, x * 4.f});
  Outputs ys = {fibonacci[1], fibonacci[2], fibonacci[1] + x};
  ys.insert(ys.end(), turned.begin(), turned.end());
  for (const int times : {0, 1, 2, 3, 10}) {
    SetLimit(times);
    EXPECT_TRUE(IsStructured(ys)) << times;
  }
}

// A value that every iteration passes on unchanged is not a loop variable, and shapes that depend
// on it are known.
TEST_F(StructureLoops, LoopInvariantVariablesAreReplacedByTheirInitialValues) {
  const Output n = Limit(3), x = Input({2});
  const Outputs out =
      WhileLoop([&](const Outputs& v) { return v[0] < n; },
                [](const Outputs& v) {
                  return Outputs{v[0] + 1, v[1], Identity(v[2]), v[3] + v[1] * v[2]};
                },
                {Const(g_, 0), x, x * 2.f, x});
  EXPECT_TRUE(IsStructured(out));
}

TEST_F(StructureLoops, ValuesOfTheConditionAreAvailableInTheBodyAndAfterward) {
  const Output n = Limit(4), x = Input({4});
  Output doubled;
  const Outputs out = WhileLoop(
      [&](const Outputs& v) {
        doubled = v[1] * 2.f;
        return LogicalAnd(v[0] < n, ReduceSum(doubled) < Const(g_, 1e6f));
      },
      [](const Outputs& v) {
        return Outputs{v[0] + 1, v[1] * 2.f + 1.f};
      },
      {Const(g_, 0), x});
  EXPECT_TRUE(IsStructured({out[1]}));
}

// As Python's gradients build them: the loop-carried value waits for the pushes on stacks, a
// ControlTrigger joins the pops, a group waits for a Switch, and the exiting value passes an
// Identity.
TEST_F(StructureLoops, GradientsMayWaitInThem) {
  const Output n = Limit(3), x = Input({3});
  const Variable first = GetVariable(g_, "first", {}, Zeros()),
                 second = GetVariable(g_, "second", {}, Zeros());
  init_ = {GlobalVariablesInitializer(g_)};
  const EnterOptions constant = {.is_constant = true};
  const auto enter = [&](const Output& v) { return Enter(v, "f", constant); };
  const Output one = enter(Const(g_, 1.f)), step = enter(Const(g_, 1));
  const Outputs handles = {enter(first.handle()), enter(second.handle())};
  const Output i_enter = Enter(Const(g_, 0), "f"), v_enter = Enter(x, "f");
  const Output i = Merge({i_enter, i_enter}).output, v = Merge({v_enter, v_enter}).output;
  const Output go_on = LoopCond(i < enter(n));
  const SwitchResult is = Switch(i, go_on), vs = Switch(v, go_on);
  std::vector<Operation> counted;
  {
    const ControlDependencies in_body(g_, {Identity(is.on_true)});
    for (const Output& handle : handles) {
      counted.emplace_back(NodeBuilder(g_, "AssignAddVariableOp").Input(handle).Input(one).Build());
    }
  }
  Operation trigger;
  {
    const ControlDependencies after(g_, {counted[1]});
    trigger = ControlTrigger(g_);
  }
  Output next_i, next_v, left;
  {
    const ControlDependencies after(g_, {counted[0], trigger});
    next_i = NextIteration(is.on_true + step);
  }
  {
    const ControlDependencies after(g_,
                                    {Group(g_, {Operation(v.node), Operation(vs.on_true.node)})});
    next_v = NextIteration(Tanh(Identity(vs.on_true)));
    left = Identity(vs.on_false);
  }
  ASSERT_TRUE(g_.SetInput(i.node, 1, next_i).ok());
  ASSERT_TRUE(g_.SetInput(v.node, 1, next_v).ok());
  const Output last = Exit(left);
  const ControlDependencies after(g_, {last});
  const Output seen = Stack({first.read_value(), second.read_value()});
  EXPECT_TRUE(IsStructured({last, seen}));
  const Tensor two_steps = Run({seen, last}, {})[0];
  EXPECT_EQ(two_steps.data<float>()[0], 6);
  EXPECT_EQ(two_steps.data<float>()[1], 6);
}

// A path out of the loop as long as a graph allows: no recursion follows it, and no pass walks it
// for each node.
TEST_F(StructureLoops, LongExitPathsAreNotStructured) {
  const Output n = Limit(3), x = Input({3});
  const EnterOptions constant = {.is_constant = true};
  const Output i_enter = Enter(Const(g_, 0), "f"), v_enter = Enter(x, "f");
  const Output i = Merge({i_enter, i_enter}).output, v = Merge({v_enter, v_enter}).output;
  const Output go_on = LoopCond(i < Enter(n, "f", constant));
  const SwitchResult is = Switch(i, go_on), vs = Switch(v, go_on);
  const Output next_i = NextIteration(is.on_true + Enter(Const(g_, 1), "f", constant));
  ASSERT_TRUE(g_.SetInput(i.node, 1, next_i).ok());
  ASSERT_TRUE(g_.SetInput(v.node, 1, NextIteration(Tanh(vs.on_true))).ok());
  Output left = vs.on_false;
  for (int k = 0; k < 20000; ++k) left = Identity(left);
  EXPECT_FALSE(IsStructured({Exit(left)}));
}

// A node that waits for a Switch, or for a ControlTrigger, runs once more than the body, after the
// condition has been false. A structured loop has ended by then.
TEST_F(StructureLoops, EffectsAfterTheLastConditionAreNotLost) {
  const Output n = Limit(3);
  const EnterOptions constant = {.is_constant = true};
  for (const bool by_trigger : {false, true}) {
    const std::string frame = by_trigger ? "trigger" : "switch";
    const Variable rounds = GetVariable(g_, frame, {}, Zeros());
    init_ = {GlobalVariablesInitializer(g_)};
    const auto enter = [&](const Output& v) { return Enter(v, frame, constant); };
    const Output one = enter(Const(g_, 1.f)), step = enter(Const(g_, 1)),
                 handle = enter(rounds.handle());
    const Output entered = Enter(Const(g_, 0), frame), i = Merge({entered, entered}).output;
    const SwitchResult sides = Switch(i, LoopCond(i < enter(n)));
    const Output next = sides.on_true + step;
    Operation last_of_body;
    {
      const ControlDependencies after(g_, {by_trigger ? next : i});
      last_of_body = by_trigger ? ControlTrigger(g_) : Group(g_, {Operation(sides.on_true.node)});
    }
    Operation counted;
    {
      const ControlDependencies after(g_, {last_of_body});
      counted = NodeBuilder(g_, "AssignAddVariableOp").Input(handle).Input(one).Build();
    }
    {
      const ControlDependencies after(g_, {counted});
      ASSERT_TRUE(g_.SetInput(i.node, 1, NextIteration(next)).ok());
    }
    const ControlDependencies after(g_, {Exit(sides.on_false)});
    const Output seen = rounds.read_value();
    EXPECT_FALSE(IsStructured({seen})) << frame;
    EXPECT_EQ(Run({seen}, {})[0].scalar<float>(), 2 * 4) << frame;
  }
}

// In the last iteration the condition runs, the body does not.
TEST_F(StructureLoops, EffectsHappenAsOftenAsTheirPartRuns) {
  const Output n = Limit(3);
  const Variable tests = GetVariable(g_, "tests", {}, Zeros()),
                 rounds = GetVariable(g_, "rounds", {}, Zeros());
  init_ = {GlobalVariablesInitializer(g_)};
  const Outputs out = WhileLoop(
      [&](const Outputs& v) {
        const ControlDependencies after(g_, {tests.AssignAdd(1.f)});
        return v[0] < n;
      },
      [&](const Outputs& v) {
        return Outputs{v[0] + 1, v[1] + rounds.AssignAdd(1.f)};
      },
      {Const(g_, 0), Const(g_, 0.f)});
  const ControlDependencies after(g_, {out[0]});
  const Output seen = Stack({tests.read_value(), rounds.read_value()});
  EXPECT_TRUE(IsStructured({out[1], seen}));
  const Tensor two_steps = Run({seen, out[1]}, {})[0];
  EXPECT_EQ(two_steps.data<float>()[0], 8);
  EXPECT_EQ(two_steps.data<float>()[1], 6);
}

TEST_F(StructureLoops, LoopsInLoopsAndInConditions) {
  const Output n = Limit(0), x = Input({2});
  const auto sum_below = [&](const Output& limit, const Output& add) {
    return WhileLoop([&](const Outputs& w) { return w[0] < limit; },
                     [&](const Outputs& w) {
                       return Outputs{w[0] + 1, Tanh(w[1] + add), w[1]};
                     },
                     {Const(g_, 0), x * 0.5f, x});
  };
  const Outputs out = WhileLoop(
      [&](const Outputs& v) {
        return LogicalAnd(v[0] < n, ReduceSum(sum_below(v[0], v[1])[1]) < Const(g_, 100.f));
      },
      [&](const Outputs& v) {
        const Outputs inner = sum_below(v[0] + 1, v[1]);
        return Outputs{v[0] + 1, inner[1], v[1], inner[2], inner[1] * inner[2]};
      },
      {Const(g_, 0), x, x, x, x});
  for (const int times : {0, 1, 2, 5}) {
    SetLimit(times);
    EXPECT_TRUE(IsStructured(out)) << times;
  }
}

// A loop without iterations returns its initial values. The next iteration of the enclosing loop
// recomputes such a value while the old one is still in use: the initial value is computed there,
// or is the result of another inner loop, or a variable.
TEST_F(StructureLoops, LoopInvariantValuesOutliveTheIteration) {
  const Output n = Limit(0), none = Const(g_, 0), x = Input({3});
  const auto pass = [&](const Output& value) {
    return WhileLoop([&](const Outputs& w) { return w[0] < none; },
                     [](const Outputs& w) {
                       return Outputs{w[0] + 1, w[1] * 2.f};
                     },
                     {none, value})[1];
  };
  const auto outer = [&](const std::function<Outputs(const Outputs&)>& body) {
    return WhileLoop([&](const Outputs& v) { return v[0] < n; },
                     [&](const Outputs& v) {
                       Outputs next = body({v[1], v[2]});
                       next.insert(next.begin(), v[0] + 1);
                       return next;
                     },
                     {Const(g_, 0), x, x * 2.f});
  };
  Outputs ys;
  const auto add = [&](const Outputs& loop) {
    for (const Output& y : {loop[1], loop[2]}) ys.push_back(Reverse(y, {0}) * 2.f);
  };
  add(outer([&](const Outputs& v) {
    const Output made = ReduceSum(Stack({v[0], v[1], v[0] + v[1]}) * 0.5f, {0});
    return Outputs{pass(made), v[0] * made + v[1]};
  }));
  add(outer([&](const Outputs& v) {
    const Output left = WhileLoop([&](const Outputs& w) { return w[0] < 2; },
                                  [&](const Outputs& w) {
                                    return Outputs{w[0] + 1, w[1] * 0.5f + v[0]};
                                  },
                                  {none, v[1]})[1];
    return Outputs{pass(left), v[0] + left * 0.25f};
  }));
  add(outer([&](const Outputs& v) { return Outputs{v[0] * 0.5f + v[1], pass(v[0])}; }));
  add(outer([&](const Outputs& v) { return Outputs{pass(pass(v[1])), v[0] + 1.f}; }));
  for (const int times : {0, 1, 2, 3, 4}) {
    SetLimit(times);
    EXPECT_TRUE(IsStructured(ys)) << times;
  }
}

// The value at the source of the control edge is unused, so only the dependency remains.
TEST_F(StructureLoops, UsersOfAFinalValueWaitForTheLoop) {
  const Output n = Limit(3);
  const Variable rounds = GetVariable(g_, "rounds", {}, Zeros());
  init_ = {GlobalVariablesInitializer(g_)};
  const Outputs out = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                                [&](const Outputs& v) {
                                  const ControlDependencies counted(g_, {rounds.AssignAdd(1.f)});
                                  return Outputs{v[0] + 1};
                                },
                                {Const(g_, 0)});
  const ControlDependencies after(g_, {-out[0]});
  const Output seen = rounds.read_value();
  EXPECT_TRUE(IsStructured({seen}));
  EXPECT_EQ(Run({seen}, {})[0].scalar<float>(), 6);
}

// The inner variable starts with a shape that the outer one does not keep, and changes another
// dimension.
TEST_F(StructureLoops, ShapesAreNotTakenFromTheFirstIteration) {
  const Output n = Limit(3), x = Input({1, 2});
  const Shape any = {-1, -1};
  const Outputs out = WhileLoop(
      [&](const Outputs& v) { return v[0] < n; },
      [&](const Outputs& v) {
        const Outputs inner = WhileLoop(
            [&](const Outputs& w) { return w[0] < 2; },
            [&](const Outputs& w) {
              return Outputs{w[0] + 1, Concat({w[1], w[1]}, 1), w[2] + Size(ReduceSum(w[1], {1}))};
            },
            {Const(g_, 0), v[1], v[2]}, {.shape_invariants = std::vector<Shape>{{}, any, {}}});
        return Outputs{v[0] + 1, Concat({v[1], v[1]}, 0), inner[2]};
      },
      {Const(g_, 0), x, Const(g_, 0)}, {.shape_invariants = std::vector<Shape>{{}, any, {}}});
  EXPECT_TRUE(IsStructured({out[2]}));
  EXPECT_EQ(Run({out[2]}, {})[0].scalar<int32_t>(), 2 * (1 + 2 + 4));
}

// Frames that resemble a loop, but cannot be structured.
TEST_F(StructureLoops, OddFramesAreNotStructured) {
  const Output x = Input({}), yes = Placeholder(g_, DT_BOOL, {});
  feeds_.emplace_back(yes, Tensor::Scalar(true));
  // Without a loop-carried value: one iteration.
  const EnterOptions constant = {.is_constant = true};
  const SwitchResult once =
      Switch(-Enter(x, "once", constant), LoopCond(Enter(yes, "once", constant)));
  EXPECT_EQ(Compare({Exit(once.on_true)}).count("LoopCond"), 1);

  // The exiting value is computed in the body, which does not run in the last iteration.
  const Output enter = Enter(x, "f"), merge = Merge({enter, enter}).output;
  const Output goes_on = LoopCond(merge * merge < Enter(Const(g_, 100.f), "f", constant));
  const SwitchResult sides = Switch(merge, goes_on);
  ASSERT_TRUE(g_.SetInput(merge.node, 1, NextIteration(sides.on_true + sides.on_true)).ok());
  const Output left = Exit(Switch(Tanh(sides.on_true), goes_on).on_false);
  Session session = *Session::Create(g_);
  EXPECT_THAT(std::string(session.Run(feeds_, {left}).status().message()),
              HasSubstr("does not have value"));

  // A value that enters depends on a value that leaves.
  const Output first = Enter(x, "c"), value = Merge({first, first}).output;
  const SwitchResult way = Switch(value, LoopCond(value < Enter(Const(g_, 100.f), "c", constant)));
  const Output last = Exit(way.on_false), back = Enter(Identity(last), "c", constant);
  ASSERT_TRUE(g_.SetInput(value.node, 1, NextIteration(way.on_true + back)).ok());
  EXPECT_THAT(std::string(session.Run(feeds_, {last}).status().message()),
              HasSubstr("cycle through a while loop"));
}

// Each variable passes its value to the next: a chain of thousands.
TEST_F(StructureLoops, ThousandsOfVariablesPassValuesOn) {
  constexpr int kVariables = 3000;
  const Output n = Limit(2), x = Input({});
  Outputs init = {Const(g_, 0)};
  for (int i = 0; i < kVariables; ++i) init.push_back(x + static_cast<float>(i));
  const Outputs out = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                                [](const Outputs& v) {
                                  Outputs next = {v[0] + 1, v[1]};
                                  for (size_t i = 2; i < v.size(); ++i) next.push_back(v[i - 1]);
                                  return next;
                                },
                                init);
  const Tensors r = Run({out[2], out[kVariables], x + 0.f}, {});
  EXPECT_EQ(r[0].scalar<float>(), r[2].scalar<float>());
  EXPECT_EQ(r[1].scalar<float>(), r[2].scalar<float>() + (kVariables - 3));
}

// Consecutive loops, each with the final values of the previous one, and in their own tasks.
TEST_F(StructureLoops, FinalValuesAreUsedInPlace) {
  const Output n = Limit(3), x = Input({96, 96});
  Outputs last;
  for (int k = 0; k < 2; ++k) {
    Output value = x * (1.f + static_cast<float>(k));
    for (int i = 0; i < 2; ++i) {
      value = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                        [&](const Outputs& v) {
                          return Outputs{v[0] + 1, Tanh(MatMul(v[1], x))};
                        },
                        {Const(g_, 0), value})[1];
      last.push_back(MatMul(value, value));
    }
  }
  last.push_back(AddN(last));
  EXPECT_TRUE(IsStructured(last));
}

TEST_F(StructureLoops, LoopsInBranchesAreNotStructured) {
  const Output n = Limit(3), x = Input({2});
  const Outputs out = Cond(
      n > 2,
      [&] {
        return Outputs{WhileLoop([&](const Outputs& v) { return v[0] < n; },
                                 [](const Outputs& v) {
                                   return Outputs{v[0] + 1, v[1] * 2.f};
                                 },
                                 {Const(g_, 0), x})[1]};
      },
      [&] { return Outputs{x}; });
  for (const int times : {1, 3}) {
    SetLimit(times);
    EXPECT_FALSE(IsStructured(out)) << times;
  }
}

TEST_F(StructureLoops, BranchesInLoopsAreChosenInEachIteration) {
  const Output n = Limit(7), x = Input({2});
  const Outputs out = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                                [&](const Outputs& v) {
                                  const Output odd =
                                      Equal(FloorMod(v[0], Const(g_, 2)), Const(g_, 1));
                                  const Outputs both = Cond(
                                      odd,
                                      [&] {
                                        return Outputs{v[1] + x, v[2]};
                                      },
                                      [&] {
                                        return Outputs{v[2], Tanh(v[1])};
                                      });
                                  return Outputs{v[0] + 1, both[0], both[1]};
                                },
                                {Const(g_, 0), x, x});
  const std::set<std::string> ops = Compare(out);
  EXPECT_EQ(ops.count("NextIteration"), 0);
  EXPECT_EQ(ops.count("Merge"), 1);
}

TEST_F(StructureLoops, KernelsMayWaitInTheBody) {
  const Output n = Limit(3);
  const Queue queue = Queue::Fifo(g_, 10, {DT_FLOAT}, {.shapes = {Shape()}});
  init_ = {queue.EnqueueMany({Const(g_, {1.f, 2.f, 4.f, 8.f, 16.f, 32.f})})};
  const Output sum = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                               [&](const Outputs& v) {
                                 return Outputs{v[0] + 1, v[1] * 3.f + queue.Dequeue()[0]};
                               },
                               {Const(g_, 0), Const(g_, 0.f)})[1];
  EXPECT_TRUE(IsStructured({sum}));
  EXPECT_EQ(Run({sum}, {})[0].scalar<float>(), (8 * 3 + 16) * 3 + 32);
}

TEST_F(StructureLoops, ErrorsNameTheNode) {
  const Output wrong =
      WhileLoop([&](const Outputs& v) { return v[0] < 3; },
                [&](const Outputs& v) {
                  return Outputs{v[0] + 1, Gather(v[1], v[0])};
                },
                {Const(g_, 0), Const(g_, {1.f, 2.f})},
                {.shape_invariants = std::vector<Shape>{{}, Shape::UnknownRank()}})[1];
  Session session = *Session::Create(g_);
  const absl::Status error = session.Run({}, {wrong}).status();
  EXPECT_THAT(std::string(error.message()), HasSubstr("GatherV2 (node while"));
}

TEST_F(StructureLoops, EndlessLoopsAreCancelled) {
  const Output x = Input({2});
  const Outputs out = WhileLoop([&](const Outputs&) { return Const(g_, true); },
                                [](const Outputs& v) { return Outputs{Tanh(v[0])}; }, {x});
  Session session = *Session::Create(g_);
  const absl::Status late =
      session.Run(feeds_, out, {}, {.timeout = std::chrono::milliseconds(20)}).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
}

// A fed tensor belongs to the caller again: a variable that held it has released it.
TEST_F(StructureLoops, NothingThatEnteredIsHeldAfterTheStep) {
  const Output n = Limit(0), x = Placeholder(g_, DT_FLOAT, {2});
  const Output y = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                             [](const Outputs& v) {
                               return Outputs{v[0] + 1, v[1] * 2.f};
                             },
                             {Const(g_, 0), x})[1] +
                   1.f;
  Session session = *Session::Create(g_);
  for (const int times : {0, 1, 2}) {
    SetLimit(times);
    Tensor fed = Tensor::Of<float>({2}, {1, 2});
    Feeds feeds = feeds_;
    feeds.emplace_back(x, fed);
    ASSERT_TRUE(session.Run(feeds, {y}).ok());
    feeds.clear();
    EXPECT_TRUE(fed.OwnsBufferAlone()) << times;
  }
}

// Random nested loops, branches, exchanges and assignments.
class RandomLoops : public StructureLoops, public testing::WithParamInterface<int> {
 protected:
  int Choose(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  Output Pick(const Outputs& of) {
    return of[static_cast<size_t>(Choose(static_cast<int>(of.size())))];
  }

  // All values have one shape.
  Output Expression(const Outputs& values) {
    const Output a = Pick(values), b = Pick(values);
    switch (Choose(7)) {
      case 0:
        return Identity(a);
      case 1:
        return Reshape(Tanh(a), Const(g_, {kRows, kColumns}));
      case 2:
        return a * 0.5f + b;
      case 3:
        return Maximum(a, -b);
      case 4:
        return Tanh(a - b * 0.25f);
      case 5:
        return Transpose(Reshape(a, Const(g_, {kColumns, kRows})), Const(g_, {1, 0}));
      default:
        return a;
    }
  }

  Outputs Loop(const Outputs& values, int depth) {
    Outputs init = {Const(g_, 0)};
    const int count = 1 + Choose(5), times = Choose(3);
    for (int i = 0; i < count; ++i)
      init.push_back(Choose(3) > 0 ? Pick(values) : Expression(values));
    const Output limit = Choose(2) > 0 ? limit_ : Const(g_, times);
    return WhileLoop(
        [&](const Outputs& v) {
          if (Choose(3) > 0) return v[0] < limit;
          return LogicalAnd(v[0] < limit, ReduceMean(Expression(Tail(v))) < Const(g_, 0.4f));
        },
        [&](const Outputs& v) {
          Outputs all = Tail(v);
          all.push_back(Pick(values));  // from outside
          if (depth > 0 && Choose(2) > 0) {
            const Outputs inner = Tail(Loop(all, depth - 1));
            all.insert(all.end(), inner.begin(), inner.end());
          }
          if (Choose(3) == 0) {
            const Output positive = ReduceSum(Pick(all)) > Const(g_, 0.f);
            all.push_back(Cond(
                positive, [&] { return Outputs{Expression(all)}; },
                [&] { return Outputs{Expression(all)}; })[0]);
          }
          if (Choose(4) == 0) {
            states_.push_back(
                GetVariable(g_, absl::StrCat("state", states_.size()), {kRows, kColumns}, Zeros()));
            all.push_back(states_.back().AssignAdd(Expression(all) * 0.01f));
          }
          Outputs next = {v[0] + 1};
          for (size_t i = 1; i < v.size(); ++i) {
            const int how = Choose(4);
            next.push_back(how == 0 ? v[i] : how == 1 ? Pick(all) : Expression(all));
          }
          return next;
        },
        init);
  }
  static Outputs Tail(const Outputs& v) { return {v.begin() + 1, v.end()}; }

  int kRows = 2, kColumns = 3;
  std::vector<Variable> states_;  // each has one writer
};

TEST_P(RandomLoops, ComputeTheSameResults) {
  random_.seed(static_cast<unsigned>(GetParam()));
  if (GetParam() % 4 == 0) kRows = 100, kColumns = 200;  // too large to be swapped
  Limit(0);
  const Outputs inputs = {Input({kRows, kColumns}), Input({kRows, kColumns}) * 2.f,
                          Const(g_, Tensor::Zeros(DT_FLOAT, {kRows, kColumns}))};
  Outputs ys = Tail(Loop(inputs, 2));
  const Outputs more = Loop(ys, 1);
  ys.push_back(Expression(ys));
  ys.insert(ys.end(), more.begin() + 1, more.end());
  // A value that is fetched directly is allocated outside the arena, so most values are fetched
  // through another op.
  if (GetParam() % 3 > 0) {
    for (Output& y : ys) y = Sigmoid(y);
  }
  init_ = {GlobalVariablesInitializer(g_)};
  const ControlDependencies after(g_, std::vector<Operation>(ys.begin(), ys.end()));
  for (const Variable& state : states_) ys.push_back(state.read_value());
  for (const int times : {0, 1, 2, 3}) {
    SetLimit(times);
    Compare(ys);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLoops, testing::Range(1, 101));

}  // namespace
}  // namespace weir
