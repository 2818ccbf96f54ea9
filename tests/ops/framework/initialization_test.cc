// How sessions initialize variables whose initial values read other variables.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/random/random.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class InitializationTest : public testing::TestWithParam<bool> {
 protected:
  InitializationTest() : g({.use_resource = GetParam()}) {}

  // Returns the values of `fetches` after `init`, in a new session.
  std::vector<std::vector<float>> InitializeAndRead(Operation init, const Outputs& fetches) {
    std::vector<std::vector<float>> values;
    absl::StatusOr<Session> session = Session::Create(g);
    EXPECT_TRUE(session.ok()) << session.status();
    if (!session.ok()) return values;
    const absl::Status status = session->Run(init);
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return values;
    const absl::StatusOr<Tensors> out = session->Run(fetches);
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return values;
    for (const Tensor& t : *out) {
      values.emplace_back(t.flat<float>().begin(), t.flat<float>().end());
    }
    return values;
  }

  Graph g;
};
INSTANTIATE_TEST_SUITE_P(Kinds, InitializationTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Reference"; });

TEST_P(InitializationTest, RandomValueIsDrawnOnceForAllReaders) {
  const Variable a = MakeVariable(g, RandomUniform(g, {3}), {.name = "a"});
  const Variable b = MakeVariable(g, a.initialized_value() * 2.0f, {.name = "b"});
  const Variable c = MakeVariable(g, a, {.name = "c"});
  const Variable d = MakeVariable(g, [&] { return b.value() + c.value(); }, {.name = "d"});
  const Operation init = GlobalVariablesInitializer(g);
  for (int run = 0; run < 3; ++run) {
    const auto values = InitializeAndRead(init, {a, b, c, d});
    ASSERT_EQ(values.size(), 4u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(values[1][i], 2 * values[0][i]);
      EXPECT_EQ(values[2][i], values[0][i]);
      EXPECT_EQ(values[3][i], values[1][i] + values[2][i]);
    }
  }
}

TEST_P(InitializationTest, ListOrderDoesNotMatter) {
  const Variable a = MakeVariable(g, {1.0, 2.0}, {.name = "a"});
  const Variable b = MakeVariable(g, [&] { return a.value() + 1.0f; }, {.name = "b"});
  const Variable c = MakeVariable(g, [&] { return b.value() * 10.0f; }, {.name = "c"});
  const auto values = InitializeAndRead(VariablesInitializer(g, {c, b, a}), {c});
  EXPECT_THAT(values, ElementsAre(ElementsAre(20, 30)));
}

TEST_P(InitializationTest, InitializedValueReturnsTheExistingValue) {
  const Variable a = MakeVariable(g, 1.0, {.name = "a"});
  const Variable b = MakeVariable(g, a.initialized_value() * 2.0f, {.name = "b"});
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run(b.initializer()).ok());  // a has no value, so its initial value is used
  EXPECT_EQ((*session->Run({b}))[0].scalar<float>(), 2);
  ASSERT_TRUE(session->Run(Operation(a.Assign(5.0))).ok());
  ASSERT_TRUE(session->Run(b.initializer()).ok());
  EXPECT_EQ((*session->Run({b}))[0].scalar<float>(), 10);
}

TEST_P(InitializationTest, RunningInitializersAgainStartsOver) {
  const Variable a = MakeVariable(g, {1.0, 2.0}, {.name = "a"});
  const Operation init = GlobalVariablesInitializer(g);
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run(init).ok());
  ASSERT_TRUE(session->Run(Operation(a.AssignAdd({1.0, 1.0}))).ok());
  EXPECT_THAT((*session->Run({a}))[0].flat<float>(), ElementsAre(2, 3));
  ASSERT_TRUE(session->Run(init).ok());
  EXPECT_THAT((*session->Run({a}))[0].flat<float>(), ElementsAre(1, 2));
}

TEST_P(InitializationTest, ReadsOfUninitializedVariablesNameTheVariable) {
  const Variable a = MakeVariable(g, 1.0, {.name = "lonely"});
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::Status status = session->Run({a}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("lonely"));
}

TEST_P(InitializationTest, RandomStreamContinuesAcrossSteps) {
  g.set_seed(3);
  const Output x = RandomUniform(g, {2});
  const Output y = x + 1.0f;
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session.ok()) << session.status();
  const float first = (*session->Run({x}))[0].data<float>()[0];
  const float second = (*session->Run({y}))[0].data<float>()[0] - 1;  // another Plan
  const float third = (*session->Run({x}))[0].data<float>()[0];
  absl::StatusOr<Session> other = Session::Create(g);
  std::vector<float> again;
  for (int i = 0; i < 3; ++i) again.push_back((*other->Run({x}))[0].data<float>()[0]);
  EXPECT_EQ(again[0], first);
  EXPECT_NEAR(again[1], second, 1e-6);
  EXPECT_EQ(again[2], third);
}

}  // namespace
}  // namespace weir
