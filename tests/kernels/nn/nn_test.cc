#include "weir/ops/nn/nn.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/tests/evaluate.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;
using testing::Matcher;
using Sizes = std::vector<int64_t>;

constexpr float kInf = std::numeric_limits<float>::infinity();

std::string ErrorOf(absl::string_view op, const Tensors& inputs, const Attrs& attrs = {}) {
  return RunFed(op, inputs, attrs).status().ToString();
}

Tensor Ones(const Shape& shape) {
  Tensor t(DT_FLOAT, shape);
  std::fill_n(t.data<float>(), t.num_elements(), 1.0f);
  return t;
}

// sin(0.7 i + phase)
template <class T>
Tensor Wave(const Shape& shape, double phase) {
  Tensor t(DataTypeOf<T>::value, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<T>()[i] = static_cast<T>(std::sin(0.7 * static_cast<double>(i) + phase));
  }
  return t;
}

void ExpectNear(const Tensor& got, const std::vector<double>& want, double tolerance = 1e-6) {
  ASSERT_EQ(got.num_elements(), static_cast<int64_t>(want.size()));
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    EXPECT_NEAR(got.dtype() == DT_DOUBLE ? got.data<double>()[i] : got.data<float>()[i], want[i],
                tolerance);
  }
}

// ---- convolution

struct LargeConv {
  const char* op;
  Tensors inputs;  // float
  Attrs attrs;
};

template <class To, class From>
Tensor Converted(const Tensor& t) {
  Tensor out(DataTypeOf<To>::value, t.shape());
  for (int64_t i = 0; i < t.num_elements(); ++i)
    out.data<To>()[i] = static_cast<To>(static_cast<float>(t.data<From>()[i]));
  return out;
}

Tensor ToDouble(const Tensor& t) { return t.dtype() == DT_FLOAT ? Converted<double, float>(t) : t; }

// Compares the result in T with the definition in double; T may differ by this fraction of a value.
template <class T>
void ExpectLikeDouble(const LargeConv& c, double relative) {
  Tensors inputs, wide;
  for (const Tensor& t : c.inputs) {
    inputs.push_back(t.dtype() == DT_FLOAT ? Converted<T, float>(t) : t);
    wide.push_back(t.dtype() == DT_FLOAT ? Converted<double, T>(inputs.back()) : t);
  }
  const auto a = RunFed(c.op, inputs, c.attrs), b = RunFed(c.op, wide, c.attrs);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  ASSERT_EQ((*a)[0].shape(), (*b)[0].shape());
  double largest = 0, excess = 0;
  for (int64_t i = 0; i < (*a)[0].num_elements(); ++i) {
    const double want = (*b)[0].data<double>()[i];
    largest = std::max(largest, std::abs(want));
    excess = std::max(excess, std::abs(want - static_cast<float>((*a)[0].data<T>()[i])) -
                                  relative * std::abs(want));
  }
  EXPECT_LT(excess, 2e-5 * largest) << c.op << " of " << DataTypeName(DataTypeOf<T>::value);
}

// Floats go through oneDNN, split over several threads, and so does bfloat16 on processors that
// have instructions for it; it is rounded once at the end.
void ExpectLikeDouble(const LargeConv& c) {
  ExpectLikeDouble<float>(c, 0);
  ExpectLikeDouble<bfloat16>(c, 1.0 / 256);
}

TEST(Conv2D, SplittingABatchDoesNotChangeTheResult) {
  const Attrs attrs = {{"strides", Sizes{1, 1, 1, 1}}, {"padding", "SAME"}};
  const Tensor x = Wave<float>({9, 28, 28, 8}, 0), w = Wave<float>({5, 5, 8, 16}, 1),
               dy = Wave<float>({9, 28, 28, 16}, 2);
  ExpectLikeDouble({"Conv2D", {x, w}, attrs});
  ExpectLikeDouble(
      {"Conv2DBackpropInput", {Tensor::Vector<int32_t>({9, 28, 28, 8}), w, dy}, attrs});
  ExpectLikeDouble(
      {"Conv2DBackpropFilter", {x, Tensor::Vector<int32_t>({5, 5, 8, 16}), dy}, attrs});
}

