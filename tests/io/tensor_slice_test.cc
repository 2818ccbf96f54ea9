#include "weir/core/io/tensor_slice.h"

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace weir {
namespace {

constexpr int64_t kAll = TensorSlice::Extent::kAll;

TEST(TensorSlice, TextRoundTrips) {
  for (const char* text : {"-", "3,2:-", "0,1:5,7:-:2,2", ""}) {
    const auto slice = TensorSlice::Parse(text);
    ASSERT_TRUE(slice.ok()) << text;
    EXPECT_EQ(slice->ToString(), text);
  }
  for (const char* text :
       {"x", "1", "1,", ",1", "-1,2", "1,-2", "1,0", "1,2,3", "1,2:", "9223372036854775807,1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(TensorSlice::Parse(text).status())) << text;
  }
}

TEST(ShapeAndSlice, ParsesAndRejectsWhatDoesNotFit) {
  const auto parsed = ShapeAndSlice::Parse("7 2 3,2:0,2");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->shape, Shape({7, 2}));
  EXPECT_EQ(parsed->slice_shape, Shape({2, 2}));
  for (const char* text :
       {"7", "7 2 3,2", "7 2 6,2:-", "7 x 3,2:-", "7 -2 3,2:-", "7 2  -:-", ""}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ShapeAndSlice::Parse(text).status())) << text;
  }
}

TEST(SliceKey, MatchesTensorFlowsBytes) {
  const TensorSlice slice{{{0, 3}, {0, 2}}};
  EXPECT_EQ(absl::BytesToHexString(EncodeSliceKey("pt", slice)),
            "00707400010102"
            "80838082");
  EXPECT_EQ(absl::BytesToHexString(EncodeSliceKey("a", TensorSlice::Full(1))),
            "006100010101"
            "807f");
}

TEST(SliceKey, RoundTripsAndPreservesOrder) {
  std::string last;
  for (const int64_t start :
       {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{64}, int64_t{8191}, int64_t{8192},
        int64_t{1} << 20, int64_t{1} << 34, int64_t{1} << 41, int64_t{1} << 48, int64_t{1} << 55,
        (int64_t{1} << 62) - 1, int64_t{1} << 62, INT64_MAX}) {
    for (const int64_t length : {kAll, int64_t{1}, INT64_MAX}) {
      const TensorSlice slice{{{start, length}, {0, kAll}}};
      const std::string key = EncodeSliceKey(absl::string_view("n\0\xff", 3), slice);
      EXPECT_LT(last, key) << start;
      last = key;
      std::string name;
      TensorSlice decoded;
      ASSERT_TRUE(DecodeSliceKey(key, &name, &decoded)) << start << " " << length;
      EXPECT_EQ(name, std::string("n\0\xff", 3));
      EXPECT_EQ(decoded, slice);
      for (size_t n = 0; n < key.size(); ++n)
        EXPECT_FALSE(DecodeSliceKey(key.substr(0, n), &name, &decoded));
    }
  }
}

TEST(Boxes, IntersectionAndDisjointness) {
  const Box a{{0, 0}, {3, 4}}, b{{2, 1}, {3, 2}}, c{{3, 0}, {1, 4}};
  const auto both = IntersectBoxes(a, b);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->start, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(both->size, (std::vector<int64_t>{1, 2}));
  EXPECT_FALSE(IntersectBoxes(a, c));
  EXPECT_TRUE(AreDisjoint({a, c}));
  EXPECT_FALSE(AreDisjoint({c, a, b}));
  EXPECT_FALSE(AreDisjoint({Box{}, Box{}}));
}

TEST(CopyBox, CopiesThePartBetweenBoxes) {
  Tensor whole(DT_INT32, Shape({4, 3, 2}));
  for (int i = 0; i < 24; ++i) whole.data<int32_t>()[i] = i;
  const Box full = ResolveSlice(TensorSlice::Full(3), whole.shape());
  const Box want{{1, 1, 0}, {2, 2, 2}};
  Tensor out(DT_INT32, Shape(want.size));
  CopyBox(whole, full, want, want, &out);
  EXPECT_TRUE(
      IdenticalTensors(out, Tensor::Of<int32_t>(Shape({2, 2, 2}), {8, 9, 10, 11, 14, 15, 16, 17})));
  const Box rows{{1, 0, 0}, {2, 3, 2}};
  Tensor copied(DT_INT32, Shape(rows.size));
  CopyBox(whole, full, rows, rows, &copied);
  EXPECT_TRUE(IdenticalTensors(copied, whole.Slice(1, 3)));
}

TEST(CopyBox, CopiesStrings) {
  const Tensor words = Tensor::Vector<std::string>({"a", "bb", "ccc"});
  Tensor out(DT_STRING, Shape({2}));
  CopyBox(words, Box{{0}, {3}}, Box{{1}, {2}}, Box{{1}, {2}}, &out);
  EXPECT_TRUE(IdenticalTensors(out, Tensor::Vector<std::string>({"bb", "ccc"})));
}

}  // namespace
}  // namespace weir
