// A step that finds uninitialized variables reports all of them, and where values could come from.

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class UninitializedTest : public ::testing::TestWithParam<bool> {
 protected:
  Variable Var(const char* name) { return MakeVariable(g_, 1.f, {.name = name}); }
  Session Start(const Graph& graph) { return *Session::Create(graph); }

  Graph g_{GraphOptions{.use_resource = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Kinds, UninitializedTest, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Resource" : "Reference");
});

TEST_P(UninitializedTest, AllVariablesOfTheStepAreNamed) {
  const Variable a = Var("a"), b = Var("b"), c = Var("c"), d = Var("d");
  const Output sum = a + b + c;
  const Output update = b.AssignAdd(1.f);
  ASSERT_TRUE(d.valid()) << g_.status();
  Session session = Start(g_);
  ASSERT_TRUE(session.Run(b.initializer()).ok());
  const absl::Status s = session.Run(Feeds{}, {sum}, {update}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(s));
  EXPECT_THAT(s.message(),
              AllOf(HasSubstr("uninitialized"), HasSubstr("a (its initializer is a/Assign)"),
                    HasSubstr("c (its initializer is c/Assign)")));
  EXPECT_THAT(s.message(), AllOf(Not(HasSubstr("b (")), Not(HasSubstr("d ("))));
  if (!GetParam()) {
    EXPECT_THAT(s.message(),
                HasSubstr("Identity (node a/read): Attempting to use uninitialized value a"));
  }
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g_)).ok());
  EXPECT_TRUE(session.Run({sum}).ok());
}

TEST_P(UninitializedTest, UpdatesNeedAValueToo) {
  const Variable a = Var("a"), b = Var("b");
  const Output add = a.AssignAdd(1.f),
               scatter = MakeVariable(g_, {1.f, 2.f}, {.name = "s"})
                             .ScatterAdd({Const(g_, {1.f}), Const(g_, {0})});
  const Operation both = Group(g_, {add, scatter, b.initializer()});
  Session session = Start(g_);
  EXPECT_THAT(session.Run(both).message(),
              AllOf(HasSubstr("a (its"), HasSubstr("s (its"), Not(HasSubstr("b (its"))));
}

TEST_P(UninitializedTest, ReportsMissingInitializers) {
  Node* storage = NodeBuilder(g_, GetParam() ? "VarHandleOp" : "VariableV2")
                      .Name("bare")
                      .Attr("dtype", DT_FLOAT)
                      .Attr("shape", Shape())
                      .Build();
  const Output read = GetParam() ? NodeBuilder(g_, "ReadVariableOp")
                                       .Input(storage->output())
                                       .Attr("dtype", DT_FLOAT)
                                       .BuildOutput()
                                 : Identity(storage->output());
  Session session = Start(g_);
  EXPECT_THAT(session.Run({read}).status().message(),
              HasSubstr("bare (the graph has no initializer for it)"));
}

TEST_P(UninitializedTest, ARestoreThatGaveNoValueIsNamed) {
  const std::string path = testing::MakeTempDirectory("uninitialized") + "/m";
  const Variable a = Var("a"), late = Var("late");
  Saver saver = *Saver::Create(g_, {.variables = Variables{a}});
  const Output sum = a + late;
  {
    Session session = Start(g_);
    ASSERT_TRUE(session.Run(a.initializer()).ok());
    ASSERT_TRUE(saver.Save(session, path).ok());
  }
  Session session = Start(g_);
  ASSERT_TRUE(saver.Restore(session, path).ok());
  EXPECT_THAT(
      session.Run({sum}).status().message(),
      AllOf(HasSubstr("late (its initializer is late/Assign; not restored from checkpoint " + path +
                      ")"),
            Not(HasSubstr("a (its"))));
  session.Reset();
  EXPECT_THAT(session.Run({sum}).status().message(), Not(HasSubstr("not restored")));
}

TEST_P(UninitializedTest, VariablesAssignedFirstAreNotNamed) {
  const Variable missing = Var("missing"), made = Var("made");
  Output after;
  {
    const ControlDependencies order(g_, {made.Assign(missing)});
    after = made.read_value();
  }
  Session session = Start(g_);
  EXPECT_THAT(session.Run({after}).status().message(),
              AllOf(HasSubstr("missing (its"), Not(HasSubstr("made (its"))));
}

TEST_P(UninitializedTest, ReadsOfAnUntakenBranchAreNotNamed) {
  const Variable needed = Var("needed"), maybe = Var("maybe");
  const Output guarded = maybe.initialized_value();
  const Output sum = guarded + needed;
  Session session = Start(g_);
  EXPECT_TRUE(session.Run({guarded}).ok());
  EXPECT_THAT(session.Run({sum}).status().message(),
              AllOf(HasSubstr("needed (its"), Not(HasSubstr("maybe (its"))));
}

TEST_P(UninitializedTest, ReadsOfATakenBranchAreNamed) {
  const Variable maybe = Var("maybe"), other = Var("other");
  const Output pred = Placeholder(g_, DT_BOOL, Shape());
  const Output read = Cond(
      pred, [&] { return maybe.read_value(); }, [&] { return other.read_value(); });
  Session session = Start(g_);
  EXPECT_THAT(
      session.Run({{pred, Tensor::Scalar(true)}}, {read}).status().message(),
      AllOf(HasSubstr("maybe (its initializer is maybe/Assign)"), Not(HasSubstr("other (its"))));
}

TEST_P(UninitializedTest, OtherErrorsAreUnchanged) {
  const Variable a = Var("a");
  Output late;
  {
    const ControlDependencies after(g_, {Placeholder(g_, DT_INT32, {}, "p")});
    late = a.read_value();
  }
  Session session = Start(g_);
  const absl::Status s = session.Run({late}).status();
  EXPECT_THAT(s.message(), AllOf(HasSubstr("placeholder"), Not(HasSubstr("a (its"))));
}

TEST_P(UninitializedTest, ConcurrentAssignmentsAreNotReportedAsMissing) {
  const Variable a = Var("a"), b = Var("b");
  const Output sum = a + b;
  Session session = Start(g_);
  std::thread writer([&] {
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(session.Run(a.initializer()).ok());
  });
  for (int i = 0; i < 200; ++i) {
    const absl::Status s = session.Run({sum}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(s));
    EXPECT_THAT(s.message(), HasSubstr("b (its initializer is b/Assign)"));
  }
  writer.join();
  EXPECT_THAT(session.Run({sum}).status().message(), Not(HasSubstr("a (its")));
}

}  // namespace
}  // namespace weir