TEST(Conv2D, SplittingAnImageDoesNotChangeTheResult) {
  for (const int64_t stride : {1, 2}) {
    for (const char* padding : {"SAME", "VALID"}) {
      const Attrs attrs = {{"strides", Sizes{1, stride, stride, 1}}, {"padding", padding}};
      const Tensor x = Wave<float>({1, 95, 64, 16}, 0), w = Wave<float>({5, 3, 16, 32}, 1);
      ExpectLikeDouble({"Conv2D", {x, w}, attrs});
      const auto y = RunFed("Conv2D", {x, w}, attrs);
      ASSERT_TRUE(y.ok()) << y.status();
      const Tensor dy = Wave<float>((*y)[0].shape(), 2);
      ExpectLikeDouble(
          {"Conv2DBackpropFilter", {x, Tensor::Vector<int32_t>({5, 3, 16, 32}), dy}, attrs});
    }
  }
}

// With a filter of one element, images can be split at any pixel, or by channels if the filter is
// larger than the images; a depthwise convolution is slow enough to be split although it does
// little.
TEST(Conv2D, SplittingASmallImageDoesNotChangeTheResult) {
  const Attrs attrs = {{"strides", Sizes{1, 1, 1, 1}}, {"padding", "SAME"}};
  for (const auto& [in, out] : {std::pair<int32_t, int32_t>{320, 96}, {96, 320}, {80, 72}}) {
    const Tensor w = Wave<float>({1, 1, in, out}, 1);
    for (const int32_t size : {7, 15, 23}) {
      const Tensor x = Wave<float>({1, size, size, in}, 0),
                   dy = Wave<float>({1, size, size, out}, 2);
      ExpectLikeDouble({"Conv2D", {x, w}, attrs});
      ExpectLikeDouble(
          {"Conv2DBackpropInput", {Tensor::Vector<int32_t>({1, size, size, in}), w, dy}, attrs});
      ExpectLikeDouble(
          {"Conv2DBackpropFilter", {x, Tensor::Vector<int32_t>({1, 1, in, out}), dy}, attrs});
    }
  }
  ExpectLikeDouble(
      {"Conv2D", {Wave<float>({1, 23, 23, 96}, 0), Wave<float>({1, 1, 24, 40}, 1)}, attrs});
  for (const int64_t stride : {1, 2}) {
    ExpectLikeDouble({"DepthwiseConv2dNative",
                      {Wave<float>({1, 29, 31, 96}, 0), Wave<float>({3, 3, 96, 1}, 1)},
                      {{"strides", Sizes{1, stride, stride, 1}}, {"padding", "SAME"}}});
  }
}

// Cases where oneDNN would write beyond its scratchpad, on AVX2, and overwrite other memory.
TEST(Conv2D, FewChannelsOfStridedPixelsStayInBounds) {
  const Attrs attrs = {{"strides", Sizes{1, 2, 2, 1}}, {"padding", "VALID"}};
  for (const int32_t channels : {1, 2, 3, 5, 7, 9}) {
    for (const int64_t size : {8, 14, 32}) {
      const Tensor x = Wave<float>({2, size, size, channels}, 0),
                   dy = Wave<float>({2, size / 2, size / 2, 8}, 1);
      ExpectLikeDouble(
          {"Conv2DBackpropFilter", {x, Tensor::Vector<int32_t>({1, 1, channels, 8}), dy}, attrs});
    }
  }
}

TEST(Conv2D, SplitsChannelsFirstAndVolumes) {
  ExpectLikeDouble(
      {"Conv2D",
       {Wave<float>({5, 16, 28, 28}, 0), Wave<float>({3, 3, 16, 24}, 1)},
       {{"strides", Sizes{1, 1, 1, 1}}, {"padding", "SAME"}, {"data_format", "NCHW"}}});
  const Attrs attrs = {{"strides", Sizes{1, 1, 2, 1, 1}}, {"padding", "SAME"}};
  const Tensor x = Wave<float>({3, 9, 12, 14, 8}, 0), w = Wave<float>({3, 3, 3, 8, 16}, 1),
               dy = Wave<float>({3, 9, 6, 14, 16}, 2);
  ExpectLikeDouble({"Conv3D", {x, w}, attrs});
  ExpectLikeDouble(
      {"Conv3DBackpropInputV2", {Tensor::Vector<int32_t>({3, 9, 12, 14, 8}), w, dy}, attrs});
  ExpectLikeDouble(
      {"Conv3DBackpropFilterV2", {x, Tensor::Vector<int32_t>({3, 3, 3, 8, 16}), dy}, attrs});
}

