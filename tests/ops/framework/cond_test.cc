#include "weir/ops/framework/cond.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using testing::HasSubstr;

Session Start(const Graph& g, const Operation& init = {}) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  absl::StatusOr<Session> session = Session::Create(g);
  EXPECT_TRUE(session.ok()) << session.status();
  if (init.valid()) {
    EXPECT_TRUE(session->Run(init).ok());
  }
  return *std::move(session);
}

float Value(Session& session, const Feeds& feeds, const Output& fetch) {
  const absl::StatusOr<Tensors> out = session.Run(feeds, {fetch});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0].scalar<float>() : -1;
}

Tensor True() { return Tensor::Scalar(true); }
Tensor False() { return Tensor::Scalar(false); }

TEST(Cond, RunsTheBranchSelectedByThePredicate) {
  Graph g;
  const Output pred = Placeholder(g, DT_BOOL, Shape()), x = Const(g, 3.0f);
  const Output y = Cond(
      pred, [&] { return x * 2.0f; }, [&] { return x + 100.0f; });
  Session session = Start(g);
  EXPECT_EQ(Value(session, {{pred, True()}}, y), 6);
  EXPECT_EQ(Value(session, {{pred, False()}}, y), 103);
}

TEST(Cond, OnlyTheTakenBranchHasSideEffects) {
  for (const bool use_resource : {false, true}) {
    Graph g({.use_resource = use_resource});
    const Output pred = Placeholder(g, DT_BOOL, Shape());
    const Variable count = MakeVariable(g, 0.0);
    const Output y = Cond(
        pred, [&] { return count.AssignAdd(1.0); },
        [&] {
          const ControlDependencies after(g, {count.AssignAdd(10.0)});
          return Const(g, -1.0f);
        });
    Session session = Start(g, GlobalVariablesInitializer(g));
    EXPECT_EQ(Value(session, {{pred, True()}}, y), 1);
    EXPECT_EQ(Value(session, {{pred, True()}}, y), 2);
    EXPECT_EQ(Value(session, {{pred, False()}}, y), -1);
    EXPECT_EQ(Value(session, {}, count.value()), 12);
  }
}

TEST(Cond, NestsAndUsesValuesFromAllLevels) {
  Graph g;
  const Output a = Placeholder(g, DT_BOOL, Shape()), b = Placeholder(g, DT_BOOL, Shape());
  const Output x = Const(g, 2.0f);
  const Output y = Cond(
      a,
      [&] {
        const Output between = x * 10.0f;
        return Cond(
            b, [&] { return between + x; }, [&] { return between - x; });
      },
      [&] { return x; });
  Session session = Start(g);
  EXPECT_EQ(Value(session, {{a, True()}, {b, True()}}, y), 22);
  EXPECT_EQ(Value(session, {{a, True()}, {b, False()}}, y), 18);
  EXPECT_EQ(Value(session, {{a, False()}, {b, True()}}, y), 2);
}

TEST(Cond, GradientFlowsThroughTheTakenBranch) {
  Graph g;
  const Output pred = Placeholder(g, DT_BOOL, Shape()), x = Const(g, 3.0f);
  const Output y = Cond(
      pred, [&] { return Square(x); }, [&] { return x * 5.0f; });
  const Output dx = Gradients({y}, {x})[0].dense();
  Session session = Start(g);
  EXPECT_EQ(Value(session, {{pred, True()}}, dx), 6);
  EXPECT_EQ(Value(session, {{pred, False()}}, dx), 5);
}

TEST(Cond, VariablesCreatedInABranchAreOutsideOfIt) {
  for (const bool use_resource : {false, true}) {
    Graph g({.use_resource = use_resource});
    const Output pred = Placeholder(g, DT_BOOL, Shape());
    Variable v;
    const Output y = Cond(
        pred,
        [&] {
          v = GetVariable(g, "v", {}, Constant(7.0));
          return v.value() + 1.0f;
        },
        [&] { return Const(g, 0.0f); });
    Session session = Start(g, GlobalVariablesInitializer(g));
    EXPECT_EQ(Value(session, {{pred, True()}}, y), 8);
    EXPECT_EQ(Value(session, {{pred, False()}}, y), 0);
    EXPECT_EQ(Value(session, {}, v.value()), 7);
  }
}

