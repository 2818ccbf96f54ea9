// Variables that exist within a step.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/containers/data_flow.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

class TemporaryVariables : public testing::Test {
 protected:
  Output Make(const char* name, float value) {
    const Output ref = TemporaryVariable(g_, {}, DT_FLOAT, name);
    return AddOp("Assign", {ref, Const(g_, value)});
  }
  // Runs the step twice: the second run must not be affected by the first.
  void ExpectError(const Outputs& fetches, absl::StatusCode code, absl::string_view words) {
    ASSERT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_);
    for (int step = 0; step < 2; ++step) {
      const absl::Status status = session.Run(fetches).status();
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    }
  }
  Graph g_;
};

// The behavior was recorded with TensorFlow 2.21.
TEST_F(TemporaryVariables, OfOneNameAreMadeOnceInAStep) {
  const Output first = Make("x", 1);
  const ControlDependencies after(g_, {first});
  ExpectError({Make("x", 2), first}, absl::StatusCode::kAlreadyExists, "already exists");
}

TEST_F(TemporaryVariables, MayBeMadeAgainOnceDestroyed) {
  const Output first = DestroyTemporaryVariable(Make("x", 1), "x");
  Output second;
  {
    const ControlDependencies after(g_, {first});
    second = DestroyTemporaryVariable(Make("x", 2), "x");
  }
  Session session = *Session::Create(g_);
  for (int step = 0; step < 2; ++step) {
    const auto got = session.Run(Outputs{first, second});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ((*got)[0].scalar<float>(), 1);
    EXPECT_EQ((*got)[1].scalar<float>(), 2);
  }
}

TEST_F(TemporaryVariables, AreDestroyedOnceAndByTheirName) {
  const Output made = Make("x", 1), first = DestroyTemporaryVariable(made, "x");
  Output second;
  {
    const ControlDependencies after(g_, {first});
    second = DestroyTemporaryVariable(made, "x");
  }
  ExpectError({second}, absl::StatusCode::kNotFound, "does not exist");
  ExpectError({DestroyTemporaryVariable(Make("y", 1), "z")}, absl::StatusCode::kNotFound, "z");
  ExpectError({DestroyTemporaryVariable(Make("", 1), "")}, absl::StatusCode::kInvalidArgument,
              "Missing var_name attribute");
}

TEST_F(TemporaryVariables, AreCreatedInEachIteration) {
  const Outputs out =
      WhileLoop([](const Outputs& v) { return Less(v[0], 3); },
                [&](const Outputs& v) -> Outputs {
                  const ControlDependencies order(g_, {v[0]});
                  return {v[0] + 1, v[1] + DestroyTemporaryVariable(Make("x", 2), "x")};
                },
                {Const(g_, 0), Const(g_, 0.0f)});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  const auto got = session.Run(Outputs{out[1]});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].scalar<float>(), 6);
}

}  // namespace
}  // namespace weir
