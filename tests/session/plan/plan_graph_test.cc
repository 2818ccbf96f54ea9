#include "weir/session/plan/plan_graph.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/plan/plan_uses.h"
#include "weir/tests/session/lib/plan_fixture.h"

namespace weir {
namespace {

using ::testing::ElementsAre;

class PlanGraphTest : public PlanFixture {
 protected:
  // y = sqrt(x) + exp(sqrt(x)), and a node that only waits for the Exp.
  PlanGraphTest() {
    x_ = Placeholder(graph_, DT_FLOAT, {}, "x");
    root_ = Sqrt(x_, "root");
    const Output power = Exp(root_, "power");
    y_ = Add(root_, power, "y");
    wait_ = NodeBuilder(graph_, "NoOp").Name("wait").Control(power.node).Build();
    plan_ = Prepare({x_}, {y_}, {wait_});
    root = Find(plan_, "root"), power_ = Find(plan_, "power"), sum = Find(plan_, "y");
  }

  Output x_, root_, y_;
  Node* wait_ = nullptr;
  PlanGraph plan_;
  int root = -1, power_ = -1, sum = -1;
};

TEST_F(PlanGraphTest, UsesHaveUserInputAndKind) {
  const PlanUses uses(plan_);
  ASSERT_EQ(uses.Of(root).size(), 2);
  EXPECT_TRUE(uses.HasOnlyInputUses(root));
  EXPECT_EQ(uses.OnlyUser(root), -1);
  EXPECT_EQ(uses.OnlyUser(Find(plan_, "x")), root);
  // Its value is used once, but a node waits for it too.
  EXPECT_EQ(uses.OnlyUser(power_), -1);
  EXPECT_FALSE(uses.HasOnlyInputUses(power_));
  EXPECT_FALSE(uses.Escapes(power_));
  EXPECT_TRUE(uses.Escapes(sum));
  EXPECT_EQ(uses.Of(sum)[0].kind, PlanUse::Kind::kFetch);
  EXPECT_EQ(uses.Of(Find(plan_, "wait"))[0].kind, PlanUse::Kind::kTarget);
}

TEST_F(PlanGraphTest, ReplaceAllUsesReachesNodesAndFetches) {
  plan_.ReplaceAllUses({sum, 0}, {root, 0});
  EXPECT_EQ(plan_.fetches[0], (PlanValue{root, 0}));
  plan_.ReplaceAllUses({root, 0}, {Find(plan_, "x"), 0});
  EXPECT_THAT(plan_.nodes[sum].inputs,
              ElementsAre(PlanValue{Find(plan_, "x"), 0}, PlanValue{power_, 0}));
  EXPECT_TRUE(PlanUses(plan_).Of(root).empty());
}

TEST_F(PlanGraphTest, EraseUnusedFollowsOnlyCandidates) {
  const int before = plan_.NumNodes();
  plan_.changes = {};
  plan_.ReplaceAllUses({sum, 0}, {Find(plan_, "x"), 0});
  plan_.EraseUnused({root, sum});
  EXPECT_TRUE(plan_.nodes[sum].removed);
  EXPECT_FALSE(plan_.nodes[root].removed);  // the Exp uses it
  EXPECT_EQ(plan_.changes.removed, 1);
  EXPECT_EQ(plan_.NumNodes(), before - 1);
}

TEST_F(PlanGraphTest, InsertThenSortRestoresTheOrder) {
  PlanNode copy = plan_.nodes[root];
  const int inserted = plan_.Insert(std::move(copy));
  plan_.nodes[power_].inputs[0] = {inserted, 0};
  ASSERT_TRUE(SortTopologically(plan_).ok());
  for (int i = 0; i < static_cast<int>(plan_.nodes.size()); ++i) {
    for (const PlanValue& v : plan_.nodes[i].inputs) EXPECT_LT(v.node, i);
  }
}

TEST_F(PlanGraphTest, CyclesNameTheirNodes) {
  plan_.nodes[root].inputs[0] = {sum, 0};
  const absl::Status status = SortTopologically(plan_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("y"));
}

}  // namespace
}  // namespace weir