TEST(Conv2D, ConstantFiltersArePackedOnce) {
  Graph g;
  Output x = Placeholder(g, DT_FLOAT, {-1, 8, 8, 16});
  Output y = Conv2D(x, Const(g, Wave<float>({3, 3, 16, 16}, 1)));
  Output z = Conv2D(x, Identity(Const(g, Wave<float>({3, 3, 16, 16}, 1))));
  for (const int64_t batch : {2, 5, 2}) {
    const absl::StatusOr<Tensors> out =
        Evaluate(g, {{x, Wave<float>({batch, 8, 8, 16}, 0)}}, {y, z});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int64_t i = 0; i < (*out)[0].num_elements(); ++i) {
      ASSERT_NEAR((*out)[0].data<float>()[i], (*out)[1].data<float>()[i], 1e-5);
    }
  }
}

TEST(Conv2D, Int32Convolves) {
  Tensor x(DT_INT32, Shape({1, 3, 3, 2})), w(DT_INT32, Shape({3, 3, 2, 2}));
  std::fill_n(x.data<int32_t>(), 18, 1);
  std::fill_n(w.data<int32_t>(), 36, 1);
  const auto y = RunFed("Conv2D", {x, w}, {{"strides", Sizes{1, 1, 1, 1}}, {"padding", "VALID"}});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ((*y)[0].data<int32_t>()[0], 18);
  EXPECT_EQ((*y)[0].num_elements(), 2);
}

TEST(Conv2D, ErrorsUseTensorFlowsWords) {
  const Attrs valid = {{"strides", Sizes{1, 1, 1, 1}}, {"padding", "VALID"}};
  EXPECT_THAT(ErrorOf("Conv2D", {Ones({1, 3, 2}), Ones({1, 1, 2, 2})}, valid),
              HasSubstr("convolution input must be 4-dimensional: [1,3,2]"));
  EXPECT_THAT(ErrorOf("Conv2D", {Ones({1, 3, 2, 2}), Ones({1, 2, 2})}, valid),
              HasSubstr("convolution filter must be 4-dimensional: [1,2,2]"));
  EXPECT_THAT(ErrorOf("Conv2D", {Ones({1, 3, 3, 2}), Ones({1, 1, 3, 2})}, valid),
              HasSubstr("input depth must be evenly divisible by filter depth: 2 vs 3"));
  EXPECT_THAT(ErrorOf("Conv2D", {Ones({1, 2, 2, 4}), Ones({1, 1, 2, 3})}, valid),
              HasSubstr("output depth must be evenly divisible by number of groups: 3 vs 2"));
  EXPECT_THAT(ErrorOf("Conv2D", {Ones({1, 3, 3, 0}), Ones({1, 1, 0, 3})}, valid),
              HasSubstr("filter depth must be"));
  EXPECT_THAT(ErrorOf("DepthwiseConv2dNative", {Ones({1, 3, 3, 2}), Ones({1, 1, 3, 2})}, valid),
              HasSubstr("input and filter must have the same depth: 2 vs 3"));
  EXPECT_THAT(ErrorOf("Conv2D", {Ones({1, 3, 3, 2}), Ones({1, 1, 2, 2})},
                      {{"strides", Sizes{2, 1, 1, 1}}, {"padding", "SAME"}}),
              HasSubstr("strides in the batch and depth dimensions"));
}

