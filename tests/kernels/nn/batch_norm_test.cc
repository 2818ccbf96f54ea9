#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/nn/nn.h"
#include "weir/tests/evaluate.h"

// Gradients checked to order 1 by tests: FusedBatchNormGrad, FusedBatchNormGradV2,
// FusedBatchNormGradV3.

// Gradients checked to order 2 by tests: FusedBatchNorm, FusedBatchNormV2, FusedBatchNormV3.

namespace weir {
namespace {

using testing::HasSubstr;

// sin(0.7 i + phase): the numbers for which TensorFlow's results were recorded.
Tensor Wave(const Shape& shape, double phase) {
  Tensor t(DT_FLOAT, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i) + phase));
  }
  return t;
}

void ExpectNear(const Tensor& got, const std::vector<double>& want, double tolerance = 2e-5) {
  ASSERT_EQ(got.dtype(), DT_FLOAT);
  ASSERT_EQ(got.num_elements(), static_cast<int64_t>(want.size()));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got.data<float>()[i], want[i], tolerance) << "element " << i;
  }
}

Output Total(Output x) {
  std::vector<int64_t> axes(x.shape().rank());
  std::iota(axes.begin(), axes.end(), 0);
  return AddOp("Sum", {x, Ints(axes).In(x.graph(), "axes")});
}
Output Times(Output a, Output b) { return AddOp("Mul", {a, b}); }
Output Plus(Output a, Output b) { return AddOp("AddV2", {a, b}); }

// The layer, the gradients of a weighted sum of its results, and the gradients of a weighted sum of
// those gradients.
struct Derivatives {
  Graph g;
  FusedBatchNormResult layer;
  Outputs first;   // with respect to x, scale, offset
  Outputs second;  // with respect to x, scale and the weights

  explicit Derivatives(bool is_training) {
    const Shape shape({2, 1, 3, 2});
    Output x = Const(g, Wave(shape, 0)), w = Const(g, Wave(shape, 1)), u = Const(g, Wave(shape, 2));
    Output scale = Const(g, {1.5f, -0.7f}), offset = Const(g, {0.2f, 0.1f});
    FusedBatchNormOptions options{.epsilon = 0.01, .is_training = is_training};
    if (!is_training) {
      options.mean = Const(g, {0.3f, -0.2f});
      options.variance = Const(g, {0.5f, 1.2f});
    }
    layer = FusedBatchNorm(x, scale, offset, options);
    first = DenseGradients({Total(Times(layer.y, w))}, Outputs{x, scale, offset});
    Output sum =
        Plus(Plus(Total(Times(first[0], u)), Total(Times(first[1], Const(g, {0.4f, -1.1f})))),
             Total(Times(first[2], Const(g, {2.0f, 1.0f}))));
    second = DenseGradients({sum}, Outputs{x, scale, w}, {.name = "second"});
  }

  Tensors Values() {
    Outputs all = {layer.y, layer.batch_mean, layer.batch_variance};
    all.insert(all.end(), first.begin(), first.end());
    all.insert(all.end(), second.begin(), second.end());
    const absl::StatusOr<Tensors> values = Evaluate(g, all);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.value_or(Tensors(9));
  }
};

Tensor Floats(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }
Tensor NoFloats() { return Tensor(DT_FLOAT, Shape({0})); }

// [1, 2, 2, 2] of 0, 1, 2, ...
Tensor Counting() {
  Tensor t(DT_FLOAT, Shape({1, 2, 2, 2}));
  std::iota(t.data<float>(), t.data<float>() + t.num_elements(), 0.0f);
  return t;
}

