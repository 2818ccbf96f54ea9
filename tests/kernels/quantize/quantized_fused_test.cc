#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "weir/core/graph/op.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"
#include "weir/tests/kernels/lib/recorded.h"

// Products and convolutions of quantized tensors with what is fused to them: products against
// TensorFlow's recorded answers, convolutions against their formula.
namespace weir {

namespace {

TEST(QuantizedFused, ProductsMatchTensorFlow) {
  const std::vector<Answer> answers =
      ReadAnswers("tests/kernels/golden/quantized_fused_answers.txt");
  EXPECT_EQ(answers.size(), 36u);
  for (const Answer& a : answers) {
    SCOPED_TRACE(absl::StrCat(a.op, ", line ", a.line));
    const absl::StatusOr<Tensors> out = RunFed(a.op, a.inputs, a.attrs);
    ASSERT_TRUE(out.ok()) << out.status();
    ASSERT_EQ(out->size(), a.outputs.size());
    for (size_t i = 0; i < out->size(); ++i) {
      const Tensor &got = (*out)[i], &want = a.outputs[i];
      ASSERT_EQ(got.dtype(), want.dtype());
      ASSERT_EQ(got.shape(), want.shape());
      const DataType type = StoredAs(want.dtype());
      for (int64_t k = 0; k < want.num_elements(); ++k) {
        const double w = type == DT_FLOAT ? want.data<float>()[k] : want.BitcastTo(type).IntAt(k);
        const double g = type == DT_FLOAT ? got.data<float>()[k] : got.BitcastTo(type).IntAt(k);
        // TensorFlow computes in float, where integers above 2^24 are rounded.
        ASSERT_NEAR(
            g, w,
            type == DT_FLOAT ? 1e-5 * std::max(1.0, std::abs(w)) : std::floor(std::abs(w) / 4e6))
            << "output " << i << ", element " << k;
      }
    }
  }
}

// ---- convolutions

struct ConvInputs {
  Tensor image{DT_QUINT8, Shape({1, 3, 4, 2})}, filter, bias, summand;
  Tensor min = Tensor::Scalar(-0.5f), max = Tensor::Scalar(4.0f);
  Tensor filter_min, filter_max;
  Tensor out_min = Tensor::Scalar(-3.0f), out_max = Tensor::Scalar(5.0f);
};

void FillBytes(Tensor* t, int factor) {
  for (int64_t i = 0; i < t->num_elements(); ++i)
    static_cast<uint8_t*>(t->raw())[i] = static_cast<uint8_t>(i * i * factor + 31 * i);
}

ConvInputs MakeInputs(bool depthwise, bool per_channel) {
  ConvInputs in;
  in.filter = Tensor(DT_QINT8, depthwise ? Shape({2, 2, 2, 2}) : Shape({2, 2, 2, 4}));
  FillBytes(&in.image, 7);
  FillBytes(&in.filter, 3);
  in.bias = Tensor::Vector<float>({0.5f, -1, 2, 0});
  in.filter_min = Tensor::Scalar(-1.5f);
  in.filter_max = Tensor::Scalar(1.0f);
  if (per_channel) {
    in.filter_min = Tensor::Vector<float>({-1.5f, -1, -0.25f, 0});
    in.filter_max = Tensor::Vector<float>({1, 2, 0.125f, 0.5f});
  }
  return in;
}

double Magnitude(const Tensor& min, const Tensor& max, int64_t c) {
  const int64_t i = min.rank() == 0 ? 0 : c;
  return std::max(std::abs(min.data<float>()[i]), std::abs(max.data<float>()[i]));
}

// The convolution of padding SAME in real numbers: element (y, x, channel).
double Convolve(const ConvInputs& in, bool depthwise, int64_t y, int64_t x, int64_t channel) {
  const auto* const image = static_cast<const uint8_t*>(in.image.raw());
  const auto* const filter = static_cast<const int8_t*>(in.filter.raw());
  int64_t sum = 0;
  for (int64_t tap = 0; tap < 4; ++tap) {
    const int64_t iy = y + tap / 2, ix = x + tap % 2;
    if (iy >= 3 || ix >= 4) continue;
    for (int64_t d = 0; d < 2; ++d) {
      const int64_t pixel = image[(iy * 4 + ix) * 2 + d];
      if (!depthwise) sum += pixel * filter[(tap * 2 + d) * 4 + channel];
      if (depthwise && channel / 2 == d) sum += pixel * filter[tap * 4 + channel];
    }
  }
  return static_cast<double>(sum) * Magnitude(in.min, in.max, 0) / 255 *
         Magnitude(in.filter_min, in.filter_max, channel) / 127;
}

// Runs an op and compares each element with the formula.
void ExpectFormula(const std::string& op, bool per_channel, DataType summand_type = DT_INVALID) {
  SCOPED_TRACE(op);
  const auto has = [&](absl::string_view part) { return absl::StrContains(op, part); };
  ConvInputs in = MakeInputs(has("Depthwise"), per_channel);
  Tensors inputs = {in.image, in.filter};
  if (has("WithBias")) inputs.push_back(in.bias);
  for (const Tensor& t : {in.min, in.max, in.filter_min, in.filter_max}) inputs.push_back(t);
  if (has("Requantize")) inputs.insert(inputs.end(), {in.out_min, in.out_max});
  double summand_scale = 1;
  if (has("Sum")) {
    in.summand = summand_type == DT_FLOAT ? Tensor::Zeros(DT_FLOAT, Shape({1, 3, 4, 4}))
                                          : Tensor(summand_type, Shape({1, 3, 4, 4}));
    if (summand_type == DT_FLOAT) {
      for (int i = 0; i < 48; ++i) in.summand.data<float>()[i] = static_cast<float>(i % 7) - 3.5f;
    } else {
      FillBytes(&in.summand, 5);
      summand_scale = 2.0 / (summand_type == DT_QUINT8 ? 255 : 127);
    }
    inputs.push_back(in.summand);
    if (summand_type != DT_FLOAT)
      inputs.insert(inputs.end(), {Tensor::Scalar(-2.0f), Tensor::Scalar(1.0f)});
  }
  const DataType type = !has("Requantize") ? DT_QINT32 : has("Relu") ? DT_QUINT8 : DT_QINT8;
  const auto out = RunFed(
      op, inputs,
      {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}, {"out_type", type}});
  ASSERT_TRUE(out.ok()) << out.status();
  const Tensor got = (*out)[0].BitcastTo(StoredAs(type));
  ASSERT_EQ(got.shape(), Shape({1, 3, 4, 4}));
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const int64_t channel = i % 4;
    double x = Convolve(in, has("Depthwise"), i / 16, i / 4 % 4, channel);
    if (has("WithBias")) x += in.bias.data<float>()[channel];
    if (has("Sum")) {
      x += summand_scale * (summand_type == DT_FLOAT    ? in.summand.data<float>()[i]
                            : summand_type == DT_QUINT8 ? in.summand.BitcastTo(DT_UINT8).IntAt(i)
                                                        : in.summand.BitcastTo(DT_INT8).IntAt(i));
    }
    if (has("Relu")) x = std::max(x, 0.0);
    double scale =
        Magnitude(in.min, in.max, 0) / 255 * Magnitude(in.filter_min, in.filter_max, channel) / 127;
    if (type == DT_QUINT8) scale = 5.0 / 255;
    if (type == DT_QINT8) scale = 5.0 / 127;
    double want = x / scale;
    if (type == DT_QUINT8) want = std::clamp(want, 0.0, 255.0);
    if (type == DT_QINT8) want = std::clamp(want, -128.0, 127.0);
    ASSERT_NEAR(static_cast<double>(got.IntAt(i)), want, 0.5 + 1e-4) << i;
  }
  const Tensor& min = (*out)[1];
  if (has("Requantize")) {
    EXPECT_EQ(min.scalar<float>(), -3);
  } else {
    EXPECT_EQ(min.shape(), in.filter_min.shape());
    const double step =
        4.5 / 255 * (in.filter_max.data<float>()[0] - in.filter_min.data<float>()[0]) / 254;
    EXPECT_NEAR(min.data<float>()[0], -step * 2147483648.0, 1);
  }
}

