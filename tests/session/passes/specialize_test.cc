#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/passes/elementwise_regions.h"
#include "weir/session/passes/fold_constants.h"
#include "weir/session/plan/container_shapes.h"
#include "weir/session/plan/infer_shapes.h"
#include "weir/tests/session/lib/plan_fixture.h"

// The pieces of Specialize, and the analysis of elementwise regions, each alone.
namespace weir {
namespace {

class SpecializeTest : public PlanFixture {};

TEST_F(SpecializeTest, InfersShapesFromFeeds) {
  const Output x = Placeholder(graph_, DT_FLOAT, Shape({-1, 3}), "x");
  const Output y = MatMul(x, Const(graph_, Tensor(DT_FLOAT, Shape({3, 4}))), {.name = "y"});
  PlanGraph plan = Prepare({x}, {y});
  const std::vector<Shape> fed = {Shape({7, 3})};
  ShapeInference shapes(plan, fed);
  shapes.Begin();
  for (PlanNode& n : plan.nodes) shapes.Visit(n);
  EXPECT_EQ(plan.nodes[Find(plan, "y")].shapes[0], Shape({7, 4}));
  EXPECT_TRUE(shapes.AssumptionsHold(0));
  EXPECT_FALSE(shapes.UpdateContainers());
}

TEST_F(SpecializeTest, FoldsShapesWithoutTheTensor) {
  const Output x = Placeholder(graph_, DT_FLOAT, Shape({-1, 3}), "x");
  Node* const rows = NodeBuilder(graph_, "Shape").Name("shape").Input(x).Build();
  const PlanGraph plan = Specialized({x}, {rows->output()}, {Shape({5, 3})});
  const int shape = Find(plan, "shape");
  ASSERT_TRUE(plan.nodes[shape].is_constant(0));
  EXPECT_EQ(plan.nodes[shape].constants[0].data<int32_t>()[0], 5);
}

TEST_F(SpecializeTest, FoldsWhatIsKnownAndNothingElse) {
  const Output x = Placeholder(graph_, DT_FLOAT, {}, "x");
  const Output two = Const(graph_, 2.0f, "two");
  const Output four = Add(two, two, "four"), y = Multiply(x, four, "y");
  PlanGraph plan = Specialized({x}, {y}, {Shape()});
  ASSERT_TRUE(plan.nodes[Find(plan, "four")].is_constant(0));
  EXPECT_EQ(plan.nodes[Find(plan, "four")].constants[0].data<float>()[0], 4);
  ConstantFolder folder(plan, env());
  EXPECT_FALSE(folder.CanFold(plan.nodes[Find(plan, "y")]));
}

TEST_F(SpecializeTest, KernelsOfPlainOpsAreLeftToLowering) {
  const Output x = Placeholder(graph_, DT_FLOAT, {}, "x");
  const Output y = Sqrt(x, "y");
  const PlanGraph plan = Specialized({x}, {y}, {Shape()});
  EXPECT_FALSE(plan.nodes[Find(plan, "y")].has_kernel());
}

TEST(CommonShape, KeepsEqualDimensions) {
  EXPECT_EQ(CommonShape(Shape({2, 3}), Shape({2, 4})), Shape({2, -1}));
  EXPECT_FALSE(CommonShape(Shape({2}), Shape({2, 4})).has_rank());
}

TEST_F(SpecializeTest, RegionsJoinUsersAndEndAtOtherShapes) {
  const Output x = Placeholder(graph_, DT_FLOAT, Shape({4096}), "x");
  const Output a = Multiply(x, x, "a"), b = Add(a, x, "b"), c = Negative(b, "c");
  const Output sum = ReduceSum(c, {0}, false, "sum");
  const Output d = Exp(sum, "d");
  PlanGraph plan = Specialized({x}, {d, c}, {Shape({4096})});
  const PlanEnvironment env = this->env();
  ElementwiseRegions regions(plan, env);
  regions.Find();
  // The fetched Neg is a result of its own; the reduction does not contain it.
  const auto region_of = [&](const char* name) {
    const int id = Find(plan, name);
    for (const Region& r : regions.regions()) {
      for (const int node : r.nodes) {
        if (node == id) return r.result;
      }
    }
    return -1;
  };
  EXPECT_EQ(region_of("a"), Find(plan, "c"));
  EXPECT_EQ(region_of("b"), Find(plan, "c"));
  EXPECT_NE(region_of("d"), Find(plan, "c"));
}

}  // namespace
}  // namespace weir