TEST(FusedBatchNorm, TrainingAgreesWithTensorFlowToTheSecondDerivative) {
  const Tensors v = Derivatives(true).Values();
  ExpectNear(v[0], {0.0229882, -0.3392949, 2.2283335, -0.5541806, 0.7726606, 0.6370504, -1.9275177,
                    1.2568765, -1.3897281, 0.2763454, 1.4932634, -0.6767966});
  ExpectNear(v[1], {0.0790970, 0.1965289});
  ExpectNear(v[2], {0.5271127, 0.5986853});
  ExpectNear(v[3], {1.4935691, -0.5158313, -0.1701008, 0.5444860, -2.1980958, 0.8346556, -1.2238107,
                    -0.1270230, 1.1353772, -0.7441002, 0.9630609, 0.0078128});
  ExpectNear(v[4], {2.3563516, 2.5505261});
  ExpectNear(v[5], {1.3225212, 1.1952446});
  ExpectNear(v[6], {0.1172505, -0.3636315, -1.7144866, 1.1176113, -0.4369830, 0.7024432, 1.8290215,
                    -0.9199293, 1.3218105, -1.0562611, -1.1166126, 0.5197673});
  ExpectNear(v[7], {3.4591773, 2.8596916});
  ExpectNear(v[8], {3.5706947, -0.2390982, 2.3119285, 0.5732304, -0.2353096, 2.7353160, 0.1575625,
                    2.6579545, 2.8383517, 0.4695710, 3.3567717, -0.1969740});
}

TEST(FusedBatchNorm, InferenceAgreesWithTensorFlowToTheSecondDerivative) {
  const Tensors v = Derivatives(false).Values();
  ExpectNear(v[0], {-0.4301260, -0.4372294, 1.6397324, -0.5765878, 0.2734898, 0.1959530, -2.2608011,
                    0.5979244, -1.7560509, -0.0379725, 0.9498218, -0.6561070});
  ExpectNear(v[1], {0.3, -0.2});
  ExpectNear(v[2], {0.5, 1.2});
  ExpectNear(v[3], {1.7674423, -0.6310594, 1.4187564, -0.0264604, -1.2851585, 0.6220646, -1.8556257,
                    0.2379215, 0.6543677, -0.5411870, 2.0780678, -0.4218895});
  ExpectNear(v[4], {1.8024971, 2.0849376});
  ExpectNear(v[5], {1.3225212, 1.1952446});
  ExpectNear(v[6], {0.4713180, -0.9916648, 0.3783350, -0.0415807, -0.3427090, 0.9775301, -0.4948336,
                    0.3738766, 0.1744980, -0.8504366, 0.5541514, -0.6629692});
  ExpectNear(v[7], {2.7791853, 1.3184416});
  ExpectNear(v[8], {3.7418728, -0.1161866, 1.8471848, 0.4575124, -0.0727668, 1.5997634, 1.1692637,
                    1.4143546, 3.5114241, 0.2090768, 3.0655742, -0.0152297});
}

TEST(FusedBatchNorm, ReturnsUnbiasedVarianceAndReservesTheBiasedOneForTheGradient) {
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
    const auto out =
        RunFed(op, {Counting(), Floats({1, 1}), Floats({1, 1}), NoFloats(), NoFloats()}, {});
    ASSERT_TRUE(out.ok()) << out.status();
    ExpectNear((*out)[0], {-0.3416274, -0.3416274, 0.5527909, 0.5527909, 1.4472091, 1.4472091,
                           2.3416274, 2.3416274});
    ExpectNear((*out)[1], {3, 4});
    ExpectNear((*out)[2], {20.0 / 3, 20.0 / 3});
    ExpectNear((*out)[3], {3, 4});
    ExpectNear((*out)[4], {5, 5});
    if (out->size() == 6) {
      EXPECT_EQ((*out)[5].shape(), Shape({0}));
    }
  }
}

TEST(FusedBatchNorm, RunningValuesMoveByTheAverageFactor) {
  const auto out =
      RunFed("FusedBatchNormV3",
             {Counting(), Floats({1, 1}), Floats({1, 1}), Floats({1, 1}), Floats({1, 1})},
             {{"exponential_avg_factor", 0.25f}});
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectNear((*out)[1], {1.5, 1.75});
  ExpectNear((*out)[2], {2.4166667, 2.4166667});
}