TEST(QuantizedFused, ConvolutionsMatchTheirFormula) {
  for (const bool per_channel : {false, true}) {
    for (const char* op :
         {"QuantizedConv2DPerChannel", "QuantizedConv2DAndRelu",
          "QuantizedConv2DAndReluAndRequantize", "QuantizedConv2DAndRequantize",
          "QuantizedConv2DWithBias", "QuantizedConv2DWithBiasAndRelu",
          "QuantizedConv2DWithBiasAndReluAndRequantize", "QuantizedConv2DWithBiasAndRequantize",
          "QuantizedDepthwiseConv2D", "QuantizedDepthwiseConv2DWithBias",
          "QuantizedDepthwiseConv2DWithBiasAndRelu",
          "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize"})
      ExpectFormula(op, per_channel);
    ExpectFormula("QuantizedConv2DWithBiasSumAndRelu", per_channel, DT_FLOAT);
    ExpectFormula("QuantizedConv2DWithBiasSumAndReluAndRequantize", per_channel, DT_QUINT8);
    ExpectFormula("QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", per_channel, DT_QINT8);
  }
}

TEST(QuantizedFused, RejectsInvalidArguments) {
  const ConvInputs in = MakeInputs(false, false);
  const Tensor pair = Tensor::Vector<float>({0, 1}), one = Tensor::Scalar(1.0f);
  const Attrs conv = {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}};
  Attrs padded = conv;
  padded.emplace_back("padding_list", std::vector<int64_t>{1, 1});
  Attrs sum = conv;
  sum.emplace_back("out_type", DT_QUINT8);
  const Tensor a = Tensor::Zeros(DT_QUINT8, Shape({2, 3})),
               b = Tensor::Zeros(DT_QINT8, Shape({3, 2}));
  recorded::ExpectRejections({
      {"QuantizedConv2DWithBias", {in.image, in.filter, pair, one, one, one, one}, conv, "bias"},
      {"QuantizedConv2DPerChannel",
       {in.image, in.filter, one, one, pair, pair},
       conv,
       "min_filter"},
      {"QuantizedConv2DPerChannel", {in.image, in.filter, pair, one, one, one}, conv, "min_input"},
      {"QuantizedConv2DAndRelu",
       {in.image, in.filter, one, one, one, one},
       padded,
       "padding_list attribute must contain 8 values, but got: 2"},
      {"QuantizedConv2DWithBiasSumAndReluAndRequantize",
       {in.image, in.filter, in.bias, one, one, one, one, one, one, in.image, one, one},
       sum,
       "summand must have the shape"},
      {"QuantizedMatMulWithBias", {a, b, one, one, one, one, one}, {}, "bias"},
      {"QuantizedMatMulWithBias", {a, b, pair, pair, one, one, one}, {}, "min_a"},
  });
}

// Arbitrary ranges are harmless.
TEST(QuantizedFused, UnusualRangesAreHarmless) {
  const ConvInputs in = MakeInputs(false, false);
  const float odd[] = {-INFINITY, -3e38f, -1e-40f, 0, 1, 3e38f, INFINITY, NAN};
  for (const float low : odd) {
    for (const float high : odd) {
      const Tensor a = Tensor::Scalar(low), b = Tensor::Scalar(high);
      RunFed("QuantizedConv2DWithBiasAndRequantize",
             {in.image, in.filter, in.bias, a, b, a, b, a, b},
             {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
              {"padding", "SAME"},
              {"out_type", DT_QINT8}})
          .IgnoreError();
    }
  }
}

}  // namespace

}  // namespace weir
