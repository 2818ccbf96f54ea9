#include "weir/ops/nn/nn_pad_conv.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"
#include "weir/tests/kernels/lib/recorded.h"

// Convolutions of padded images, and the gradients of Conv3D in old graphs ("Conv3DBackpropInput",
// "Conv3DBackpropFilter").
namespace weir {
namespace {

TEST(PadConv, MatchesTensorFlow) {
  ExpectAnswers("tests/kernels/golden/pad_conv_answers.txt", 30, 1e-5);
}

TEST(PadConv, IsConv2DOfPaddedImages) {
  Graph g;
  Tensor images(DT_FLOAT, Shape({2, 3, 4, 2})), filter(DT_FLOAT, Shape({2, 2, 2, 3}));
  for (Tensor* t : {&images, &filter}) {
    for (int64_t i = 0; i < t->num_elements(); ++i)
      t->data<float>()[i] = static_cast<float>(i * i % 7) - 3;
  }
  const Output x = Const(g, images), w = Const(g, filter);
  const Output paddings = Const(g, Tensor::Of<int32_t>({4, 2}, {0, 0, 1, 2, 2, 0, 0, 0}));
  const ConvOptions valid = {.padding = "VALID"};
  const Output padded = AddOp("MirrorPad", {x, paddings}, {{"mode", "REFLECT"}});
  const auto out =
      Evaluate(g, {FusedPadConv2D(x, paddings, w, "REFLECT", valid), Conv2D(padded, w, valid)});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<float>(), testing::ElementsAreArray((*out)[1].flat<float>()));
}

TEST(PadConv, AFilterWithoutElementsGivesZeros) {
  Graph g;
  const Output x = Const(g, Tensor::Zeros(DT_FLOAT, Shape({1, 4, 5, 2})));
  const Output w = Const(g, Tensor::Zeros(DT_FLOAT, Shape({0, 3, 2, 3})));
  const Output paddings = Const(g, Tensor::Of<int32_t>({4, 2}, {0, 0, 2, 1, 2, 0, 0, 0}));
  const auto out = Evaluate(g, {FusedPadConv2D(x, paddings, w, "REFLECT", {.padding = "SAME"})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].shape(), Shape({1, 7, 7, 3}));
  EXPECT_THAT((*out)[0].flat<float>(), testing::Each(0));
}

TEST(PadConv, BuildersInferTheShape) {
  Graph g;
  const Output images = Placeholder(g, DT_FLOAT, {2, 4, 5, 3});
  const Output paddings = Const(g, Tensor::Of<int32_t>({4, 2}, {0, 0, 1, 1, 2, 1, 0, 0}));
  const Output filter = Placeholder(g, DT_FLOAT, {3, 3, 3, 7});
  const ConvOptions valid = {.padding = "VALID"};
  const Output size = Const(g, Tensor::Vector<int32_t>({8, 6}));
  EXPECT_EQ(FusedPadConv2D(images, paddings, filter, "REFLECT", valid).shape(),
            Shape({2, 4, 6, 7}));
  EXPECT_EQ(
      FusedResizeAndPadConv2D(images, size, paddings, filter, "REFLECT", false, valid).shape(),
      Shape({2, 8, 7, 7}));
  EXPECT_TRUE(g.status().ok()) << g.status();
}

TEST(PadConv, RejectsPaddingsAndShapes) {
  const Tensor images = Tensor::Zeros(DT_FLOAT, Shape({1, 3, 3, 2}));
  const Tensor filter = Tensor::Zeros(DT_FLOAT, Shape({1, 1, 2, 1}));
  const auto paddings = [](std::initializer_list<int32_t> values) {
    return Tensor::Of<int32_t>({4, 2}, values);
  };
  const Tensor none = paddings({0, 0, 0, 0, 0, 0, 0, 0});
  const Attrs attrs = {
      {"mode", "REFLECT"}, {"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "VALID"}};
  const char op[] = "FusedPadConv2D", resizing[] = "FusedResizeAndPadConv2D";
  const Tensor empty = Tensor::Zeros(DT_FLOAT, Shape({0, 3, 3, 2}));
  const Tensor thin = Tensor::Zeros(DT_FLOAT, Shape({1, 1, 3, 1}));
  const Tensor large = Tensor::Zeros(DT_FLOAT, Shape({4, 1, 2, 1}));
  recorded::ExpectRejections({
      {op,
       {images, paddings({0, 0, 3, 0, 0, 0, 0, 0}), filter},
       attrs,
       "paddings must be less than"},
      {op, {images, paddings({0, 0, -1, 0, 0, 0, 0, 0}), filter}, attrs, "must be non-negative"},
      {op, {images, paddings({0, -1, 0, 0, 0, 0, 0, 0}), filter}, attrs, "must be non-negative"},
      {op, {images, paddings({1, 0, 0, 0, 0, 0, 0, 0}), filter}, attrs, "only support spatial"},
      {op, {images, Tensor::Of<int32_t>({2, 2}, {0, 0, 0, 0}), filter}, attrs, "rank of inputs"},
      {op, {images, none, thin}, attrs, "must have the same depth"},
      {op, {images, none, large}, attrs, ""},
      {op, {empty, none, filter}, attrs, "Input tensor can't be empty"},
      {resizing,
       {images, Tensor::Vector<int32_t>({0, 4}), none, filter},
       attrs,
       "must be positive"},
      {resizing, {images, Tensor::Scalar<int32_t>(4), none, filter}, attrs, "two elements"},
  });
  Graph g;
  FusedPadConv2D(Const(g, images), Const(g, none), Const(g, filter), "REFLECT",
                 {.strides = {1, 1, 1, 1, 1}});
  EXPECT_NE(g.status().message().find("stride attribute to contain 4 values, but got: 5"),
            std::string::npos)
      << g.status();
}

}  // namespace
}  // namespace weir
