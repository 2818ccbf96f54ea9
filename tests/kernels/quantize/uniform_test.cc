#include <cmath>
#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/quantize/uniform.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"
#include "weir/tests/kernels/lib/recorded.h"

// Ops on uniformly quantized tensors against TensorFlow's recorded answers.
namespace weir {

namespace {

void ExpectNear(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  if (want.dtype() != DT_FLOAT) {
    const Tensor a = got.BitcastTo(StoredAs(want.dtype())),
                 b = want.BitcastTo(StoredAs(want.dtype()));
    EXPECT_TRUE(IdenticalTensors(a, b)) << a.ToString() << "\n" << b.ToString();
    return;
  }
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const float w = want.data<float>()[i];
    ASSERT_NEAR(got.data<float>()[i], w, 1e-6f * std::max(1.0f, std::abs(w)));
  }
}

TEST(Uniform, MatchesTensorFlow) {
  std::vector<Answer> answers = ReadAnswers("tests/kernels/golden/uniform_answers.txt");
  EXPECT_GT(answers.size(), 150u);
  for (Answer& a : answers) {
    SCOPED_TRACE(absl::StrCat(a.op, ", line ", a.line));
    for (auto& [name, value] : a.attrs) {
      if (name == "dimension_numbers") value = absl::HexStringToBytes(*value.get_if<std::string>());
    }
    Graph g;
    std::vector<Arg> args;
    for (const Tensor& input : a.inputs) args.push_back(Const(g, input));
    const Output y = AddOp(a.op, args, a.attrs);
    ASSERT_TRUE(y.valid()) << g.status();
    const absl::StatusOr<Tensors> out = Evaluate(g, {y});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(y.shape(), (*out)[0].shape());
    ExpectNear((*out)[0], a.outputs[0]);
  }
}

// The builders pass operands and attributes in the order of the signatures.
TEST(Uniform, BuildersMakeTheOps) {
  Graph g;
  const auto scale = [&](float s, int32_t zero, int64_t min, int64_t max) {
    return UniformQuantization{Const(g, s), Const(g, zero), -1, min, max};
  };
  const UniformQuantization fine = scale(0.5f, 1, -128, 127), coarse = scale(2, -3, -128, 127);
  const UniformQuantization sums = scale(1, 5, INT32_MIN, INT32_MAX);
  const Output x = UniformQuantize(Const<float>(g, Shape({1, 2}), {3, -2}), fine, DT_QINT8);
  const Output y = UniformQuantize(Const<float>(g, Shape({2, 1}), {4, 8}), coarse, DT_QINT8);
  const Output product = UniformQuantizedDot(x, fine, y, coarse, sums);
  const Output clipped =
      UniformQuantizedClipByValue(product, UniformQuantize(Const(g, -2.0f), sums, DT_QINT32),
                                  UniformQuantize(Const(g, 100.0f), sums, DT_QINT32), sums);
  const UniformConvolutionOptions same{.padding = "SAME"};
  const Output image = Reshape(x, {1, 1, 2}), filter = Reshape(y, {1, 1, 2});
  const Output numbers = Const<float>(g, Shape({1, 1, 2}), {3, -2});
  const absl::StatusOr<Tensors> out =
      Evaluate(g, {UniformDequantize(UniformRequantize(x, fine, coarse), coarse),
                   UniformDequantize(clipped, sums),
                   UniformDequantize(UniformQuantizedAdd(product, sums, product, sums, sums), sums),
                   UniformQuantizedDotHybrid(Const<float>(g, Shape({1, 2}), {3, -2}), y, coarse),
                   UniformDequantize(
                       UniformQuantizedConvolution(image, fine, filter, coarse, sums, same), sums),
                   UniformQuantizedConvolutionHybrid(numbers, filter, coarse, same)});
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectNear((*out)[0], Tensor::Of<float>({1, 2}, {4, -2}));  // 1.5 steps are rounded up
  ExpectNear((*out)[1], Tensor::Of<float>({1, 1}, {-2}));
  ExpectNear((*out)[2], Tensor::Of<float>({1, 1}, {-8}));
  EXPECT_NEAR((*out)[3].scalar<float>(), -4, 0.1f);
  ExpectNear((*out)[4], Tensor::Of<float>({1, 1, 2}, {-4, -8}));
  EXPECT_NEAR((*out)[5].data<float>()[1], -8, 0.1f);
}

TEST(Uniform, RejectsInvalidArguments) {
  const auto q8 = [](const Shape& shape) { return Tensor::Zeros(DT_QINT8, shape); };
  const auto q32 = [](const Shape& shape) { return Tensor::Zeros(DT_QINT32, shape); };
  const Tensor scale = Tensor::Scalar(1.0f), zero = Tensor::Scalar<int32_t>(0);
  const Tensor none = Tensor::Scalar(0.0f), pair = Tensor::Vector<float>({1, 1}),
               zeros = Tensor::Vector<int32_t>({0, 0});
  const Attrs one = {{"quantization_min_val", int64_t{-128}},
                     {"quantization_max_val", int64_t{127}}};
  const Attrs two = {{"input_quantization_min_val", int64_t{-128}},
                     {"input_quantization_max_val", int64_t{127}},
                     {"output_quantization_min_val", int64_t{-128}},
                     {"output_quantization_max_val", int64_t{127}}};
  const Attrs three = {{"lhs_quantization_min_val", int64_t{-128}},
                       {"lhs_quantization_max_val", int64_t{127}},
                       {"rhs_quantization_min_val", int64_t{-128}},
                       {"rhs_quantization_max_val", int64_t{127}},
                       {"output_quantization_min_val", int64_t{-128}},
                       {"output_quantization_max_val", int64_t{127}}};
  const auto with = [](Attrs attrs, const Attrs& more) {
    attrs.insert(attrs.end(), more.begin(), more.end());
    return attrs;
  };
  const Attrs to8 = with(one, {{"Tout", DT_QINT8}}), to_float = with(one, {{"Tout", DT_FLOAT}});
  const Attrs re = with(two, {{"Tout", DT_QINT8}}), dot = with(three, {{"Tout", DT_QINT32}});
  const auto conv = [&](const Attrs& attrs) { return with(dot, attrs); };
  const Tensor image = q8({2, 2, 4}), kernel = q8({2, 2, 2});
  const auto call = [&](const Tensor& x, const Tensor& y) {
    return Tensors{x, y, scale, zero, scale, zero, scale, zero};
  };
  const Attrs valid = conv({{"padding", "VALID"}});
  recorded::ExpectRejections({
      {"UniformQuantize", {pair, scale, zeros}, to8, "shape must be same"},
      {"UniformQuantize", {pair, pair, zeros}, to8, "must be scalar"},
      {"UniformDequantize", {q8({2}), none, zero}, to_float, "must be all positive"},
      {"UniformRequantize", {q8({2}), scale, zero, none, zero}, re, "must be all positive"},
      {"UniformRequantize", {q8({2}), scale, zero, pair, zeros}, re, "must be scalar"},
      {"UniformQuantizedAdd", call(q32({2}), q32({3})), three, "Cannot Add tensors of shapes"},
      {"UniformQuantizedClipByValue",
       {q32({2}), q32({2}), q32({}), scale, zero},
       one,
       "Input min shape must be same"},
      {"UniformQuantizedDot", call(q8({2, 3}), q8({2, 3})), dot, "must be equal"},
      {"UniformQuantizedDot", call(q8({2}), q8({2, 3})), dot, "lhs rank must be 2"},
      {"UniformQuantizedDot",
       {q8({2, 2}), q8({2, 2}), scale, zero, scale, zero, pair, zeros},
       dot,
       "output must be also per-tensor"},
      {"UniformQuantizedConvolution", call(image, q8({2, 2})), valid, "same dims"},
      {"UniformQuantizedConvolution", call(q8({2, 2}), q8({2, 2})), valid, "at least 3"},
      {"UniformQuantizedConvolution", call(image, q8({2, 3, 2})), valid, "!= 3"},
      {"UniformQuantizedConvolution", call(image, q8({2, 2, 6})), valid, "exceeds"},
      {"UniformQuantizedConvolution", call(image, kernel), conv({{"padding", "EXPLICIT"}}),
       "2 * (rank - 2)"},
      {"UniformQuantizedConvolution", call(image, kernel),
       conv({{"padding", "VALID"}, {"window_strides", std::vector<int64_t>{0}}}), "must be >= 1"},
      {"UniformQuantizedConvolution", call(image, kernel),
       conv({{"padding", "VALID"}, {"feature_group_count", int64_t{3}}}), "feature_group_count"},
      {"UniformQuantizedConvolution", call(image, kernel),
       conv({{"padding", "VALID"}, {"batch_group_count", int64_t{0}}}), "batch_group_count"},
      // Input, kernel and output dimensions of which two are the same.
      {"UniformQuantizedConvolution", call(image, kernel),
       conv({{"padding", "VALID"}, {"dimension_numbers", std::string("\x1a\x01\x02", 3)}}),
       "used twice"},
  });
}

// Attributes that are invalid for all shapes are rejected when the node is built.
TEST(Uniform, RejectsInvalidAttributes) {
  for (const UniformConvolutionOptions& options :
       {UniformConvolutionOptions{.padding = "FULL"},
        UniformConvolutionOptions{.dimension_numbers = "x"},
        UniformConvolutionOptions{.padding = "SAME", .explicit_padding = {1, 1}}}) {
    Graph g;
    const Output x = Placeholder(g, DT_FLOAT), y = Placeholder(g, DT_QINT8);
    const UniformQuantization q{Const(g, 1.0f), Const(g, int32_t{0})};
    EXPECT_FALSE(UniformQuantizedConvolutionHybrid(x, y, q, options).valid());
    EXPECT_TRUE(absl::IsInvalidArgument(g.status())) << g.status();
  }
}

// Extreme scales, zero points and numbers saturate.
TEST(Uniform, ExtremeNumbersAreHarmless) {
  const Tensor x = Tensor::Vector<float>({0, 3e38f, -3e38f, INFINITY, -INFINITY, NAN, 1e-40f});
  Tensor q(DT_QINT32, Shape({4}));
  const int32_t ends[] = {INT32_MIN, INT32_MAX, 0, 1};
  std::copy(ends, ends + 4, static_cast<int32_t*>(q.raw()));
  const Attrs only = {{"quantization_min_val", int64_t{INT32_MIN}},
                      {"quantization_max_val", int64_t{INT32_MAX}},
                      {"Tout", DT_QINT32}};
  const Attrs both = {{"input_quantization_min_val", int64_t{INT32_MIN}},
                      {"input_quantization_max_val", int64_t{INT32_MAX}},
                      {"output_quantization_min_val", int64_t{INT32_MIN}},
                      {"output_quantization_max_val", int64_t{INT32_MAX}},
                      {"Tout", DT_QINT8}};
  for (const float s : {1e-45f, 1.0f, 3e38f, INFINITY, NAN, 0.0f, -1.0f}) {
    for (const int32_t z : ends) {
      const Tensor scale = Tensor::Scalar(s), zero = Tensor::Scalar(z), one = Tensor::Scalar(1.0f);
      RunFed("UniformQuantize", {x, scale, zero}, only).IgnoreError();
      RunFed("UniformRequantize", {q, scale, zero, one, zero}, both).IgnoreError();
      RunFed("UniformRequantize", {q, one, zero, scale, zero}, both).IgnoreError();
    }
  }
}

}  // namespace

}  // namespace weir