TEST(Conv2D, RejectsInvalidAttributesWhenTheGraphIsBuilt) {
  const auto refused = [](const ConvOptions& options) {
    Graph g;
    EXPECT_FALSE(Conv2D(Placeholder(g, DT_FLOAT, {1, 4, 4, 1}),
                        Placeholder(g, DT_FLOAT, {2, 2, 1, 1}), options)
                     .valid());
    return std::string(g.status().message());
  };
  EXPECT_THAT(refused({.strides = {1, 0, 1, 1}}), HasSubstr("Stride must be > 0, but got 0"));
  EXPECT_THAT(refused({.strides = {1, 1, 1}}), HasSubstr("4 values, but got: 3"));
  EXPECT_THAT(refused({.dilations = {1, 0, 1, 1}}),
              HasSubstr("Dilation rate must be >= 1, but got 0"));
  EXPECT_THAT(refused({.padding = "EXPLICIT", .explicit_paddings = {0, 0, 1, 1}}),
              HasSubstr("8 values, but got: 4"));
  EXPECT_THAT(refused({.padding = "EXPLICIT", .explicit_paddings = {0, 0, -1, 1, 0, 0, 0, 0}}),
              HasSubstr("nonnegative"));
  EXPECT_THAT(refused({.padding = "EXPLICIT", .explicit_paddings = {1, 0, 1, 1, 0, 0, 0, 0}}),
              HasSubstr("batch or depth dimensions"));
}

TEST(Conv2D, RejectsGradientOfTheWrongSize) {
  const Attrs valid = {{"strides", Sizes{1, 1, 1, 1}}, {"padding", "VALID"}};
  const Tensor w = Ones({3, 3, 2, 2}), dy = Ones({1, 1, 1, 2});
  EXPECT_THAT(ErrorOf("Conv2DBackpropInput", {Tensor::Vector<int32_t>({1, 4, 4, 2}), w, dy}, valid),
              HasSubstr("Size of out_backprop doesn't match computed"));
  EXPECT_THAT(
      ErrorOf("Conv2DBackpropInput", {Tensor::Vector<int32_t>({1, -3, 3, 2}), w, dy}, valid),
      HasSubstr("must not be negative"));
  EXPECT_THAT(ErrorOf("Conv2DBackpropFilter",
                      {Ones({1, 3, 3, 2}), Tensor::Vector<int32_t>({2, 3, 2, 2}), dy}, valid),
              HasSubstr("Size of out_backprop doesn't match computed"));
}

TEST(Conv2D, WindowsLargerThanTheImageHaveEmptyResults) {
  const auto y = RunFed("Conv2D", {Ones({1, 2, 2, 2}), Ones({3, 3, 2, 2})},
                        {{"strides", Sizes{1, 1, 1, 1}}, {"padding", "VALID"}});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ((*y)[0].shape(), Shape({1, 0, 0, 2}));
}

// ---- pooling

const Attrs kPairs = {
    {"ksize", Sizes{1, 2, 2, 1}}, {"strides", Sizes{1, 1, 1, 1}}, {"padding", "VALID"}};

TEST(MaxPool, GradientGoesToTheFirstMaximum) {
  const Tensor x = Tensor::Of<float>({1, 2, 2, 1}, {1, 3, 2, 3}), one = Ones({1, 1, 1, 1});
  const auto dx = RunFed("MaxPoolGrad", {x, one, one}, kPairs);
  ASSERT_TRUE(dx.ok()) << dx.status();
  ExpectNear((*dx)[0], {0, 1, 0, 0});
}

TEST(MaxPool, MaximumOfMinusInfinityIsTheLowestNumber) {
  Tensor x(DT_FLOAT, Shape({1, 2, 2, 1}));
  std::fill_n(x.data<float>(), 4, -kInf);
  const auto y = RunFed("MaxPool", {x}, kPairs);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ((*y)[0].data<float>()[0], std::numeric_limits<float>::lowest());
}

