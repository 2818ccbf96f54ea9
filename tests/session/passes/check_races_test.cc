// Unordered reads and writes of one variable: what happens, and how a session reports them.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/optimizers.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/test_models.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RacesTest : public ::testing::TestWithParam<bool> {
 protected:
  Variable Var(const char* name) { return MakeVariable(g_, 1.f, {.name = name}); }
  // Returns the error of preparing the step where races are forbidden.
  absl::Status Check(const Outputs& fetches, const std::vector<Operation>& targets = {}) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, {.forbid_races = true});
    return session.Prepare({}, fetches, targets).status();
  }
  float Run(Session& session, const Output& fetch, const std::vector<Operation>& targets) {
    const auto out = session.Run(Feeds{}, {fetch}, targets);
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0].scalar<float>() : -1;
  }

  Graph g_{GraphOptions{.use_resource = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Kinds, RacesTest, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Resource" : "Reference");
});

// ---- Races.

TEST_P(RacesTest, UnorderedReadAndWriteAreNamed) {
  const Variable v = Var("v");
  const Output read = Identity(v.value() * 2.f, "seen");
  const Operation write = v.AssignAdd(1.f, {.read_value = false, .name = "bump"});
  const absl::Status s = Check({read}, {write});
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_THAT(s.message(),
              AllOf(HasSubstr("Race on variable 'v'"), HasSubstr("bump"), HasSubstr("writes it"),
                    HasSubstr(GetParam() ? "ReadVariableOp" : "v/read"), HasSubstr("reads it")));
}

TEST_P(RacesTest, UnorderedWritesAreNamed) {
  const Variable v = Var("v");
  const Operation one = v.AssignAdd(1.f, {.read_value = false, .name = "one"}),
                  two = v.Assign(5.f, {.read_value = false, .name = "two"});
  EXPECT_THAT(Check({}, {one, two}).message(), AllOf(HasSubstr("one"), HasSubstr("two")));
}

TEST_P(RacesTest, AnIdentityOfTheValueHidesNothing) {
  const Variable v = Var("v");
  const Output far = Identity(Identity(Identity(v.value()))) + 1.f;
  EXPECT_TRUE(absl::IsInvalidArgument(Check({far}, {v.AssignSub(1.f, {.read_value = false})})));
}

TEST_P(RacesTest, AUseOfTheHandleItselfCounts) {
  const Variable v = MakeVariable(g_, {1.f, 2.f}, {.name = "v"});
  const Output row = v.SparseRead(Const(g_, {0}));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Check({row}, {v.ScatterAdd({Const(g_, {1.f}), Const(g_, {1})}, {.read_value = false})})));
  const Output is_there = v.is_initialized();
  EXPECT_TRUE(absl::IsInvalidArgument(Check({is_there}, {v.initializer()})));
}

TEST_P(RacesTest, FetchingAVariableAndItsUpdateIsARace) {
  const Variable v = Var("v");
  const Operation train = GradientDescent(0.1f).Minimize(Square(v));
  EXPECT_TRUE(absl::IsInvalidArgument(Check({v.read_value()}, {train})));
}

TEST(Races, AFetchedReferenceIsRead) {
  Graph g({.use_resource = false});
  const Variable v = MakeVariable(g, 1.f, {.name = "v"});
  const Operation write = v.AssignAdd(1.f);
  Session session = *Session::Create(g, {.forbid_races = true});
  EXPECT_THAT(session.Prepare({}, {v.handle()}, {write}).status().message(),
              HasSubstr("the fetch of v"));
  EXPECT_TRUE(session.Prepare({}, {Output(write.node)}, {}).ok()) << "the value after the write";
}

