#include "weir/session/passes/lowering.h"

#include "absl/algorithm/container.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/passes/live_ranges.h"
#include "weir/session/plan/task_reachability.h"
#include "weir/tests/session/lib/plan_fixture.h"

// Each pass of lowering alone, on the results of those before it.
namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LoweringTest : public PlanFixture {
 protected:
  // A chain of unary ops on a vector: no two values but neighbors are live at once.
  PlanGraph Chain(int64_t size, int length) {
    const Output x = Placeholder(graph_, DT_FLOAT, Shape({size}), "x");
    Output y = x;
    for (int i = 0; i < length; ++i) y = Sigmoid(y, absl::StrCat("op", i));
    return Lowerable({x}, {y}, {Shape({size})});
  }
  PlanGraph Lowerable(Outputs feeds, Outputs fetches, const std::vector<Shape>& shapes) {
    PlanGraph plan = Specialized(std::move(feeds), std::move(fetches), shapes);
    EXPECT_TRUE(MakeKernels(plan, env()).ok());
    EXPECT_TRUE(OrderNodes(plan, env(), lowering_).ok());
    AssignSlots(plan, env(), lowering_);
    MakeTasks(plan, env(), lowering_);
    return plan;
  }

  Lowering lowering_;
};

TEST_F(LoweringTest, OrderAndSlotsFollowTheEdges) {
  const PlanGraph plan = Chain(4, 3);
  const NodeOrder& order = lowering_.order;
  ASSERT_EQ(order.order.size(), 3);
  EXPECT_LT(order.position[Find(plan, "op0")], order.position[Find(plan, "op2")]);
  EXPECT_EQ(order.position[Find(plan, "x")], -1);  // fed
  EXPECT_EQ(lowering_.slots.count, 4);
  EXPECT_EQ(lowering_.slots.of(Find(plan, "op1"), 0), lowering_.slots.of(Find(plan, "op0"), 0) + 1);
}

TEST_F(LoweringTest, EveryRunningNodeHasAKernel) {
  const PlanGraph plan = Chain(4, 3);
  for (const PlanNode& n : plan.nodes) EXPECT_EQ(n.has_kernel(), n.kind == PlanNode::Kind::kOp);
}

TEST_F(LoweringTest, SmallNodesShareATask) {
  Chain(4, 3);
  EXPECT_EQ(lowering_.tasks.predecessors.size(), 1);
}

TEST_F(LoweringTest, HeavyIndependentNodesGetTasks) {
  const Output x = Placeholder(graph_, DT_FLOAT, Shape({400, 400}), "x");
  const Output a = MatMul(x, x, {.name = "a"}), b = MatMul(x, Negative(x), {.name = "b"});
  const PlanGraph plan = Lowerable({x}, {a, b}, {Shape({400, 400})});
  EXPECT_NE(lowering_.tasks.task_of[Find(plan, "a")], lowering_.tasks.task_of[Find(plan, "b")]);
  options_.disable = {"partition_tasks"};
  Lowering alone;
  PlanGraph again = plan;
  ASSERT_TRUE(OrderNodes(again, env(), alone).ok());
  MakeTasks(again, env(), alone);
  EXPECT_EQ(alone.tasks.predecessors.size(), 1);
}

TEST_F(LoweringTest, DeadMemoryIsReused) {
  PlanGraph plan = Chain(1000, 8);
  options_.disable = {"in_place"};
  PlanMemory(plan, env(), lowering_);
  // The last value is fetched: it leaves the arena.
  EXPECT_EQ(lowering_.memory.placements.size(), 7);
  ASSERT_EQ(lowering_.memory.arenas.size(), 1);
  EXPECT_LE(lowering_.memory.arenas[0].second, 2 * 4096);
  EXPECT_THAT(lowering_.memory.swapped, IsEmpty());
}

TEST_F(LoweringTest, InPlaceOpsShareABlock) {
  PlanGraph plan = Chain(1000, 8);
  PlanMemory(plan, env(), lowering_);
  EXPECT_LE(lowering_.memory.arenas[0].second, 4096);
}

TEST_F(LoweringTest, LiveRangesEndAtTheLastUser) {
  const Output x = Placeholder(graph_, DT_FLOAT, Shape({10}), "x");
  const Output a = Sqrt(x, "a"), b = Exp(a, "b"), c = Exp(b, "c"), d = Add(a, c, "d");
  const PlanGraph plan = Lowerable({x}, {d}, {Shape({10})});
  const LiveRanges live = FindLiveRanges(plan, lowering_);
  const auto class_of = [&](const char* name) {
    return live.classes[live.class_of[lowering_.slots.of(Find(plan, name), 0)]];
  };
  EXPECT_EQ(class_of("a").last_position, lowering_.order.position[Find(plan, "d")]);
  EXPECT_EQ(class_of("b").last_position, lowering_.order.position[Find(plan, "c")]);
  EXPECT_TRUE(class_of("d").escapes);
  EXPECT_FALSE(class_of("a").escapes);
  EXPECT_EQ(live.class_of[lowering_.slots.of(Find(plan, "x"), 0)], -1);  // not computed
}

TEST_F(LoweringTest, TheLastFetchOfAValueMovesIt) {
  const Output x = Placeholder(graph_, DT_FLOAT, Shape({10}), "x");
  const Output a = Sqrt(x, "a"), c = Const(graph_, std::vector<float>(10, 1), "c");
  PlanGraph plan = Lowerable({x}, {a, c, a}, {Shape({10})});
  ReleaseValues(plan, env(), lowering_);
  EXPECT_THAT(lowering_.releases.moved_fetches, ElementsAre(0, 0, 1));
}

TEST_F(LoweringTest, ValuesOutsideTheArenaAreReleasedAfterTheirLastUse) {
  PlanGraph plan = Chain(1000, 3);
  ReleaseValues(plan, env(), lowering_);  // no memory plan: no arena
  const int op0 = Find(plan, "op0"), op1 = Find(plan, "op1"), op2 = Find(plan, "op2");
  const ReleasePlan& r = lowering_.releases;
  EXPECT_THAT(r.after[op1], ElementsAre(lowering_.slots.of(op0, 0)));
  EXPECT_THAT(r.last_uses[op1], ElementsAre(lowering_.slots.of(op0, 0)));
  EXPECT_THAT(r.moved_fetches, ElementsAre(1));
  EXPECT_THAT(r.after[op2], ElementsAre(lowering_.slots.of(op1, 0)));  // not the fetched value
  EXPECT_THAT(r.after_loop, IsEmpty());
}

TEST(TaskReachability, IsTransitive) {
  const TaskReachability tasks({{}, {}, {1}, {2}});
  EXPECT_TRUE(tasks.IsBefore(0, 1));
  EXPECT_TRUE(tasks.IsBefore(1, 3));
  EXPECT_FALSE(tasks.IsBefore(3, 1));
  EXPECT_FALSE(tasks.IsBefore(2, 1));
}

}  // namespace
}  // namespace weir