TEST(MaxPool, ErrorsUseTensorFlowsWords) {
  const auto with = [](const Sizes& ksize, const Sizes& strides) {
    return ErrorOf("MaxPool", {Ones({1, 2, 2, 4})},
                   {{"ksize", ksize}, {"strides", strides}, {"padding", "VALID"}});
  };
  EXPECT_THAT(with({1, 2, 1, 2}, {1, 1, 1, 2}),
              HasSubstr("exactly one of pooling across depth or pooling across width/height"));
  EXPECT_THAT(with({1, 1, 1, 2}, {1, 1, 1, 1}),
              HasSubstr("the depth window to equal the depth stride"));
  EXPECT_THAT(with({2, 1, 1, 1}, {1, 1, 1, 1}),
              HasSubstr("Pooling is not yet supported on the batch dimension."));
  EXPECT_THAT(with({1, 0, 1, 1}, {1, 1, 1, 1}), HasSubstr("Sliding window ksize must be positive"));
  const Tensor x = Ones({1, 2, 2, 1});
  EXPECT_THAT(ErrorOf("MaxPoolGrad", {x, Ones({1, 1, 2, 1}), Ones({1, 1, 2, 1})}, kPairs),
              HasSubstr("Expected orig_output shape to be [1,1,1,1], but got [1,1,2,1]"));
  EXPECT_THAT(
      ErrorOf("MaxPoolV2",
              {x, Tensor::Vector<int32_t>({1, 2, 2}), Tensor::Vector<int32_t>({1, 1, 1, 1})},
              {{"padding", "SAME"}}),
      HasSubstr("Sliding window ksize field must specify 4 dimensions"));
}

TEST(MaxPoolGradWithArgmax, RejectsIndicesOutOfRange) {
  for (const int64_t index : {int64_t{9}, int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    const Tensor at = Tensor::Of<int64_t>({2, 1, 1, 1}, {0, index});
    EXPECT_THAT(
        ErrorOf("MaxPoolGradWithArgmax", {Ones({2, 2, 2, 1}), Ones({2, 1, 1, 1}), at}, kPairs),
        HasSubstr("Invalid output index"));
    EXPECT_THAT(
        ErrorOf("MaxPoolGradGradWithArgmax", {Ones({2, 2, 2, 1}), Ones({2, 2, 2, 1}), at}, kPairs),
        HasSubstr("Invalid input index"));
  }
}

TEST(AvgPool, SplitsLargeImages) {
  const Attrs attrs = {
      {"ksize", Sizes{1, 3, 3, 1}}, {"strides", Sizes{1, 2, 2, 1}}, {"padding", "SAME"}};
  const Tensor x = Wave<float>({3, 65, 64, 70}, 0);
  Tensor wide = ToDouble(x);
  for (const char* op : {"AvgPool", "MaxPool"}) {
    const auto a = RunFed(op, {x}, attrs), b = RunFed(op, {wide}, attrs);
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    for (int64_t i = 0; i < (*a)[0].num_elements(); ++i) {
      ASSERT_NEAR((*a)[0].data<float>()[i], (*b)[0].data<double>()[i], 1e-5) << op;
    }
  }
  const Tensor dy = Wave<float>({3, 33, 32, 70}, 1);
  const auto a = RunFed("MaxPoolGrad", {x, dy, dy}, attrs),
             b = RunFed("MaxPoolGrad", {wide, ToDouble(dy), ToDouble(dy)}, attrs);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    ASSERT_NEAR((*a)[0].data<float>()[i], (*b)[0].data<double>()[i], 1e-5);
  }
}

// ---- activations, biases

TEST(Activations, PropagatesNan) {
  const Tensor x = Tensor::Vector<float>({std::nanf(""), -1, 1, 2, 3});
  for (const char* op : {"Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign"}) {
    const auto y = RunFed(op, {x});
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_TRUE(std::isnan((*y)[0].data<float>()[0])) << op;
    EXPECT_FALSE(std::isnan((*y)[0].data<float>()[1])) << op;
  }
}

TEST(Activations, ExtremesMatchTensorFlow) {
  const Tensor x = Tensor::Vector<float>({kInf, -kInf, 100, -100});
  const auto elu = RunFed("Elu", {x}), softplus = RunFed("Softplus", {x});
  ASSERT_TRUE(elu.ok() && softplus.ok());
  EXPECT_EQ((*elu)[0].data<float>()[0], kInf);
  EXPECT_EQ((*elu)[0].data<float>()[1], -1);
  EXPECT_EQ((*elu)[0].data<float>()[2], 100);
  EXPECT_EQ((*softplus)[0].data<float>()[0], kInf);
  EXPECT_EQ((*softplus)[0].data<float>()[1], 0);
  EXPECT_EQ((*softplus)[0].data<float>()[2], 100);
}

