// MapDefun. The values are those of TensorFlow 2.21.

#include "weir/tests/kernels/data/dataset_test_util.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

using MapDefunTest = DatasetTransformsTest;

TEST_F(MapDefunTest, StacksResults) {
  const FunctionRef f = Define({DT_INT64, DT_INT64}, [](Graph&, const Outputs& a) {
    return Outputs{a[0] * a[1], Identity(a[1])};
  });
  const auto mapped = [&](const Output& rows, const Shape& shape) {
    return AddNode("MapDefun", {Outputs{rows}, Outputs{Number(10)}},
                   {{"f", f},
                    {"output_types", DataTypes{DT_INT64, DT_INT64}},
                    {"output_shapes", std::vector<Shape>{shape, Shape()}}});
  };
  const Output rows = Const(g_, Tensor::Of<int64_t>({3, 2}, {0, 1, 2, 3, 4, 5}));
  Node* const stacked = mapped(rows, Shape({2}));
  EXPECT_EQ(stacked->output(0).shape(), Shape({3, 2}));
  const std::string all = "[[ 0 10]\n [20 30]\n [40 50]] ; [10 10 10]";
  EXPECT_EQ(Fetched(stacked->output(0)), all);
  EXPECT_EQ(Fetched(mapped(rows, Shape::UnknownRank())->output(0)), all);
  EXPECT_THAT(Fetched(mapped(rows, Shape({3}))->output(0)),
              HasSubstr("Mismatch in function retval shape"));
}

}  // namespace
}  // namespace weir