TEST(FusedBatchNorm, GradientsOfAllVersionsAgreeWithTensorFlow) {
  Tensor dy(DT_FLOAT, Shape({1, 2, 2, 2}));
  std::fill_n(dy.data<float>(), 8, 1.0f);
  for (const char* op : {"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"}) {
    Tensors inputs = {dy, Counting(), Floats({1, 1}), Floats({1, 1}), Floats({1, 1})};
    if (op == std::string("FusedBatchNormGradV3")) inputs.push_back(NoFloats());
    const auto training = RunFed(op, inputs, {});
    ASSERT_TRUE(training.ok()) << training.status();
    ExpectNear((*training)[0], {1.9997003, 0, -1.9997003, -5.9991016, -5.9991016, -11.998203,
                                -9.998501, -17.997305});
    ExpectNear((*training)[1], {7.9996004, 11.999401});
    ExpectNear((*training)[2], {4, 4});
    EXPECT_EQ((*training)[3].shape(), Shape({0}));
    const auto inference = RunFed(op, inputs, {{"is_training", false}});
    ASSERT_TRUE(inference.ok()) << inference.status();
    ExpectNear((*inference)[0], std::vector<double>(8, 0.99995005));
  }
}

// Transposes [n, h, w, c] to [n, c, h, w].
Tensor ChannelsFirst(const Tensor& t) {
  Tensor out(DT_FLOAT, Shape({t.dim(0), t.dim(3), t.dim(1), t.dim(2)}));
  const int64_t pixels = t.dim(1) * t.dim(2), channels = t.dim(3);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const int64_t n = i / (pixels * channels), p = i / channels % pixels, c = i % channels;
    out.data<float>()[(n * channels + c) * pixels + p] = t.data<float>()[i];
  }
  return out;
}

TEST(FusedBatchNorm, ChannelsFirstEqualsTransposedChannelsLast) {
  const Shape shape({3, 5, 4, 19});
  const Tensor x = Wave(shape, 0), dy = Wave(shape, 1), scale = Wave(Shape({19}), 2),
               offset = Wave(Shape({19}), 3);
  const auto last = RunFed("FusedBatchNormV3", {x, scale, offset, NoFloats(), NoFloats()}, {});
  const auto first =
      RunFed("FusedBatchNormV3", {ChannelsFirst(x), scale, offset, NoFloats(), NoFloats()},
             {{"data_format", "NCHW"}});
  ASSERT_TRUE(last.ok() && first.ok()) << last.status() << first.status();
  EXPECT_TRUE(IdenticalTensors(ChannelsFirst((*last)[0]), (*first)[0]));
  const Tensors tail = {scale, (*last)[3], (*last)[4], NoFloats()};
  Tensors a = {dy, x}, b = {ChannelsFirst(dy), ChannelsFirst(x)};
  a.insert(a.end(), tail.begin(), tail.end());
  b.insert(b.end(), tail.begin(), tail.end());
  const auto da = RunFed("FusedBatchNormGradV3", a, {}),
             db = RunFed("FusedBatchNormGradV3", b, {{"data_format", "NCHW"}});
  ASSERT_TRUE(da.ok() && db.ok()) << da.status() << db.status();
  EXPECT_TRUE(IdenticalTensors(ChannelsFirst((*da)[0]), (*db)[0]));
}

TEST(FusedBatchNorm, InferenceGradientOfChannelsFirstEqualsTransposed) {
  Graph g;
  Output x = Const(g, ChannelsFirst(Wave({2, 3, 4, 5}, 0))), scale = Const(g, Wave(Shape({5}), 1));
  Output offset = Const(g, Wave(Shape({5}), 2)), mean = Const(g, Wave(Shape({5}), 3));
  Output variance = OnesLike(mean);
  const FusedBatchNormResult layer = FusedBatchNorm(
      x, scale, offset,
      {.mean = mean, .variance = variance, .data_format = "NCHW", .is_training = false});
  const Outputs grads = DenseGradients({Total(layer.y)}, Outputs{x});
  const absl::StatusOr<Tensors> values = Evaluate(g, {grads[0], scale});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].shape(), Shape({2, 5, 3, 4}));
  for (int64_t i = 0; i < 120; ++i) {
    const float want = (*values)[1].data<float>()[i / 12 % 5] / std::sqrt(1.001f);
    EXPECT_NEAR((*values)[0].data<float>()[i], want, 1e-5);
  }
}