// Values are TensorFlow's, which multiplies by a mask.
TEST(Activations, InfiniteGradientsTimesZeroAreNan) {
  const Tensor dy = Tensor::Vector<float>({kInf, -kInf, kInf, -1, -1, 2, kInf});
  const Tensor x = Tensor::Vector<float>({-1, 0, 3, -1, 3, std::nanf(""), 7});
  for (const char* op : {"ReluGrad", "Relu6Grad"}) {
    const auto dx = RunFed(op, {dy, x});
    ASSERT_TRUE(dx.ok()) << dx.status();
    EXPECT_THAT(
        (*dx)[0].flat<float>(),
        ElementsAre(IsNan(), IsNan(), kInf, -0.f, -1, 0,
                    op == std::string("ReluGrad") ? Matcher<float>(kInf) : Matcher<float>(IsNan())))
        << op;
  }
}

TEST(Activations, GradientsRequireEqualShapes) {
  EXPECT_THAT(ErrorOf("ReluGrad", {Ones({2}), Ones({3})}), HasSubstr("[2]"));
  EXPECT_FALSE(RunFed("ReluGrad", {Ones({2, 3}), Ones({3})}).ok());
}

TEST(BiasAdd, ErrorsUseTensorFlowsWords) {
  EXPECT_THAT(ErrorOf("BiasAdd", {Ones({3}), Ones({3})}),
              HasSubstr("Input tensor must be at least 2D: [3]"));
  EXPECT_THAT(ErrorOf("BiasAdd", {Ones({2, 3}), Ones({1, 3})}),
              HasSubstr("Biases must be 1D: [1,3]"));
  EXPECT_THAT(
      ErrorOf("BiasAdd", {Ones({2, 3}), Ones({2})}),
      HasSubstr(
          "Must provide as many biases as the last dimension of the input tensor: [2] vs. [2,3]"));
  EXPECT_THAT(ErrorOf("BiasAddGrad", {Ones({3})}),
              HasSubstr("Input tensor must be at least 2D: [3]"));
}

// ---- softmax

TEST(Softmax, RowsWithoutAFiniteMaximumAreNan) {
  const float nan = std::nanf("");
  const Tensor x =
      Tensor::Of<float>({4, 3}, {kInf, 2, 3, -kInf, -kInf, -kInf, nan, 1, 2, -kInf, 1, 2});
  const auto y = RunFed("Softmax", {x}), log = RunFed("LogSoftmax", {x});
  ASSERT_TRUE(y.ok() && log.ok());
  for (int i = 0; i < 9; ++i) {
    EXPECT_TRUE(std::isnan((*y)[0].data<float>()[i])) << i;
    EXPECT_TRUE(std::isnan((*log)[0].data<float>()[i])) << i;
  }
  EXPECT_EQ((*y)[0].data<float>()[9], 0);
  EXPECT_NEAR((*y)[0].data<float>()[10], 0.26894143, 1e-6);
  EXPECT_EQ((*log)[0].data<float>()[9], -kInf);
}

TEST(Softmax, LargeLogitsDoNotOverflow) {
  const auto y = RunFed("Softmax", {Tensor::Of<float>({1, 2}, {1e30f, 1e30f})});
  ASSERT_TRUE(y.ok()) << y.status();
  ExpectNear((*y)[0], {0.5, 0.5});
}

TEST(SparseSoftmaxCrossEntropy, RejectsLabelsOutOfRange) {
  const Tensor x = Ones({2, 3});
  EXPECT_THAT(ErrorOf("SparseSoftmaxCrossEntropyWithLogits", {x, Tensor::Vector<int64_t>({0, 5})}),
              HasSubstr("Received a label value of 5 which is outside the valid range of [0, 3)"));
  EXPECT_THAT(ErrorOf("SparseSoftmaxCrossEntropyWithLogits", {x, Tensor::Vector<int32_t>({-1, 2})}),
              HasSubstr("Received a label value of -1 which is outside the valid range of [0, 3)"));
}

