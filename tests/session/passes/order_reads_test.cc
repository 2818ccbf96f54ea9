// Direct users of a reference variable's shared read see the writes that run before them. The
// expected values are TensorFlow 2.21's.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/optimizers.h"
#include "weir/session/session.h"

namespace weir {
namespace {

class OrderReadsTest : public ::testing::Test {
 protected:
  // Runs the step `steps` times, after the initializers.
  Tensors Run(const Outputs& fetches, int steps = 1, const Feeds& feeds = {}) {
    const Operation init = GlobalVariablesInitializer(g_);
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    session_ = *Session::Create(g_, {.num_threads = 2});
    EXPECT_TRUE(session_->Run(init).ok());
    absl::StatusOr<Tensors> out;
    for (int i = 0; i < steps; ++i) {
      out = session_->Run(feeds, fetches);
      EXPECT_TRUE(out.ok()) << out.status();
      if (!out.ok()) return Tensors(fetches.size(), Tensor::Scalar(0.f));
    }
    return *std::move(out);
  }
  float RunOne(const Output& fetch, int steps = 1, const Feeds& feeds = {}) {
    return Run({fetch}, steps, feeds)[0].scalar<float>();
  }
  Output Bump() { return v_.AssignAdd(1.f); }
  // Returns the output of `make`, with a control edge from `first`.
  template <class Make>
  Output After(const Operation& first, Make make) {
    const ControlDependencies order(g_, {first});
    return make();
  }