TEST(Races, HandlesOfOneNameAreOneVariable) {
  Graph g;
  const auto handle = [&](const char* name) {
    return NodeBuilder(g, "VarHandleOp")
        .Name(name)
        .Attr("dtype", DT_FLOAT)
        .Attr("shape", Shape())
        .Attr("shared_name", std::string("shared"))
        .BuildOutput();
  };
  const Output read =
      NodeBuilder(g, "ReadVariableOp").Input(handle("x")).Attr("dtype", DT_FLOAT).BuildOutput();
  const Operation write =
      NodeBuilder(g, "AssignVariableOp").Input(handle("y")).Input(Const(g, 1.f)).Build();
  Session session = *Session::Create(g, {.forbid_races = true});
  EXPECT_TRUE(absl::IsInvalidArgument(session.Prepare({}, {read}, {write}).status()));
}

// ---- No races.

TEST_P(RacesTest, PathsOrder) {
  const Variable v = Var("v"), w = Var("w");
  EXPECT_TRUE(Check({}, {v.Assign(Identity(v.value()) * 2.f, {.read_value = false})}).ok());
  const Output first = v.AssignAdd(1.f);
  Output second, last;
  {
    const ControlDependencies after(g_, {first});
    second = v.AssignAdd(1.f);
  }
  {
    const ControlDependencies after(g_, {second});
    last = Identity(v.read_value()) + w;
  }
  EXPECT_TRUE(Check({last}).ok()) << Check({last});
  EXPECT_TRUE(Check({v.read_value(), v.value() + w}, {w.initializer()}).ok() == false);
  EXPECT_TRUE(Check({v.read_value(), v.value() + w, v.is_initialized()}).ok());
}

// The shared read of a reference waits for the writes that its user waits for.
TEST(Races, ASharedReadIsOrderedByItsUser) {
  Graph g({.use_resource = false});
  const Variable v = MakeVariable(g, 1.f, {.name = "v"});
  Output after;
  {
    const ControlDependencies order(g, {v.Assign(5.f)});
    after = Identity(v.value());
  }
  Session session = *Session::Create(g, {.forbid_races = true});
  const auto out = session.Run({after});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), 5);
}

TEST_P(RacesTest, OppositeBranchesNeverMeet) {
  const Variable v = Var("v");
  const Output pred = Placeholder(g_, DT_BOOL, Shape());
  const SwitchResult sides = Switch(pred, Identity(pred));
  const SwitchResult data = Switch(Const(g_, 7.f), pred);
  Output read, written;
  {
    const ControlDependencies in_branch(g_, {Identity(sides.on_false)});
    read = v.read_value();
  }
  written = v.Assign(data.on_true);
  const Output merged = Merge({read, written}).output;
  Session session = *Session::Create(g_, {.forbid_races = true});
  EXPECT_TRUE(session.Prepare({pred}, {merged}).ok()) << session.Prepare({pred}, {merged}).status();
  // After the Merge the value may be either.
  const Output late = v.read_value();
  EXPECT_TRUE(absl::IsInvalidArgument(session.Prepare({pred}, {merged, late}).status()));
}

TEST_P(RacesTest, TheBranchesOfACondNeverMeet) {
  const Variable v = Var("v");
  const Output pred = Placeholder(g_, DT_BOOL, Shape());
  const Output either = Cond(
      pred, [&] { return Identity(v.Assign(5.f)); }, [&] { return v.read_value(); });
  Session session = *Session::Create(g_, {.forbid_races = true});
  EXPECT_TRUE(session.Prepare({pred}, {either}).ok()) << session.Prepare({pred}, {either}).status();
}

TEST_P(RacesTest, WithinAnIterationALoopMustOrderItsUses) {
  const Variable v = Var("v");
  const auto loop = [&](bool ordered) {
    const auto body = [&](const Outputs& counts) {
      const Output seen = v.read_value();
      std::optional<ControlDependencies> order;
      if (ordered) order.emplace(g_, std::vector<Operation>{seen});
      const Output written = v.AssignAdd(1.f);
      order.reset();
      const ControlDependencies both(g_, {seen, written});
      return Outputs{counts[0] + 1};
    };
    return WhileLoop([](const Outputs& counts) { return counts[0] < 3; }, body, {Const(g_, 0)});
  };
  const Outputs good = loop(true), bad = loop(false);
  EXPECT_TRUE(Check(good).ok()) << Check(good);
  EXPECT_TRUE(absl::IsInvalidArgument(Check(bad)));
}

