#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/array.h"
#include "weir/ops/control_flow.h"
#include "weir/ops/initializers.h"
#include "weir/ops/math.h"
#include "weir/ops/variables.h"
#include "weir/session/session.h"

// Nodes whose values nobody uses, but for whose end others wait.
namespace weir {
namespace {

using ::testing::HasSubstr;

// Fails when it is computed.
Output BadGather(Graph& g, absl::string_view name) {
  return Gather(Const(g, {1.f, 2.f}), Placeholder(g, DT_INT32, {}, std::string(name) + "_at"), {},
                name);
}

struct Fixture {
  Fixture() : bad(BadGather(g, "bad")) {
    const ControlDependencies after(g, {bad});
    y = Identity(Const(g, 3.f), "y");
  }
  absl::Status Run(SessionOptions options) {
    WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g, std::move(options)));
    return session.Run({{g.FindOutput("bad_at").value(), Tensor::Scalar<int32_t>(7)}}, {y})
        .status();
  }
  Graph g;
  Output bad, y;
};

TEST(UnusedValues, AreNotComputed) { EXPECT_EQ(Fixture().Run({}), absl::OkStatus()); }

TEST(UnusedValues, AreComputedIfTheOptimisationIsOff) {
  const absl::Status status = Fixture().Run({.disable = {"needless_waits", "unused_values"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("bad"));
}

TEST(UnusedValues, AreComputedIfTheyAreTargets) {
  Fixture f;
  absl::StatusOr<Session> session = Session::Create(f.g);
  ASSERT_TRUE(session.ok());
  const Output at = f.g.FindOutput("bad_at").value();
  EXPECT_FALSE(
      session->Run({{at, Tensor::Scalar<int32_t>(7)}}, {f.y}, {Operation(f.bad.node)}).ok());
}

TEST(UnusedValues, AreComputedIfAnotherNodeUsesThem) {
  Fixture f;
  const Output sum = f.bad + f.y;
  absl::StatusOr<Session> session = Session::Create(f.g);
  ASSERT_TRUE(session.ok());
  const Output at = f.g.FindOutput("bad_at").value();
  EXPECT_FALSE(session->Run({{at, Tensor::Scalar<int32_t>(7)}}, {sum}).ok());
}

// variable = 5 -> square -> negate ..> read: the read waits for the assignment all the same.
TEST(UnusedValues, StillKeepTheOrderOfWhatIsAroundThem) {
  Graph g;
  const Variable v = GetVariable(g, "v", {}, Zeros());
  const Output five = Identity(v.Assign(Const(g, 5.f)));
  const Output unused = -Square(five);
  Output read;
  {
    const ControlDependencies after(g, {unused});
    read = v.read_value();
  }
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session.ok());
  const auto out = session->Run({read});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), 5);
}

TEST(UnusedValues, OfABranchNotTakenKeepWaitersFromRunning) {
  Graph g;
  const Output which = Placeholder(g, DT_BOOL, {}, "which");
  const SwitchResult branches = Switch(Const(g, 1.f), which);
  Output a, b;
  {
    const ControlDependencies after(g, {Square(-branches.on_false)});
    a = Const(g, 10.f);
  }
  {
    const ControlDependencies after(g, {Square(-branches.on_true)});
    b = Const(g, 20.f);
  }
  const Output either = Merge({Identity(a), Identity(b)}).output;
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session.ok());
  for (const bool taken : {false, true}) {
    const auto out = session->Run({{which, Tensor::Scalar(taken)}}, {either});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), taken ? 20 : 10);
  }
}

// A read of a variable without a value is an error, whoever waits for it.
TEST(UnusedValues, ReadsOfVariablesStillReportThatThereIsNone) {
  Graph g;
  const Variable v = GetVariable(g, "v", {}, Zeros());
  Output y;
  {
    const ControlDependencies after(g, {v.read_value()});
    y = Identity(Const(g, 3.f));
  }
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->Run({y}).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace weir
