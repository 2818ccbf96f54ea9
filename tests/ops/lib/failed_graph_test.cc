#include "gtest/gtest.h"
#include "weir/ops/containers/data_flow.h"
#include "weir/ops/containers/functional.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/linalg/linalg.h"

// Builders that return lists, on a graph with an error or with an error of their own, return the
// promised number of invalid outputs, so that a program that indexes the list reaches the error.
namespace weir {
namespace {

void ExpectInvalid(const Outputs& outputs, size_t count) {
  ASSERT_EQ(outputs.size(), count);
  for (const Output& output : outputs) EXPECT_TRUE(output == Output());
}

class FailedGraphTest : public testing::Test {
 protected:
  FailedGraphTest() { bad_ = MatMul(Const(g_, {1.0f}), Const(g_, {2.0f})); }

  Graph g_;
  Output bad_;  // invalid
  const Output good_ = Const(g_, {1.0f, 2.0f});
};

TEST_F(FailedGraphTest, ListsOfInvalidTensorsHaveThePromisedLength) {
  EXPECT_FALSE(g_.status().ok());
  ExpectInvalid(Split(bad_, 3), 3);
  ExpectInvalid(SplitV(bad_, {1, 2}), 2);
  ExpectInvalid(Unstack(bad_, 0, 4), 4);
  ExpectInvalid(Unstack(bad_), 1);
  ExpectInvalid(IdentityN({bad_, good_}), 2);
  ExpectInvalid(ShapeN({bad_, good_}), 2);
  ExpectInvalid(DynamicPartition(bad_, bad_, 3), 3);
  ExpectInvalid(DenseGradients({bad_}, {good_, good_}), 2);
}

TEST_F(FailedGraphTest, LoopsReturnTheirVariables) {
  const auto less = [](const Outputs& v) { return v[0] < 10; };
  const auto next = [](const Outputs& v) { return Outputs{v[0] + 1, v[1]}; };
  ExpectInvalid(WhileLoop(less, next, {bad_, bad_}), 2);
  ExpectInvalid(WhileLoop(less, next, {Const(g_, 0), bad_}), 2);
  ExpectInvalid(WhileLoop(less, next, {Const(g_, 0), good_}), 2);
  const auto twice = [](const Outputs& row) { return Outputs{row[0] * 2.0f}; };
  ExpectInvalid(MapFn(twice, {bad_}), 1);
  ExpectInvalid(MapFn(twice, {good_}), 1);
  const auto two = [](const Outputs& row) { return Outputs{row[0], row[0]}; };
  ExpectInvalid(MapFn(two, {bad_}, {.dtypes = DataTypes{DT_FLOAT, DT_FLOAT}}), 2);
  const auto sum = [](const Outputs& s, const Outputs& row) { return Outputs{s[0] + row[0]}; };
  ExpectInvalid(Scan(sum, {bad_}, {Const(g_, 0.0f)}), 1);
  ExpectInvalid(Scan(sum, {good_}, {}), 1);
}

TEST_F(FailedGraphTest, BranchesReturnTheirResults) {
  const auto both = [&] { return Outputs{good_, good_}; };
  ExpectInvalid(Cond(bad_, both, both), 2);
  ExpectInvalid(Cond(Const(g_, true), both, both), 2);
  ExpectInvalid(Case({{bad_, both}}, both), 2);
  ExpectInvalid(Case({{Const(g_, true), both}}, both), 2);
}

TEST(FailedGraph, OwnErrorsReturnThePromisedNumber) {
  Graph g;
  const Output x = Const(g, {1.0f, 2.0f}), scalar = Const(g, 1.0f);
  const auto one = [&] { return Outputs{x}; };
  const auto two = [&] { return Outputs{x, x}; };
  ExpectInvalid(Cond(Const(g, true), two, one), 2);
  EXPECT_FALSE(g.TakeStatus().ok());
  ExpectInvalid(Unstack(Placeholder(g, DT_FLOAT)), 1);
  EXPECT_FALSE(g.TakeStatus().ok());
  ExpectInvalid(MapFn([](const Outputs&) { return Outputs(); }, {x}), 1);
  EXPECT_FALSE(g.TakeStatus().ok());
  ExpectInvalid(MapFn([](const Outputs& row) { return row; }, {scalar}), 1);
  EXPECT_FALSE(g.TakeStatus().ok());
  ExpectInvalid(WhileLoop([](const Outputs& v) { return v[0] < 1.0f; },
                          [](const Outputs&) { return Outputs(); }, {scalar}),
                1);
  EXPECT_FALSE(g.TakeStatus().ok());
}

TEST(FailedGraph, ImpossibleListSizesAreErrors) {
  Graph g;
  const Output x = Const(g, {1.0f, 2.0f});
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_FALSE(Split(x, kHuge)[0].valid());
  EXPECT_EQ(g.TakeStatus().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Unstack(x, 0, kHuge)[0].valid());
  EXPECT_EQ(g.TakeStatus().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Unstack(Output(), 0, kHuge)[0].valid());
  ExpectInvalid(SplitV(Output(), Placeholder(g, DT_INT32, {0})), 0);
  ExpectInvalid(SplitV(Output(), Placeholder(g, DT_INT32, {-1})), 1);
  ExpectInvalid(SplitV(x, Placeholder(g, DT_INT32)), 1);
  EXPECT_EQ(g.TakeStatus().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FailedGraph, EmptyFunctionsAreErrors) {
  Graph g;
  const Output x = Const(g, {1.0f, 2.0f}), scalar = Const(g, 1.0f);
  const auto fails = [&g] { return g.TakeStatus().code() == absl::StatusCode::kInvalidArgument; };
  ExpectInvalid(MapFn(RowFn(), {x}), 1);
  EXPECT_TRUE(fails());
  ExpectInvalid(Scan(ScanFn(), {x}, {scalar}), 1);
  EXPECT_TRUE(fails());
  ExpectInvalid(Scan([](const Outputs& s, const Outputs&) { return s; }, {}, {scalar}), 1);
  EXPECT_TRUE(fails());
  ExpectInvalid(WhileLoop(LoopCondFn(), [](const Outputs& v) { return v; }, {scalar}), 1);
  EXPECT_TRUE(fails());
  ExpectInvalid(WhileLoop([](const Outputs& v) { return v[0] < 1.0f; }, LoopBodyFn(), {scalar}), 1);
  EXPECT_TRUE(fails());
  EXPECT_FALSE(Cond(Const(g, true), BranchFn(), [&] { return x; }).valid());
  EXPECT_TRUE(fails());
  ExpectInvalid(Case({}, [&] { return Outputs{x}; }), 1);
  EXPECT_TRUE(fails());
}

TEST(FailedGraph, InvalidVariablesHaveNoProperties) {
  const Variable none;
  EXPECT_EQ(none.device(), "");
  EXPECT_FALSE(none.constraint());
  EXPECT_FALSE(none.save_slice().has_value());
  EXPECT_FALSE(none.trainable());
}

}  // namespace
}  // namespace weir
