#include <thread>

#include "gtest/gtest.h"
#include "weir/ops/containers/queue.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/random/random.h"
#include "weir/session/session.h"

namespace weir {
namespace {

Tensor Scalar(float x) { return Tensor::Scalar(x); }

class PartialRunTest : public testing::Test {
 protected:
  Graph g_;
  const Output a_ = Placeholder(g_, DT_FLOAT, {}, "a");
  const Output b_ = Placeholder(g_, DT_FLOAT, {}, "b");
  const Output c_ = Placeholder(g_, DT_FLOAT, {}, "c");
  const Output sum_ = a_ + b_;
  const Output product_ = sum_ * c_;

  Session Start() { return *Session::Create(g_); }
  static float Value(const absl::StatusOr<Tensors>& out, int i = 0) {
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[i].scalar<float>() : 0;
  }
};

TEST_F(PartialRunTest, LaterPieceUsesValuesOfAnEarlierOne) {
  Session session = Start();
  auto run = session.StartPartialRun({a_, b_, c_}, {sum_, product_});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(Value(run->Run({{a_, Scalar(1)}, {b_, Scalar(2)}}, {sum_})), 3);
  EXPECT_FALSE(run->is_over());
  EXPECT_EQ(Value(run->Run({{c_, Scalar(17)}}, {product_})), 51);
  EXPECT_TRUE(run->is_over());
}

TEST_F(PartialRunTest, FeedsMayComeBeforeTheFetchThatNeedsThem) {
  Session session = Start();
  auto run = session.StartPartialRun({a_, b_, c_}, {sum_, product_});
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run->Run({{a_, Scalar(1)}}, {}).ok());
  EXPECT_TRUE(run->Run({{c_, Scalar(4)}}, {}).ok());
  EXPECT_EQ(Value(run->Run({{b_, Scalar(2)}}, {product_})), 12);
  EXPECT_EQ(Value(run->Run({}, {sum_})), 3);
}

TEST_F(PartialRunTest, NodeRunsOnceThoughTwoPiecesUseIt) {
  const Variable count = GetVariable(g_, "count", {}, Zeros());
  const Output next = count.AssignAdd(1.f);
  const Output noise = RandomUniform(g_, {});
  const Output first = next + noise + a_, second = next + noise + b_;
  const Operation init = GlobalVariablesInitializer(g_);
  Session session = Start();
  ASSERT_TRUE(session.Run(init).ok());
  auto run = session.StartPartialRun({a_, b_}, {first, second});
  ASSERT_TRUE(run.ok());
  const float one = Value(run->Run({{a_, Scalar(10)}}, {first}));
  const float two = Value(run->Run({{b_, Scalar(10)}}, {second}));
  EXPECT_EQ(one, two);
  EXPECT_EQ(Value(session.Run({count.value()})), 1);
}

TEST_F(PartialRunTest, PlansOfPiecesServeLaterRuns) {
  Session session = Start();
  for (float x : {1.f, 2.f, 3.f}) {
    auto run = session.StartPartialRun({a_, b_, c_}, {sum_, product_});
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(Value(run->Run({{a_, Scalar(x)}, {b_, Scalar(x)}}, {sum_})), 2 * x);
    EXPECT_EQ(Value(run->Run({{c_, Scalar(x)}}, {product_})), 2 * x * x);
  }
}

TEST_F(PartialRunTest, RemainingTargetsRunWithTheLastPiece) {
  const Variable v = GetVariable(g_, "v", {}, Zeros());
  const Output assign = v.AssignAdd(a_);
  const Operation init = GlobalVariablesInitializer(g_);
  Session session = Start();
  ASSERT_TRUE(session.Run(init).ok());
  auto run = session.StartPartialRun({a_, b_}, {sum_}, {assign});
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run->Run({{a_, Scalar(5)}}, {}).ok());
  EXPECT_EQ(Value(session.Run({v.value()})), 0);
  EXPECT_EQ(Value(run->Run({{b_, Scalar(1)}}, {sum_})), 6);
  EXPECT_EQ(Value(session.Run({v.value()})), 5);
}

TEST_F(PartialRunTest, UnknownOrRepeatedElementsAreErrorsAndTheRunContinues) {
  Session session = Start();
  auto run = session.StartPartialRun({a_, b_}, {sum_});
  ASSERT_TRUE(run.ok());
  const auto expect = [](const absl::StatusOr<Tensors>& out, const char* words) {
    EXPECT_TRUE(absl::IsInvalidArgument(out.status())) << out.status();
    EXPECT_NE(out.status().message().find(words), absl::string_view::npos) << out.status();
  };
  expect(run->Run({{c_, Scalar(1)}}, {}), "The feed c:0 was not specified in partial_run_setup.");
  expect(run->Run({}, {product_}), "was not specified in partial_run_setup.");
  expect(run->Run({{a_, Scalar(1)}}, {sum_}), "can't be computed from the feeds");
  ASSERT_TRUE(run->Run({{a_, Scalar(1)}}, {}).ok());
  expect(run->Run({{a_, Scalar(1)}}, {}), "The feed a:0 has already been fed.");
  EXPECT_EQ(Value(run->Run({{b_, Scalar(2)}}, {sum_})), 3);
  EXPECT_FALSE(run->Run({}, {sum_}).ok());
  expect(absl::StatusOr<Tensors>(session.StartPartialRun({a_}, {}).status()),
         "specify at least one target to fetch or execute");
}

TEST_F(PartialRunTest, IsNotOverWhileAPieceRuns) {
  const Queue queue = Queue::Fifo(g_, 1, {DT_FLOAT});
  const Output waits = queue.Dequeue()[0] + a_;
  const Operation put = queue.Enqueue({Const(g_, 5.f)});
  Session session = Start();
  auto run = session.StartPartialRun({a_, b_}, {waits, sum_});
  ASSERT_TRUE(run.ok()) << run.status();
  std::atomic<bool> returned{false};
  std::thread piece([&] {
    EXPECT_EQ(Value(run->Run({{a_, Scalar(1)}}, {waits})), 6);
    returned = true;
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
  while (std::chrono::steady_clock::now() < until) EXPECT_FALSE(run->is_over());
  EXPECT_FALSE(returned);
  EXPECT_TRUE(session.Run(put).ok());
  piece.join();
  EXPECT_EQ(Value(run->Run({{b_, Scalar(2)}}, {sum_})), 3);
  EXPECT_TRUE(run->is_over());
}

TEST_F(PartialRunTest, FailedPieceEndsTheStep) {
  const Output d = Placeholder(g_, DT_FLOAT, Shape::UnknownRank(), "d");
  const Output bad = Reshape(d, {3});
  Session session = Start();
  auto run = session.StartPartialRun({a_, b_, d}, {bad, sum_});
  ASSERT_TRUE(run.ok());
  EXPECT_FALSE(run->Run({{d, Scalar(1)}}, {bad}).ok());
  EXPECT_TRUE(run->is_over());
}

}  // namespace
}  // namespace weir