// A mean far from zero must not cancel out the variance.
TEST(FusedBatchNorm, VarianceSurvivesALargeMean) {
  Tensor x(DT_FLOAT, Shape({4, 16, 16, 3}));
  for (int64_t i = 0; i < x.num_elements(); ++i)
    x.data<float>()[i] = i < 3 ? 0.0f : 1000.0f + static_cast<float>(i % 2);
  double mean = 0, square = 0;
  const int64_t rows = x.num_elements() / 3;
  for (int64_t r = 0; r < rows; ++r) mean += x.data<float>()[3 * r] / static_cast<double>(rows);
  for (int64_t r = 0; r < rows; ++r)
    square += std::pow(x.data<float>()[3 * r] - mean, 2) / static_cast<double>(rows - 1);
  const auto out = RunFed("FusedBatchNormV3",
                          {x, Floats({1, 1, 1}), Floats({0, 0, 0}), NoFloats(), NoFloats()}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_NEAR((*out)[2].data<float>()[0] / square, 1, 1e-4);
}

TEST(FusedBatchNorm, HalfPrecisionIsComputedInFloat) {
  const Tensor x = Wave({2, 4, 4, 3}, 0), scale = Wave(Shape({3}), 1), offset = Wave(Shape({3}), 2);
  Tensor narrow(DT_HALF, x.shape());
  for (int64_t i = 0; i < x.num_elements(); ++i) narrow.data<half>()[i] = half(x.data<float>()[i]);
  const auto wide = RunFed("FusedBatchNormV3", {x, scale, offset, NoFloats(), NoFloats()}, {});
  const auto half_out =
      RunFed("FusedBatchNormV3", {narrow, scale, offset, NoFloats(), NoFloats()}, {});
  ASSERT_TRUE(wide.ok() && half_out.ok()) << wide.status() << half_out.status();
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    EXPECT_NEAR(float((*half_out)[0].data<half>()[i]), (*wide)[0].data<float>()[i], 4e-3);
  }
}

TEST(FusedBatchNorm, EmptyBatchHasNoStatistics) {
  const auto out = RunFed("FusedBatchNormV3",
                          {Tensor(DT_FLOAT, Shape({0, 2, 2, 2})), Floats({1, 1}), Floats({0, 0}),
                           NoFloats(), NoFloats()},
                          {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(std::isnan((*out)[1].data<float>()[0]));
  EXPECT_EQ((*out)[3].data<float>()[0], 0);
}

TEST(FusedBatchNorm, MismatchedSizesAreReported) {
  const auto message = [](const Tensors& inputs, const Attrs& attrs) {
    return std::string(RunFed("FusedBatchNormV3", inputs, attrs).status().message());
  };
  EXPECT_THAT(
      message({Counting(), Floats({1, 1, 1}), Floats({0, 0}), NoFloats(), NoFloats()}, {}),
      HasSubstr("scale must have the same number of elements as the channels of x, got 3 and 2"));
  EXPECT_THAT(message({Floats({1}), Floats({1}), Floats({0}), NoFloats(), NoFloats()}, {}),
              HasSubstr("input must be 4-dimensional"));
  EXPECT_THAT(message({Counting(), Floats({1, 1}), Floats({0, 0}), NoFloats(), NoFloats()},
                      {{"is_training", false}}),
              HasSubstr("When is_training=false, mean must have the same number of elements"));
  EXPECT_THAT(message({Counting(), Floats({1, 1}), Floats({0, 0}), NoFloats(), NoFloats()},
                      {{"exponential_avg_factor", 0.5f}}),
              HasSubstr("When exponential_avg_factor != 1, mean must have"));
}

}  // namespace
}  // namespace weir