TEST_P(RacesTest, InitializersInDependencyOrderAreNone) {
  const Variable a = Var("a");
  const Variable b = MakeVariable(g_, a.initialized_value() + 1.f, {.name = "b"});
  MakeVariable(g_, b.value() * 2.f, {.name = "c"});
  EXPECT_TRUE(Check({}, {GlobalVariablesInitializer(g_)}).ok())
      << Check({}, {GlobalVariablesInitializer(g_)});
}

class RacelessModels : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(RacelessModels, TrainingStepsOfWholeModels) {
  const auto [resource, conv_net] = GetParam();
  Graph g({.use_resource = resource});
  const TestModel model = conv_net ? AddConvNet(g) : AddMlp(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  Session session = *Session::Create(g, {.forbid_races = true});
  const auto out = RunModel(session, model, {3, 3});
  EXPECT_TRUE(out.ok()) << out.status();
}

INSTANTIATE_TEST_SUITE_P(All, RacelessModels,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()));

// ---- Behavior of races.

TEST_P(RacesTest, TheReadComesFirstHoweverItIsRequested) {
  const Variable v = MakeVariable(g_, {1.f, 2.f}, {.name = "v"});
  const Output write = v.AssignAdd({10.f, 10.f});
  const Output value = ReduceSum(v.read_value()), row = ReduceSum(v.SparseRead(Const(g_, {0})));
  const Operation init = GlobalVariablesInitializer(g_);
  for (const bool write_is_first : {false, true}) {
    Session session = *Session::Create(g_);
    ASSERT_TRUE(session.Run(init).ok());
    const Outputs fetches = write_is_first ? Outputs{ReduceSum(write), value, row}
                                           : Outputs{value, row, ReduceSum(write)};
    const auto out = session.Run(fetches);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[write_is_first ? 1 : 0].scalar<float>(), 3);
    EXPECT_EQ((*out)[write_is_first ? 2 : 1].scalar<float>(), 1);
  }
}

TEST_P(RacesTest, WritesComeInTheOrderInWhichTheStepReachesThem) {
  const Variable v = Var("v");
  const Operation add = v.AssignAdd(1.f, {.read_value = false}),
                  set = v.Assign(5.f, {.read_value = false});
  const Output value = v.read_value();
  const Operation init = GlobalVariablesInitializer(g_);
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(init).ok());
  ASSERT_TRUE(session.Run(Feeds{}, {}, {add, set}).ok());
  EXPECT_EQ(Run(session, value, {}), 5);
  ASSERT_TRUE(session.Run(Feeds{}, {}, {set, add}).ok());
  EXPECT_EQ(Run(session, value, {}), 6);
}

// Each write waits for a read that waits for the other write: one write must come first, and the
// read that it overtakes sees it, with any number of threads.
TEST_P(RacesTest, CyclesOfReadersAndWritersAreStillOrdered) {
  const Variable a = Var("a"), b = Var("b");
  const Output write_a = a.Assign(10.f), write_b = b.Assign(20.f);
  Output late_a, late_b;
  {
    const ControlDependencies after(g_, {write_b});
    late_a = a.read_value();
  }
  {
    const ControlDependencies after(g_, {write_a});
    late_b = b.read_value();
  }
  const Operation init = GlobalVariablesInitializer(g_);
  Session session = *Session::Create(g_, {.num_threads = 4});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(session.Run(init).ok());
    const auto out = session.Run({late_a, late_b});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), 1);
    EXPECT_EQ((*out)[1].scalar<float>(), 20);
  }
}

}  // namespace
}  // namespace weir
