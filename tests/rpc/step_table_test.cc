// The steps that a task knows: none begins again after its end, and none stays forever.

#include "weir/rpc/cluster/step_exchange.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir::rpc {
namespace {

TEST(StepTableTest, AStepThatHasEndedDoesNotBeginAgain) {
  StepTable steps;
  const auto step = steps.Join(5, "s");
  ASSERT_TRUE(step.ok());
  steps.Remove(5);
  EXPECT_TRUE(absl::IsAborted((*step)->cancellation.status()));
  const absl::Status ended = absl::AbortedError("Cleanup 5");
  EXPECT_EQ(steps.Join(5, "s").status(), ended);
  EXPECT_EQ(steps.BeginWait(5).status(), ended);
  steps.Remove(6);  // before its first message
  EXPECT_EQ(steps.Join(6, "s").status(), absl::AbortedError("Cleanup 6"));
  EXPECT_EQ(steps.size(), 0);
}

TEST(StepTableTest, WaitsAloneLeaveNoStep) {
  StepTable steps;
  ASSERT_TRUE(steps.BeginWait(1).ok());
  ASSERT_TRUE(steps.BeginWait(1).ok());
  EXPECT_NE(steps.EndWait(1), nullptr);
  EXPECT_EQ(steps.size(), 1);
  EXPECT_NE(steps.EndWait(1), nullptr);
  EXPECT_EQ(steps.size(), 0);
  // A part that runs here is there until it is removed: others may still ask for what it sent.
  ASSERT_TRUE(steps.BeginWait(1).ok());
  ASSERT_TRUE(steps.Join(1, "s").ok());
  steps.EndWait(1);
  EXPECT_EQ(steps.size(), 1);
}

TEST(StepTableTest, StepsEndWithTheirSession) {
  StepTable steps;
  ASSERT_TRUE(steps.Join(1, "s").ok());
  ASSERT_TRUE(steps.Join(2, "other").ok());
  ASSERT_TRUE(steps.BeginWait(3).ok());
  steps.RemoveSession("s");
  EXPECT_TRUE(absl::IsAborted(steps.Join(1, "s").status()));
  EXPECT_TRUE(steps.Join(2, "other").ok());
  EXPECT_EQ(steps.size(), 2);
  steps.RemoveAll();
  EXPECT_EQ(steps.size(), 0);
  EXPECT_EQ(steps.EndWait(3), nullptr);
}

TEST(StepTableTest, TheNumberOfStepsIsLimited) {
  StepTable steps;
  int64_t id = 1;
  while (steps.Join(id, "s").ok()) ++id;
  EXPECT_EQ(id, 10'001);
  EXPECT_TRUE(absl::IsResourceExhausted(steps.Join(id, "s").status()));
  EXPECT_TRUE(absl::IsResourceExhausted(steps.BeginWait(id).status()));
  EXPECT_TRUE(steps.Join(1, "s").ok());
  steps.Remove(1);
  EXPECT_TRUE(steps.Join(id, "s").ok());
}

TEST(PassedOnTest, NamesTheTaskWhereTheErrorBegan) {
  const absl::Status own = absl::InvalidArgumentError("not a number");
  EXPECT_EQ(PassedOnBy(own), "");
  const absl::Status once = PassedOn("/job:ps/replica:0/task:1", own);
  EXPECT_EQ(PassedOnBy(once), "/job:ps/replica:0/task:1");
  EXPECT_EQ(PassedOnBy(PassedOn("/job:worker/replica:0/task:0", once)), "/job:ps/replica:0/task:1");
  EXPECT_THAT(std::string(once.message()),
              testing::StartsWith("not a number\nAdditional GRPC error information from remote "
                                  "target /job:ps/replica:0/task:1 while calling "));
}

}  // namespace
}  // namespace weir::rpc