  Graph g_{GraphOptions{.use_resource = false}};
  const Variable v_ = MakeVariable(g_, 3.f, {.name = "v"});
  std::optional<Session> session_;
};

// The gradient uses the shared read before the step; a node after the step uses it again.
TEST_F(OrderReadsTest, AUserAfterATrainingStepSeesTheUpdate) {
  const Operation train = GradientDescent(0.1f).Minimize(Square(v_));
  const Output late = After(train, [&] { return v_.value() * 10.f; });
  const Tensors out = Run({late});
  EXPECT_FLOAT_EQ(out[0].scalar<float>(), 24);
}

TEST_F(OrderReadsTest, AnAssignmentAfterATrainingStepSeesTheUpdate) {
  const Operation train = GradientDescent(0.1f).Minimize(Square(v_));
  const Output decay = After(train, [&] { return v_.Assign(v_.value() * 0.5f); });
  EXPECT_FLOAT_EQ(RunOne(decay, 2), 0.48f);
}

TEST_F(OrderReadsTest, AMovingAverageAfterATrainingStepSeesUpdatedValues) {
  const Operation train = GradientDescent(0.1f).Minimize(Square(v_));
  const Variable average = MakeVariable(g_, 3.f, {.name = "average", .trainable = false});
  const Output update =
      After(train, [&] { return average.AssignSub((average.value() - v_.value()) * 0.5f); });
  EXPECT_FLOAT_EQ(RunOne(update, 2), 2.31f);
}

TEST_F(OrderReadsTest, EachUserInAChainOfWritesSeesThoseBeforeIt) {
  const Output first = v_.value() * 1.f;
  const Output a = After(first, [&] { return Bump(); });
  const Output second = After(a, [&] { return v_.value() * 1.f; });
  const Output b = After(second, [&] { return v_.Assign(v_.value() * 2.f); });
  const Output third = After(b, [&] { return v_.value() * 1.f; });
  const Tensors out = Run({third, first, second});
  EXPECT_EQ(out[1].scalar<float>(), 3);
  EXPECT_EQ(out[2].scalar<float>(), 4);
  EXPECT_EQ(out[0].scalar<float>(), 8);
}

TEST_F(OrderReadsTest, ValuesComputedFromAReadDoNotChange) {
  const Output copy = Identity(v_.value());
  const Output write = After(copy, [&] { return Bump(); });
  EXPECT_EQ(RunOne(After(write, [&] { return v_.value() * 10.f + copy; })), 43);
}

TEST_F(OrderReadsTest, AnOrderedReadKeepsItsValue) {
  const Output before = v_.read_value();
  const Output write = After(before, [&] { return Bump(); });
  EXPECT_EQ(RunOne(After(write, [&] { return v_.value() * 10.f + before; })), 43);
}

TEST_F(OrderReadsTest, ABranchSeesTheWritesBeforeItAndInIt) {
  const Output pred = Placeholder(g_, DT_BOOL, {});
  const Operation train = GradientDescent(0.1f).Minimize(Square(v_));
  const Output late = After(train, [&] {
    return Cond(
        pred,
        [&] {
          const Output seen = v_.value() * 10.f;
          const Output write = After(seen, [&] { return v_.Assign(7.f); });
          return After(write, [&] { return v_.value() * 100.f + seen; });
        },
        [&] { return v_.value() * 1.f; });
  });
  EXPECT_FLOAT_EQ(RunOne(late, 1, {{pred, Tensor::Scalar(true)}}), 724);
  EXPECT_FLOAT_EQ(RunOne(late, 1, {{pred, Tensor::Scalar(false)}}), 2.4f);
}

// The Switch of the inner branch is a late user of that of the outer one, and has late users
// itself.
TEST_F(OrderReadsTest, NestedBranchesSeeTheWritesBetweenThem) {
  const Output outer = Placeholder(g_, DT_BOOL, {}), inner = Placeholder(g_, DT_BOOL, {});
  const Operation train = GradientDescent(0.1f).Minimize(Square(v_));
  const auto plain = [&] { return v_.value() * 1.f; };
  const Output late = After(train, [&] {
    return Cond(
        outer,
        [&] {
          const Output seen = v_.value() * 10.f;
          const Output write = After(seen, [&] { return v_.Assign(7.f); });
          const Output pred = After(write, [&] { return LogicalAnd(inner, inner); });
          return Cond(
              pred,
              [&] {
                const Output again = v_.value() * 100.f;
                const Output second = After(again, [&] { return v_.Assign(8.f); });
                return After(second, [&] { return v_.value() * 1000.f + again + seen; });
              },
              plain);
        },
        plain);
  });
  const Tensor yes = Tensor::Scalar(true), no = Tensor::Scalar(false);
  EXPECT_FLOAT_EQ(RunOne(late, 1, {{outer, yes}, {inner, yes}}), 8724);
  EXPECT_FLOAT_EQ(RunOne(late, 1, {{outer, yes}, {inner, no}}), 7);
  EXPECT_FLOAT_EQ(RunOne(late, 1, {{outer, no}, {inner, yes}}), 2.4f);
}

// The user runs, and reads, whichever branch has been taken.
TEST_F(OrderReadsTest, AUserBehindABranchSeesItsWrite) {
  const Output pred = Placeholder(g_, DT_BOOL, {});
  const Output first = v_.value() * 1.f;
  const Output either = After(first, [&] {
    return Cond(
        pred, [&] { return Identity(v_.Assign(7.f)); }, [&] { return Const(g_, 0.f); });
  });
  const Output late = After(either, [&] { return v_.value() * 10.f; });
  EXPECT_EQ(RunOne(late, 1, {{pred, Tensor::Scalar(true)}}), 70);
  EXPECT_EQ(RunOne(late, 1, {{pred, Tensor::Scalar(false)}}), 30);
}

TEST_F(OrderReadsTest, EachIterationSeesTheWritesOfThoseBeforeIt) {
  const auto body = [&](const Outputs& in) {
    const Output before = v_.value() * 1.f;
    const Output write = After(before, [&] { return Bump(); });
    const Output after = After(write, [&] { return v_.value() * 100.f; });
    const ControlDependencies order(g_, {after});  // also before the next iteration
    return Outputs{in[0] + 1, in[1] + before + after};
  };
  const Outputs out =
      WhileLoop([](const Outputs& in) { return in[0] < 3; }, body, {Const(g_, 0), Const(g_, 0.f)});
  EXPECT_EQ(RunOne(out[1]), 3 + 4 + 5 + 400 + 500 + 600);
}

// The inner loop receives the value through two Enters, neither of which waits for the write.
TEST_F(OrderReadsTest, AnInnerLoopSeesTheWritesOfOuterIterations) {
  const auto below = [](int limit) { return [limit](const Outputs& in) { return in[0] < limit; }; };
  const auto body = [&](const Outputs& in) {
    const Outputs inner = WhileLoop(below(2),
                                    [&](const Outputs& i) {
                                      return Outputs{i[0] + 1, i[1] + v_.value() * 1.f};
                                    },
                                    {Identity(in[0]) * 0, in[1]});
    const Output write = After(inner[1], [&] { return Bump(); });
    const ControlDependencies order(g_, {write});
    return Outputs{in[0] + 1, inner[1]};
  };
  const Outputs out = WhileLoop(below(3), body, {Const(g_, 0), Const(g_, 0.f)});
  EXPECT_EQ(RunOne(out[1]), 2 * (3 + 4 + 5));
}

TEST_F(OrderReadsTest, AUserBehindALoopSeesItsWrites) {
  const Output first = v_.value() * 1.f;
  const Output loop = After(first, [&] {
    return WhileLoop([](const Outputs& in) { return in[0] < 3; },
                     [&](const Outputs& in) {
                       const ControlDependencies order(g_, {Bump()});
                       return Outputs{in[0] + 1};
                     },
                     {Const(g_, 0)})[0];
  });
  EXPECT_EQ(RunOne(After(loop, [&] { return v_.value() * 10.f; })), 60);
}

TEST_F(OrderReadsTest, ALaterPieceOfAPartialRunSeesTheWritesOfEarlierOnes) {
  const Output a = Placeholder(g_, DT_FLOAT, {}), b = Placeholder(g_, DT_FLOAT, {});
  const Output first = v_.value() * a;
  const Output write = After(first, [&] { return Bump(); });
  const Output late = After(write, [&] { return v_.value() * 10.f + b; });
  const Operation init = GlobalVariablesInitializer(g_);
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(init).ok());
  auto run = session.StartPartialRun({a, b}, {first, write, late});
  ASSERT_TRUE(run.ok()) << run.status();
  const auto one = run->Run({{a, Tensor::Scalar(2.f)}}, {first, write});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ((*one)[0].scalar<float>(), 6);
  const auto two = run->Run({{b, Tensor::Scalar(1.f)}}, {late});
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ((*two)[0].scalar<float>(), 41);
}

// The pass adds no order: an unordered user still reads first, even if others read later.
TEST_F(OrderReadsTest, AUserThatNothingOrdersReadsFirst) {
  const Output free = v_.value() * 1.f;
  const Output late = After(Bump(), [&] { return v_.value() * 10.f; });
  const Tensors out = Run({late, free});
  EXPECT_EQ(out[0].scalar<float>(), 40);
  EXPECT_EQ(out[1].scalar<float>(), 3);
}

// Both operands of an op use one read, whatever is written in the meantime.
TEST_F(OrderReadsTest, AnOpThatUsesTheValueTwiceReadsOnce) {
  const Operation train = GradientDescent(0.1f).Minimize(Square(v_));
  EXPECT_FLOAT_EQ(RunOne(After(train, [&] { return v_.value() * v_.value(); })), 5.76f);
}

}  // namespace
}  // namespace weir
