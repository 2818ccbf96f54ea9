// _SwitchN, to which TensorFlow lowers Case. The expected values are TensorFlow 2.21's.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

namespace weir {
namespace {

Outputs SwitchN(const Output& data, const Output& index, int count) {
  NodeBuilder builder(data.graph(), "_SwitchN");
  Node* const node = builder.Input(data).Input(index).Attr("num_outs", int64_t{count}).Build();
  EXPECT_NE(node, nullptr) << data.graph().status();
  Outputs out(count);
  for (int i = 0; node != nullptr && i < count; ++i) out[i] = node->output(i);
  return out;
}

// -x, x * x, x + 1; any other index selects the last.
Output Choose(const Output& x, const Output& index) {
  const Outputs sides = SwitchN(x, index, 3);
  return Merge({-sides[0], Square(sides[1]), sides[2] + 1.f}).output;
}

TEST(SwitchN, RunsOneBranch) {
  Graph g;
  const Output index = Placeholder(g, DT_INT32, Shape());
  const Output y = Choose(Const(g, 3.f), index);
  Session session = *Session::Create(g);
  for (const auto& [i, right] : {std::pair(0, -3.f), {1, 9.f}, {2, 4.f}, {3, 4.f}, {-1, 4.f}}) {
    const auto out = session.Run({{index, Tensor::Scalar<int32_t>(i)}}, {y});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), right) << i;
  }
}

TEST(SwitchN, RunsInFunctions) {
  for (const char* disabled : {"remove_no_ops", "inline_functions"}) {
    Graph g, body;
    const Outputs args = {Placeholder(body, DT_FLOAT, Shape()),
                          Placeholder(body, DT_INT32, Shape())};
    const Output chosen = Choose(args[0], args[1]);
    ASSERT_TRUE(DefineFunction(g, "choose", body, args, {chosen}).ok());
    const Output index = Placeholder(g, DT_INT32, Shape());
    const Output y = Call(g, FunctionRef{"choose", nullptr}, {Const(g, 3.f), index})[0];
    ASSERT_TRUE(g.status().ok()) << g.status();
    Session session = *Session::Create(g, {.disable = {disabled}});
    for (const auto& [i, right] : {std::pair(0, -3.f), {1, 9.f}, {7, 4.f}}) {
      const auto out = session.Run({{index, Tensor::Scalar<int32_t>(i)}}, {y});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ((*out)[0].scalar<float>(), right) << i;
    }
  }
}

// An effect in one branch, and a node after the Merge, which runs whichever was taken.
TEST(SwitchN, OnlyTheBranchTakenHasAnEffect) {
  Graph g;
  const Variable v = MakeVariable(g, 1.f, {.name = "v"});
  const Output index = Placeholder(g, DT_INT32, Shape());
  const Outputs sides = SwitchN(Const(g, 5.f), index, 3);
  Outputs values;
  for (int i = 0; i < 3; ++i) {
    const ControlDependencies after(g, {v.Assign(sides[i] * static_cast<float>(i))});
    values.push_back(Identity(sides[i]));
  }
  const Output merged = Merge(values).output;
  Output seen;
  {
    const ControlDependencies after(g, {merged});
    seen = v.read_value();
  }
  ASSERT_TRUE(g.status().ok()) << g.status();
  Session session = *Session::Create(g, {.forbid_races = true});
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
  for (int i = 0; i < 3; ++i) {
    const auto out = session.Run({{index, Tensor::Scalar<int32_t>(i)}}, {seen});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), 5.f * static_cast<float>(i));
  }
}

// Two of three outputs are not all.
TEST(SwitchN, AMergeOfSomeSidesMayBeDead) {
  Graph g;
  const Output index = Placeholder(g, DT_INT32, Shape());
  const Outputs sides = SwitchN(Const(g, 5.f), index, 3);
  const Output two = Merge({sides[0], -sides[1]}).output * 2.f;
  Session session = *Session::Create(g);
  EXPECT_EQ((*session.Run({{index, Tensor::Scalar<int32_t>(1)}}, {two}))[0].scalar<float>(), -10);
  EXPECT_EQ(session.Run({{index, Tensor::Scalar<int32_t>(2)}}, {two}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SwitchN, TheIndexIsAScalar) {
  Graph g;
  const Output index = Placeholder(g, DT_INT32);
  const Output y = SwitchN(Const(g, 5.f), index, 2)[0];
  Session session = *Session::Create(g);
  const absl::Status status = session.Run({{index, Tensor::Of<int32_t>({1}, {0})}}, {y}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("must be a scalar"));
}

}  // namespace
}  // namespace weir