// The Switch for y is created while the variable is built, but is not part of the variable.
TEST(Cond, VariableCreatedAfterUsingAnOutsideValue) {
  Graph g;
  const Output pred = Placeholder(g, DT_BOOL, Shape()), x = Const(g, 2.0f);
  const Output y = Cond(
      pred,
      [&] {
        const Output product = x * 3.0f;
        return Cond(
            pred,
            [&] {
              const Output sum = product + 1.0f;
              return sum + GetVariable(g, "v", {}, Constant(7.0)).value();
            },
            [&] { return Const(g, 0.0f); });
      },
      [&] { return Const(g, 0.0f); });
  Session session = Start(g, GlobalVariablesInitializer(g));
  EXPECT_EQ(Value(session, {{pred, True()}}, y), 14);
}

TEST(Cond, TensorOfABranchIsNotAnInitialValue) {
  Graph g;
  const Output pred = Placeholder(g, DT_BOOL, Shape());
  Cond(
      pred, [&] { return MakeVariable(g, Const(g, 1.0f), {.name = "w"}).value(); },
      [&] { return Const(g, 0.0f); });
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("'cond/w'"));
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("callable"));
}

TEST(Cond, InitialValueUsesNothingFromABranch) {
  Graph g;
  const Output pred = Placeholder(g, DT_BOOL, Shape());
  Cond(
      pred,
      [&] {
        const Output inside = Const(g, 1.0f, "inside");
        return MakeVariable(g, [&] { return inside * 2.0f; }, {.name = "w"}).value();
      },
      [&] { return Const(g, 0.0f); });
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("inside:0"));
}

TEST(Cond, OuterControlDependenciesApplyInBranches) {
  Graph g;
  const Output pred = Placeholder(g, DT_BOOL, Shape());
  const Operation before = NoOp(g, "before");
  Output inside;
  {
    const ControlDependencies after(g, {before});
    Cond(
        pred, [&] { return inside = Const(g, 1.0f, "inside"); }, [&] { return Const(g, 0.0f); });
  }
  ASSERT_EQ(inside.node->control_inputs().size(), 2u);
  EXPECT_EQ(inside.node->control_inputs()[0]->name(), "before");
  EXPECT_EQ(inside.node->control_inputs()[1]->name(), "cond/switch_t");
}

TEST(Cond, BranchesOfDifferentTypesAreRejected) {
  Graph g;
  const Output pred = Placeholder(g, DT_BOOL, Shape());
  EXPECT_FALSE(Cond(
                   pred, [&] { return Const(g, 1.0f); }, [&] { return Const(g, 1); })
                   .valid());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("must have the same type"));
}

TEST(Cond, FailedBranchReturnsNothing) {
  Graph g;
  const Output pred = Placeholder(g, DT_BOOL, Shape());
  EXPECT_FALSE(Cond(
                   pred, [&] { return Output(); }, [&] { return Const(g, 1); })
                   .valid());
}

TEST(AssertThat, FailsTheStepAndPrintsItsData) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape());
  const Operation check = AssertThat(x > 0, {"x must be positive: ", x});
  Output y;
  {
    const ControlDependencies after(g, {check});
    y = Identity(x);
  }
  Session session = Start(g);
  EXPECT_EQ(Value(session, {{x, Tensor::Scalar(2.0f)}}, y), 2);
  const absl::StatusOr<Tensors> out = session.Run({{x, Tensor::Scalar(-2.0f)}}, {y});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(out.status().message()), HasSubstr("x must be positive"));
  EXPECT_THAT(std::string(out.status().message()), HasSubstr("-2"));
}

}  // namespace
}  // namespace weir
