#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"

// Shapes and attributes near the limits of int64. Sizes that no tensor can have are rejected when
// the node is created, and arithmetic on the others does not overflow.
namespace weir {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBig = int64_t{1} << 62;

struct Huge {
  const char* op;
  std::vector<Shape> inputs;      // placeholders
  std::vector<Tensor> constants;  // inputs that follow them
  Attrs attrs = {};
  bool list = false;  // the placeholders are a list
};

Tensor Ints64(std::initializer_list<int64_t> values) { return Tensor::Vector<int64_t>(values); }
Tensor Pairs(std::initializer_list<int64_t> values) {
  return Ints64(values).Reshaped(Shape({static_cast<int64_t>(values.size()) / 2, 2}));
}

std::vector<Huge> HugeShapes() {
  const int64_t unknown = Shape::kUnknown;
  return {
      {"Pad", {Shape({kBig})}, {Pairs({kBig - 1, kBig - 1})}},
      {"Pad", {Shape({kBig})}, {Pairs({kBig, 0})}},
      {"MirrorPadGrad", {Shape({4})}, {Pairs({kBig, kBig})}, {{"mode", "REFLECT"}}},
      {"SpaceToBatchND", {Shape({1, kBig})}, {Ints64({1}), Pairs({kBig, 0})}},
      {"SpaceToBatchND", {Shape({kBig, unknown})}, {Ints64({2}), Pairs({0, 0})}},
      {"BatchToSpaceND", {Shape({2, kBig})}, {Ints64({2}), Pairs({0, 0})}},
      {"SpaceToDepth",
       {Shape({unknown, unknown, unknown, kBig})},
       {},
       {{"block_size", int64_t{2}}}},
      {"DepthToSpace",
       {Shape({unknown, kBig, unknown, unknown})},
       {},
       {{"block_size", int64_t{2}}}},
      {"ConcatV2", {Shape({kBig}), Shape({kBig})}, {Tensor::Scalar<int32_t>(0)}, {}, true},
      {"Tile", {Shape({kBig})}, {Ints64({2})}},
      {"DepthwiseConv2dNative",
       {Shape({unknown, 1, 1, kBig}), Shape({1, 1, unknown, 2})},
       {},
       {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "VALID"}}},
  };
}

class HugeShapeTest : public testing::TestWithParam<Huge> {};

TEST_P(HugeShapeTest, IsAnInvalidArgument) {
  const Huge& huge = GetParam();
  Graph g;
  NodeBuilder builder(g, huge.op);
  Outputs placeholders;
  for (const Shape& shape : huge.inputs) placeholders.push_back(Placeholder(g, DT_FLOAT, shape));
  if (huge.list) {
    builder.InputList(placeholders);
  } else {
    for (const Output& x : placeholders) builder.Input(x);
  }
  for (const Tensor& t : huge.constants) builder.Input(Const(g, t));
  for (const auto& [name, value] : huge.attrs) builder.Attr(name, value);
  EXPECT_EQ(builder.Build(), nullptr);
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("Dimension size overflow"));
}

INSTANTIATE_TEST_SUITE_P(Ops, HugeShapeTest, testing::ValuesIn(HugeShapes()),
                         [](const testing::TestParamInfo<Huge>& info) {
                           return std::string(info.param.op) + std::to_string(info.index);
                         });

TEST(HugeShapes, SizeOfASliceIsComparedWithoutOverflow) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {4});
  EXPECT_FALSE(Slice(x, Const(g, Ints64({3})), Const(g, Ints64({INT64_MAX}))).valid());
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("Expected size[0] in [0, 1]"));
}

// [0:4:huge] selects the first element, [3::-huge] the last one.
TEST(HugeShapes, StrideBeyondTheDimensionSelectsOneElement) {
  for (const int64_t stride : {INT64_MAX, INT64_MIN + 1}) {
    Graph g;
    const Output x = Placeholder(g, DT_FLOAT, {4, 3});
    const Output begin = Const(g, Ints64({stride > 0 ? 0 : 3})),
                 end = Const(g, Ints64({stride > 0 ? 4 : 0}));
    const Output y = StridedSlice(x, begin, end, Const(g, Ints64({stride})), {});
    Tensor in(DT_FLOAT, Shape({4, 3}));
    for (int i = 0; i < 12; ++i) in.data<float>()[i] = static_cast<float>(i);
    const absl::StatusOr<Tensors> out = Evaluate(g, {{x, in}}, {y});
    ASSERT_TRUE(out.ok()) << out.status();
    ASSERT_EQ((*out)[0].shape(), Shape({1, 3}));
    EXPECT_EQ((*out)[0].data<float>()[0], stride > 0 ? 0 : 9);
  }
}

}  // namespace
}  // namespace weir
