#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/random/random.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"
#include "weir/tests/kernels/lib/recorded.h"

namespace weir {
namespace {

TEST(Sobol, MatchesTensorFlow) { ExpectAnswers("tests/kernels/golden/sobol_answers.txt", 6, 0); }

Tensor Int(int32_t i) { return Tensor::Scalar(i); }

// Answers of TensorFlow 2.21: the first dimensions of degree 18, and the last of all.
TEST(Sobol, HasAllDimensions) {
  Graph g;
  const Output points = SobolSample(Const(g, Int(21200)), Const(g, Int(2)), Const(g, Int(1000)),
                                    {.dtype = DT_DOUBLE});
  const auto out = Evaluate(g, {points});
  ASSERT_TRUE(out.ok()) << out.status();
  const auto values = (*out)[0].flat<double>();
  EXPECT_THAT(values.subspan(13423, 3),
              testing::ElementsAre(0.0556640625, 0.8369140625, 0.8642578125));
  EXPECT_THAT(values.subspan(21197, 3),
              testing::ElementsAre(0.9931640625, 0.4150390625, 0.4462890625));
  EXPECT_THAT(values.subspan(42397, 3),
              testing::ElementsAre(0.7431640625, 0.6650390625, 0.1962890625));
  double sum = 0;
  for (const double x : values) sum += x;
  EXPECT_EQ(sum, 21239.09765625);
}

// TensorFlow's points from here on are negative.
TEST(Sobol, FarPointsAreInTheUnitCube) {
  Graph g;
  const Output points =
      SobolSample(Const(g, Int(3)), Const(g, Int(2)), Const(g, Int((1 << 30) + 3)));
  const auto out = Evaluate(g, {points});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<float>(),
              testing::ElementsAre(0.375f, 0.02500000037252903f, 0.4453193247318268f, 0.875f,
                                   0.5249999761581421f, 0.9453192949295044f));
}

TEST(Sobol, RejectsSizes) {
  const Attrs real = {{"dtype", DT_FLOAT}};
  recorded::ExpectRejections({
      {"SobolSample", {Int(0), Int(1), Int(0)}, real, "dim must be at least one"},
      {"SobolSample", {Int(21201), Int(1), Int(0)}, real, "dim must be at most 21200"},
      {"SobolSample", {Int(1), Int(0), Int(0)}, real, "num_results must be at least one"},
      {"SobolSample", {Int(1), Int(1), Int(-1)}, real, "skip must be non-negative"},
      {"SobolSample",
       {Int(1), Int(4), Int(2147483643)},
       real,
       "num_results+skip must be less than"},
      {"SobolSample", {Int(21200), Int(200000), Int(0)}, real, "num_results*dim must be less than"},
  });
}

}  // namespace
}  // namespace weir