TEST(SparseSoftmaxCrossEntropy, ErrorsUseTensorFlowsWords) {
  const char* op = "SparseSoftmaxCrossEntropyWithLogits";
  EXPECT_THAT(
      ErrorOf(op, {Ones({2, 3}), Tensor::Vector<int64_t>({1, 2, 0})}),
      HasSubstr("logits and labels must have the same first dimension, got logits shape [2,3]"));
  EXPECT_THAT(ErrorOf(op, {Ones({3}), Tensor::Vector<int64_t>({1})}),
              HasSubstr("logits must be 2-D, but got shape [3]"));
  EXPECT_THAT(ErrorOf(op, {Ones({2, 0}), Tensor::Vector<int64_t>({1, 1})}),
              HasSubstr("Must have at least one class"));
  EXPECT_THAT(
      ErrorOf("SoftmaxCrossEntropyWithLogits", {Ones({2, 3}), Ones({2, 4})}),
      HasSubstr("logits and labels must be broadcastable: logits_size=[2,3] labels_size=[2,4]"));
  EXPECT_THAT(ErrorOf("SoftmaxCrossEntropyWithLogits", {Ones({2, 3, 1}), Ones({2, 3, 1})}),
              HasSubstr("2-dimensional"));
}

// TensorFlow's losses.
TEST(SoftmaxCrossEntropy, InfiniteLabelsGiveInfiniteLosses) {
  const auto y = RunFed("SoftmaxCrossEntropyWithLogits",
                        {Tensor::Of<float>({3, 3}, {0, 1, 2, 0, 1, 2, 0, 200, -500}),
                         Tensor::Of<float>({3, 3}, {kInf, 0, 1, kInf, -kInf, 1, 0, kInf, 1})});
  ASSERT_TRUE(y.ok()) << y.status();
  const float* loss = (*y)[0].data<float>();
  EXPECT_EQ(loss[0], kInf);
  EXPECT_TRUE(std::isnan(loss[1])) << loss[1];
  EXPECT_TRUE(std::isnan(loss[2])) << loss[2];
}

// TensorFlow's results for sum(loss * [0.5, -2]), its gradient, and the gradient of that times a
// wave.
TEST(SoftmaxCrossEntropy, MatchesTensorFlowToTheSecondDerivative) {
  Graph g;
  Output x = Const(g, Wave<double>({2, 3}, 0)), labels = Softmax(Const(g, Wave<double>({2, 3}, 1)));
  Output weights = Const<double>(g, {0.5, -2.0}), u = Const(g, Wave<double>({2, 3}, 2));
  Outputs fetches;
  for (const bool dense : {true, false}) {
    Output loss = dense ? SoftmaxCrossEntropy(x, labels)
                        : SparseSoftmaxCrossEntropy(x, Const<int32_t>(g, {2, 0}));
    Output total = AddOp("Sum", {AddOp("Mul", {loss, weights}), Const<int32_t>(g, {0})});
    Output first = DenseGradients({total}, Outputs{x})[0];
    Output sum = AddOp("Sum", {AddOp("Mul", {first, u}), Const<int32_t>(g, {0, 1})});
    fetches.insert(fetches.end(), {loss, first, DenseGradients({sum}, Outputs{x})[0]});
    if (dense) fetches.push_back(DenseGradients({total}, Outputs{labels})[0]);
  }
  const absl::StatusOr<Tensors> v = Evaluate(g, fetches);
  ASSERT_TRUE(v.ok()) << v.status();
  const std::vector<double> second = {0.0647691,  0.0411632, -0.1059322,
                                      -0.0401226, 0.0875347, -0.0474121};
  ExpectNear((*v)[0], {1.193636, 1.0138064});
  ExpectNear((*v)[1], {-0.0766133, -0.0225445, 0.0991578, 0.0030951, -0.0719579, 0.0688628});
  ExpectNear((*v)[2], second);
  ExpectNear((*v)[3], {0.8599091, 0.5378002, 0.3671842, -1.2696182, -2.3260607, -3.6976034});
  ExpectNear((*v)[4], {0.7343684, 0.6348091});
  ExpectNear((*v)[5], {0.0895494, 0.1705464, -0.2600958, 0.9399267, -0.6250753, -0.3148514});
  ExpectNear((*v)[6], second);
}

}  // namespace
}  // namespace weir
