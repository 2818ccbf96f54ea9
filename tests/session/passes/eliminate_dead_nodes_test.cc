#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

// Nodes whose values are unused, but that are sources of control edges.
namespace weir {
namespace {

using ::testing::HasSubstr;

// An op whose kernel fails.
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

TEST(EliminateDeadNodes, RemovesUnusedValues) { EXPECT_EQ(Fixture().Run({}), absl::OkStatus()); }

TEST(EliminateDeadNodes, ComputesUnusedValuesIfDisabled) {
  const absl::Status status = Fixture().Run({.disable = {"prune_control_edges", "reduce_waits"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("bad"));
}

TEST(EliminateDeadNodes, KeepsTargets) {
  Fixture f;
  absl::StatusOr<Session> session = Session::Create(f.g);
  ASSERT_TRUE(session.ok());
  const Output at = f.g.FindOutput("bad_at").value();
  EXPECT_FALSE(
      session->Run({{at, Tensor::Scalar<int32_t>(7)}}, {f.y}, {Operation(f.bad.node)}).ok());
}

TEST(EliminateDeadNodes, KeepsUsedValues) {
  Fixture f;
  const Output sum = f.bad + f.y;
  absl::StatusOr<Session> session = Session::Create(f.g);
  ASSERT_TRUE(session.ok());
  const Output at = f.g.FindOutput("bad_at").value();
  EXPECT_FALSE(session->Run({{at, Tensor::Scalar<int32_t>(7)}}, {sum}).ok());
}

// variable = 5 -> square -> negate ..> read: the read still runs after the assignment.
TEST(EliminateDeadNodes, KeepsOrderAcrossRemovedNodes) {
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

TEST(EliminateDeadNodes, KeepsDeadnessOfUntakenBranches) {
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

// A read of an uninitialized variable is an error, whatever depends on it.
TEST(EliminateDeadNodes, ReadsStillReportUninitializedVariables) {
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

// ---- properties of a value that are known without computing it, and the checks before it
// (TensorFlow 2.21 fails too)

absl::StatusCode Fetch(Graph& g, const Output& y) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  absl::StatusOr<Session> session = Session::Create(g);
  return session.ok() ? session->Run({y}).status().code() : session.status().code();
}

Output Of(const char* op, const Output& x) { return AddOp(op, {x}); }

TEST(PreservedChecks, AKnownShapeStillNeedsAnInitializedVariable) {
  const std::function<Output(const Output&)> kTakers[] = {
      [](const Output& w) { return Of("Rank", w); },
      [](const Output& w) { return Of("Size", w); },
      [](const Output& w) { return Of("Shape", w); },
      [](const Output& w) { return Of("Rank", Identity(Identity(w))); },
      [](const Output& w) { return Of("Shape", w + 1.f); },
      [](const Output& w) { return Of("Shape", MatMul(w, w)); },
      [](const Output& w) { return Of("Rank", w) + 1; },
      [](const Output& w) {
        return Stack({Of("Rank", w), Of("Rank", w + 1.f)});
      },
      [](const Output& w) { return Fill(Of("Shape", w), Const(w.graph(), 3.f)); },
      [](const Output& w) {  // the same value is available without the variable
        return AddOp("BroadcastArgs", {Const(w.graph(), {2, 2}), Of("Shape", w)});
      },
      [](const Output& w) {
        return Reshape(Placeholder(w.graph(), DT_FLOAT, Shape({4})), Of("Shape", w));
      },
  };
  for (const auto& taker : kTakers) {
    Graph g(GraphOptions{.use_resource = false});
    const Variable v = GetVariable(g, "v", Shape({2, 2}), Zeros());
    const Output y = taker(v.value());
    Session session = *Session::Create(g);
    Feeds feeds;
    if (Node* const x = g.FindNode("Placeholder")) feeds = {{x->output(), Tensor(DT_FLOAT, {4})}};
    const absl::Status status = session.Run(feeds, {y}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << y.name();
    EXPECT_THAT(std::string(status.message()), HasSubstr("v"));
    ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
    EXPECT_TRUE(session.Run(feeds, {y}).ok()) << y.name();
  }
}

TEST(PreservedChecks, AGroupOfComputedValuesNeedsTheVariable) {
  Graph g(GraphOptions{.use_resource = false});
  const Variable v = GetVariable(g, "v", Shape({2, 2}), Zeros());
  const Operation group = Group(g, {v.value() + 1.f});
  const Operation ranks = Group(g, {Of("Rank", v.value())});
  const Operation passed = Group(g, {Identity(Identity(v.read_value()))});
  Session session = *Session::Create(g);
  for (const Operation& each : {group, ranks, passed})
    EXPECT_EQ(session.Run(each).code(), absl::StatusCode::kFailedPrecondition) << each.name();
}

TEST(PreservedChecks, AssertVariablesInitializedFailsUntilInitialized) {
  for (const bool use_resource : {false, true}) {
    for (const int count : {1, 2}) {
      Graph g(GraphOptions{.use_resource = use_resource});
      for (int i = 0; i < count; ++i) GetVariable(g, absl::StrCat("v", i), Shape({2}), Zeros());
      const Operation check = AssertVariablesInitialized(g);
      Output behind;
      {
        const ControlDependencies after(g, {check});
        behind = Identity(Const(g, 3.f));
      }
      Session session = *Session::Create(g);
      EXPECT_EQ(session.Run(check).code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(session.Run({behind}).status().code(), absl::StatusCode::kFailedPrecondition);
      ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
      EXPECT_TRUE(session.Run(check).ok());
      EXPECT_TRUE(session.Run({behind}).ok());
    }
  }
}

// TensorFlow's sessions fold it without reading the variable.
TEST(PreservedChecks, TheShapeOfAResourceVariableNeedsNoValue) {
  Graph g;
  const Variable v = GetVariable(g, "v", Shape({2, 2}), Zeros());
  EXPECT_EQ(Fetch(g, Of("Shape", v.value() + 1.f)), absl::StatusCode::kOk);
}

TEST(PreservedChecks, APlaceholderOfKnownShapeMustBeFed) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape({2, 3}), "x");
  const Operation group = Group(g, {Of("Shape", x)});
  for (const Output& y : {Of("Rank", x), Of("Shape", x), Of("Shape", x + 1.f)}) {
    absl::StatusOr<Session> session = Session::Create(g);
    const absl::Status status = session->Run({y}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << y.name();
    EXPECT_THAT(std::string(status.message()), HasSubstr("must feed a value"));
    EXPECT_TRUE(session->Run({{x, Tensor(DT_FLOAT, {2, 3})}}, {y}).ok()) << y.name();
  }
  EXPECT_FALSE(Session::Create(g)->Run(group).ok());
}

}  // namespace
}  // namespace weir
