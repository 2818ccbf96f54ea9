#include "weir/kernels/linalg/cache_budget.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"

namespace weir {
namespace {

TEST(CacheBudget, ReservesAtMostTheBudgetAndReturnsAll) {
  {
    CacheBudget most(CacheBudget::kMost - 10);
    EXPECT_EQ(most.bytes(), CacheBudget::kMost - 10);
    EXPECT_EQ(CacheBudget(11).bytes(), 0);
    CacheBudget rest(10);
    EXPECT_EQ(rest.bytes(), 10);
    EXPECT_EQ(CacheBudget(1).bytes(), 0);
    CacheBudget moved = std::move(rest);
    EXPECT_EQ(CacheBudget(1).bytes(), 0);
    moved = CacheBudget();
    EXPECT_EQ(CacheBudget(10).bytes(), 10);
  }
  EXPECT_EQ(CacheBudget(CacheBudget::kMost).bytes(), CacheBudget::kMost);
}

TEST(ReuseTracker, RarelyReusedValuesAreNotCached) {
  ReuseTracker uses;
  for (int change = 0; change < 100; ++change) {  // like evaluations between epochs
    uses.RecordNewValue();
    for (int use = 0; use < 3; ++use) uses.RecordReuse();
    EXPECT_TRUE(uses.pays()) << change;
  }
  int change = 0;
  for (; uses.pays() && change < 100; ++change) uses.RecordNewValue();  // like each training step
  EXPECT_THAT(change, testing::AllOf(testing::Gt(2), testing::Lt(10)));
}

// Weights that do not fit in the budget are packed in each step, or not at all.
TEST(CacheBudget, ResultsAreEqualWhenTheBudgetIsExhausted) {
  Tensor filter(DT_FLOAT, {3, 3, 16, 32}), matrix(DT_FLOAT, {64, 128}),
      image(DT_FLOAT, {1, 9, 9, 16}), rows(DT_FLOAT, {16, 64});
  for (Tensor* t : {&filter, &matrix, &image, &rows}) {
    for (int64_t i = 0; i < t->num_elements(); ++i)
      t->data<float>()[i] =
          static_cast<float>(i % 7 - 3);  // small integers, so that sums are exact
  }
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, image.shape()),
               r = Placeholder(g, DT_FLOAT, rows.shape());
  const Outputs ys = {Conv2D(x, Const(g, filter)), MatMul(r, Const(g, matrix))};
  const Feeds feeds = {{x, image}, {r, rows}};
  const absl::StatusOr<Tensors> want = Session::Create(g)->Run(feeds, ys);
  ASSERT_TRUE(want.ok()) << want.status();
  const CacheBudget all(
      CacheBudget::kMost);  // destroying the session returned its packed weights to the budget
  ASSERT_EQ(all.bytes(), CacheBudget::kMost);
  Session session = *Session::Create(g);
  for (int step = 0; step < 3; ++step) {
    const absl::StatusOr<Tensors> got = session.Run(feeds, ys);
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t i = 0; i < ys.size(); ++i)
      EXPECT_TRUE(IdenticalTensors((*got)[i], (*want)[i])) << i;
  }
}

}  // namespace
}  // namespace weir
