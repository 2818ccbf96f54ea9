// Sums and means of rows, which must equal TensorFlow 2.21's bit for bit (one thread, AVX).

#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/evaluate.h"

namespace weir {
namespace {

template <class T>
Tensor Values(const Shape& shape) {
  Tensor x(DataTypeOf<T>::value, shape);
  uint32_t i = 0;
  for (T& v : x.flat<T>()) v = static_cast<T>(2654435761u * i++ / 4294967296.0 - 0.4);
  return x;
}

template <class T>
T Scalar(const Output& x) {
  const absl::StatusOr<Tensors> out = Evaluate(x.graph(), {x});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0].scalar<T>() : T(0);
}

TEST(ReductionOrder, MatchesTensorFlow) {
  const struct {
    int64_t count;
    float sum, mean;
    double wide_sum, wide_mean;
  } cases[] = {
      {7, 0x1.6e0174p-3f, 0x1.a24acep-6f, 0x1.6e0175c199994p-3, 0x1.a24acfb8af8a9p-6},
      {20, 0x1.6d2c50p+0f, 0x1.242374p-4f, 0x1.6d2c515dffffep+0, 0x1.2423744b33332p-4},
      {33, 0x1.8f9be6p+1f, 0x1.837fe6p-4f, 0x1.8f9be4ee66665p+1, 0x1.837fe5c0634bfp-4},
      {100, 0x1.289560p+3f, 0x1.7ba07ap-4f, 0x1.2895608ec0000p+3, 0x1.7ba07b9800000p-4},
      {1000, 0x1.8fe7d4p+6f, 0x1.9980dap-4f, 0x1.8fe7d365afffcp+6, 0x1.9980d87883123p-4},
      {8193, 0x1.99d334p+9f, 0x1.99c666p-4f, 0x1.99d333ee6666cp+9, 0x1.99c665bb388d0p-4},
      {100000, 0x1.388144p+13f, 0x1.999b42p-4f, 0x1.388143b3bd802p+13, 0x1.999b41e20125cp-4},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.count);
    Graph g;
    const Output x = Const(g, Values<float>({c.count})), wide = Const(g, Values<double>({c.count}));
    EXPECT_EQ(Scalar<float>(ReduceSum(x)), c.sum);
    EXPECT_EQ(Scalar<float>(ReduceMean(x)), c.mean);
    EXPECT_EQ(Scalar<double>(ReduceSum(wide)), c.wide_sum);
    EXPECT_EQ(Scalar<double>(ReduceMean(wide)), c.wide_mean);
  }
}

TEST(ReductionOrder, MatchesTensorFlowForEachRowOfAMatrix) {
  Graph g;
  const Output sums = ReduceSum(Const(g, Values<float>({30, 100})), {1});
  const absl::StatusOr<Tensors> out = Evaluate(g, {sums});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].flat<float>()[0], 0x1.289560p+3f);
  EXPECT_EQ((*out)[0].flat<float>()[1], 0x1.537594p+3f);
  EXPECT_EQ((*out)[0].flat<float>()[29], 0x1.43fb12p+3f);
}

}  // namespace
}  // namespace weir
