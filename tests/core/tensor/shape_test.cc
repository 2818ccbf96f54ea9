#include "weir/core/tensor/shape.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

TEST(Shape, TextForm) {
  EXPECT_EQ(Shape().ToString(), "[]");
  EXPECT_EQ(Shape({2, -1, 3}).ToString(), "[2,?,3]");
  EXPECT_EQ(Shape::UnknownRank().ToString(), "<unknown>");
}

TEST(Shape, DimCountsFromBothEnds) {
  const Shape s({2, 3, 4});
  EXPECT_EQ(s.dim(0), 2);
  EXPECT_EQ(s.dim(-1), 4);
  EXPECT_EQ(Shape::UnknownRank().dim(5), -1);
  EXPECT_EQ(Shape::UnknownRank().rank(), -1);
}

TEST(Shape, NumElementsNeedsEveryDimension) {
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ(Shape({2, 3}).num_elements(), 6);
  EXPECT_EQ(Shape({0, 3}).num_elements(), 0);
  EXPECT_EQ(Shape({-1, 3}).num_elements(), -1);
  EXPECT_EQ(Shape::UnknownRank().num_elements(), -1);
  const int64_t big = int64_t{1} << 62;
  EXPECT_EQ(Shape({big, big}).num_elements(), INT64_MAX);
  EXPECT_EQ(Shape({big, big, 0}).num_elements(), 0);
  EXPECT_FALSE(Shape({-1}).IsFullyDefined());
  EXPECT_FALSE(Shape::UnknownRank().IsFullyDefined());
}

TEST(Shape, MakeRejectsImpossibleShapes) {
  EXPECT_TRUE(Shape::Make({2, -1, 0}).ok());
  EXPECT_EQ(Shape::Make({-2}).status().code(), absl::StatusCode::kInvalidArgument);
  const int64_t big = int64_t{1} << 40;
  EXPECT_THAT(Shape::Make({big, big}).status().message(), HasSubstr("too many elements"));
  EXPECT_TRUE(Shape::Make(std::vector<int64_t>(254, 1)).ok());
  EXPECT_THAT(Shape::Make(std::vector<int64_t>(255, 1)).status().message(), HasSubstr("254"));
}

TEST(Shape, MergeCombinesKnownDimensions) {
  EXPECT_EQ(*Shape({2, -1}).MergeWith(Shape({-1, 3})), Shape({2, 3}));
  EXPECT_EQ(*Shape::UnknownRank().MergeWith(Shape({1})), Shape({1}));
  EXPECT_EQ(*Shape({1}).MergeWith(Shape::UnknownRank()), Shape({1}));
  EXPECT_EQ(Shape({2}).MergeWith(Shape({3})).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Shape({2}).MergeWith(Shape({2, 3})).status().message(), HasSubstr("[2] and [2,3]"));
  EXPECT_TRUE(Shape({-1, 3}).IsCompatibleWith(Shape({7, -1})));
  EXPECT_FALSE(Shape({-1, 3}).IsCompatibleWith(Shape({7, 4})));
}

TEST(Shape, SubAndConcatenate) {
  const Shape s({2, 3, 4});
  EXPECT_EQ(s.Sub(1), Shape({3, 4}));
  EXPECT_EQ(s.Sub(0, -1), Shape({2, 3}));
  EXPECT_EQ(s.Sub(2, 1), Shape());
  EXPECT_EQ(s.Sub(-9, 99), s);
  EXPECT_EQ(Shape({1}).Concatenate(Shape({2, -1})), Shape({1, 2, -1}));
  EXPECT_FALSE(Shape({1}).Concatenate(Shape::UnknownRank()).has_rank());
}

TEST(BroadcastShapes, FollowsNumPyAndKeepsUnknownDimensions) {
  EXPECT_EQ(*BroadcastShapes(Shape({2, 1}), Shape({3})), Shape({2, 3}));
  EXPECT_EQ(*BroadcastShapes(Shape(), Shape({4, 0})), Shape({4, 0}));
  EXPECT_EQ(*BroadcastShapes(Shape({1}), Shape({0})), Shape({0}));
  EXPECT_EQ(*BroadcastShapes(Shape({-1}), Shape({5})), Shape({5}));
  EXPECT_EQ(*BroadcastShapes(Shape({-1}), Shape({1})), Shape({-1}));
  EXPECT_EQ(*BroadcastShapes(Shape({-1}), Shape({-1})), Shape({-1}));
  EXPECT_FALSE(BroadcastShapes(Shape::UnknownRank(), Shape({2}))->has_rank());
  const absl::Status status = BroadcastShapes(Shape({2, 3}), Shape({4})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "Incompatible shapes: [2,3] vs. [4]");
}

TEST(Annotate, PutsTheContextFirstAndKeepsTheCode) {
  const absl::Status status = Annotate(NotFound("no ", 3), "node x");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "node x: no 3");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok());
}

}  // namespace
}  // namespace weir
