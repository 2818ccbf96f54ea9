#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"
#include "weir/tests/kernels/lib/recorded.h"

// Ops on quantized tensors against TensorFlow's recorded answers.
namespace weir {

namespace {

// Runs a node on constants, and checks the inferred shapes. The inputs of the concatenation ops are
// lists: values, the minima of their ranges, the maxima.
absl::StatusOr<Tensors> RunOn(const std::string& op, const Tensors& inputs, const Attrs& attrs) {
  Graph g;
  Outputs x;
  for (const Tensor& input : inputs) x.push_back(Const(g, input));
  std::vector<Arg> args(x.begin(), x.end());
  if (absl::StartsWith(op, "QuantizedConcat")) {
    const auto n = static_cast<std::ptrdiff_t>(x.size() - 1) / 3;
    const auto list = [&](std::ptrdiff_t from) {
      return Arg(Outputs(x.begin() + from, x.begin() + from + n));
    };
    if (op == "QuantizedConcat") {
      args = {x[0], list(1), list(n + 1), list(2 * n + 1)};
    } else {
      args = {list(0), x[n], list(n + 1), list(2 * n + 1)};
    }
  }
  Node* const node = AddNode(op, args, attrs);
  if (node == nullptr) return g.status();
  Outputs fetches;
  for (int i = 0; i < node->num_outputs(); ++i) fetches.push_back(node->output(i));
  absl::StatusOr<Tensors> out = Evaluate(g, fetches);
  for (size_t i = 0; out.ok() && i < out->size(); ++i) {
    EXPECT_TRUE(fetches[i].shape().IsCompatibleWith((*out)[i].shape()))
        << "output " << i << ": " << fetches[i].shape().ToString() << " inferred, "
        << (*out)[i].shape().ToString() << " given";
    EXPECT_TRUE(fetches[i].shape().has_rank()) << "output " << i;
  }
  return out;
}

// Integers may differ by `steps`.
void ExpectNear(const Tensor& got, const Tensor& want, int64_t steps) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  if (want.dtype() == DT_FLOAT) {
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      const float w = want.data<float>()[i];
      ASSERT_NEAR(got.data<float>()[i], w, 1e-6f * std::max(1.0f, std::abs(w)));
    }
    return;
  }
  const DataType stored = StoredAs(want.dtype());
  const Tensor a = got.BitcastTo(stored), b = want.BitcastTo(stored);
  for (int64_t i = 0; i < want.num_elements(); ++i)
    ASSERT_LE(std::abs(a.IntAt(i) - b.IntAt(i)), steps) << "element " << i << ": " << a.IntAt(i);
}

void ExpectAnswer(const Answer& a) {
  SCOPED_TRACE(absl::StrCat(a.op, ", line ", a.line));
  const absl::StatusOr<Tensors> out = RunOn(a.op, a.inputs, a.attrs);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->size(), a.outputs.size());
  // Sums of floats at half a step, which TensorFlow rounds in vectors.
  const bool rounds = absl::StartsWith(a.op, "QuantizedConcat");
  for (size_t i = 0; i < a.outputs.size(); ++i)
    ExpectNear((*out)[i], a.outputs[i], rounds && (*out)[i].dtype() == DT_QINT32 ? 1 : 0);
}

std::vector<Answer> Answers() { return ReadAnswers("tests/kernels/golden/quantized_answers.txt"); }

TEST(Quantized, MatchesTensorFlow) {
  const std::vector<Answer> answers = Answers();
  EXPECT_GT(answers.size(), 190u);
  for (const Answer& a : answers) ExpectAnswer(a);
}

// Ops without a TensorFlow kernel are compared with equivalent ops.
TEST(Quantized, EquivalentOpsAgree) {
  int checked = 0;
  for (Answer a : Answers()) {
    if (a.op == "QuantizedRelu6") {
      a.op = "QuantizedReluX";
      a.inputs.insert(a.inputs.begin() + 1, Tensor::Scalar(6.0f));
    } else if (a.op == "QuantizedConcat") {
      a.op = "QuantizedConcatV2";
      const size_t n = (a.inputs.size() - 1) / 3;
      std::rotate(a.inputs.begin(), a.inputs.begin() + 1,
                  a.inputs.begin() + static_cast<std::ptrdiff_t>(n) + 1);
    } else {
      continue;
    }
    ExpectAnswer(a);
    ++checked;
  }
  EXPECT_GE(checked, 18);
}

// Broadcast by NumPy's rules, also where TensorFlow does not broadcast or returns something else.
TEST(Quantized, SumsAndProductsBroadcast) {
  const auto q8 = [](const Shape& shape, std::initializer_list<uint8_t> values) {
    return Tensor::Of<uint8_t>(shape, values).BitcastTo(DT_QUINT8);
  };
  const Tensor min = Tensor::Scalar(0.0f), max = Tensor::Scalar(255.0f);
  const auto out =
      RunOn("QuantizedMul", {q8({2, 1}, {3, 5}), q8({1, 3}, {1, 2, 7}), min, max, min, max}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  const Tensor z = (*out)[0].BitcastTo(DT_INT32);
  EXPECT_EQ(z.shape(), Shape({2, 3}));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(z.IntAt(i), (i < 3 ? 3 : 5) * (i % 3 == 2 ? 7 : i % 3 + 1));
}

TEST(Quantized, RejectsInvalidArguments) {
  const auto q8 = [](const Shape& shape) { return Tensor::Zeros(DT_QUINT8, shape); };
  const auto q32 = [](const Shape& shape) { return Tensor::Zeros(DT_QINT32, shape); };
  const Tensor a = Tensor::Scalar(0.0f), b = Tensor::Scalar(1.0f);
  const Tensor pair = Tensor::Vector<float>({0, 1}), i32 = Tensor::Vector<int32_t>({2, 2});
  const Attrs matrix = {{"T1", DT_QUINT8}, {"T2", DT_QUINT8}};
  const Attrs bias = {{"out_type", DT_QINT32}};
  const Attrs conv = {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}};
  const Attrs pool = {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                      {"strides", std::vector<int64_t>{1, 1, 1, 1}},
                      {"padding", "VALID"}};
  const Attrs norm = {
      {"out_type", DT_QINT32}, {"variance_epsilon", 0.1f}, {"scale_after_normalization", true}};
  const Tensor four = q8({4}), image = q8({1, 2, 2, 4});
  recorded::ExpectRejections({
      {"QuantizedMatMul", {q8({2, 3}), q8({3, 2}), b, a, a, b}, matrix, "max_a must be larger"},
      {"QuantizedMatMul", {q8({2, 3}), q8({3, 2}), a, b, pair, b}, matrix, "min_b"},
      {"QuantizedMatMul", {q8({2, 3}), q8({2, 2}), a, b, a, b}, matrix, ""},
      {"QuantizedAdd", {q8({2}), q8({3}), a, b, a, b}, matrix, ""},
      {"QuantizedMul", {q8({2}), q8({2}), a, b, b, b}, matrix, "max_y must be larger than min_y."},
      {"QuantizedBiasAdd", {four, four, a, b, a, b}, bias, "at least 2D"},
      {"QuantizedBiasAdd", {image, q8({2, 2}), a, b, a, b}, bias, "Biases must be 1D"},
      {"QuantizedBiasAdd", {image, q8({3}), a, b, a, b}, bias, "as many biases"},
      {"QuantizedRelu", {four, pair, b}, {}, "min_features"},
      {"QuantizedReluX", {four, pair, a, b}, {}, "max_value"},
      {"QuantizedConv2D", {image, q8({2, 2, 3, 1}), a, b, a, b}, conv, "depth"},
      {"QuantizedConv2D", {four, q8({2, 2, 4, 1}), a, b, a, b}, conv, "4-dimensional"},
      {"QuantizedMaxPool", {four, a, b}, pool, "4-dimensional"},
      {"QuantizedAvgPool", {image, a, pair}, pool, "max_input"},
      {"QuantizedReshape", {image, Tensor::Vector<int32_t>({3}), a, b}, {}, "requested shape"},
      {"QuantizedReshape", {image, i32, pair, b}, {}, "input_min must be a scalar"},
      {"QuantizedResizeBilinear", {four, i32, a, b}, {}, "images"},
      {"QuantizedResizeBilinear", {image, Tensor::Vector<int32_t>({0, 2}), a, b}, {}, ""},
      {"QuantizedBatchNormWithGlobalNormalization",
       {image, a, b, four, a, b, q8({3}), a, b, four, a, b, four, a, b},
       norm,
       "v must be a vector of 4"},
      {"QuantizedInstanceNorm", {image, b, a}, {}, "input_min must be less than input_max"},
      {"QuantizedInstanceNorm", {four, a, b}, {}, "x"},
      {"RequantizePerChannel", {q32({1, 1, 1, 2}), pair, b, a, b}, {}, "input_max has incorrect"},
      {"RequantizePerChannel", {q32({1, 1, 1, 2}), pair, pair, a, a}, {}, "must not both be 0"},
      {"RequantizationRangePerChannel", {q32({2}), pair, pair}, {{"clip_value_max", 1.0f}}, ""},
  });
  const absl::StatusOr<Tensors> ends = RunOn(
      "QuantizedConcat", {Tensor::Scalar<int32_t>(2), q8({1, 2}), q8({1, 2}), a, a, b, b}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(ends.status())) << ends.status();
}

// The float GEMM adds at most 256 products at once, of at most 1,024 rows.
TEST(Quantized, LongSumsAreExact) {
  constexpr int64_t kRows = 1100, kTerms = 700, kColumns = 3;
  Tensor x(DT_QUINT8, Shape({1, kRows, 1, kTerms})), y(DT_QUINT8, Shape({1, 1, kTerms, kColumns}));
  auto* const a = static_cast<uint8_t*>(x.raw());
  auto* const b = static_cast<uint8_t*>(y.raw());
  for (int64_t i = 0; i < x.num_elements(); ++i) a[i] = static_cast<uint8_t>(255 - i * 7 % 3);
  for (int64_t i = 0; i < y.num_elements(); ++i) b[i] = static_cast<uint8_t>(i * 5 % 4);
  // The zero points are 0 and 255.
  const Tensor zero = Tensor::Scalar(0.0f), low = Tensor::Scalar(-255.0f),
               high = Tensor::Scalar(255.0f);
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  const auto conv = RunOn("QuantizedConv2D", {x, y, zero, high, low, zero},
                          {{"strides", ones}, {"padding", "VALID"}});
  const auto product = RunOn("QuantizedMatMul",
                             {x.Reshaped(Shape({kRows, kTerms})),
                              y.Reshaped(Shape({kTerms, kColumns})), zero, high, low, zero},
                             {});
  ASSERT_TRUE(conv.ok() && product.ok()) << conv.status() << product.status();
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    int64_t want = 0;
    for (int64_t k = 0; k < kTerms; ++k)
      want += a[i / kColumns * kTerms + k] * (int64_t{b[k * kColumns + i % kColumns]} - 255);
    ASSERT_EQ(static_cast<const int32_t*>((*conv)[0].raw())[i], want) << i;
    ASSERT_EQ(static_cast<const int32_t*>((*product)[0].raw())[i], want) << i;
  }
}

// Arbitrary ranges are harmless.
TEST(Quantized, UnusualRangesAreHarmless) {
  const Tensor x = Tensor::Zeros(DT_QUINT8, Shape({1, 2, 2, 1}));
  const float odd[] = {-INFINITY, -3e38f, -1e-40f, 0, 1, 3e38f, INFINITY, NAN};
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  for (const float low : odd) {
    for (const float high : odd) {
      const Tensor a = Tensor::Scalar(low), b = Tensor::Scalar(high);
      RunFed("QuantizedAdd", {x, x, a, b, a, b}).IgnoreError();
      RunFed("QuantizedMul", {x, x, a, b, b, a}).IgnoreError();
      RunFed("QuantizedRelu6", {x, a, b}).IgnoreError();
      RunFed("QuantizedInstanceNorm", {x, a, b}).IgnoreError();
      RunFed("QuantizedBiasAdd", {x, x.Reshaped(Shape({1, 4})).Slice(0, 1), a, b, a, b},
             {{"out_type", DT_QINT32}})
          .IgnoreError();
      RunFed("QuantizedConv2D", {x, x.Reshaped(Shape({2, 2, 1, 1})), a, b, a, b},
             {{"strides", ones}, {"padding", "SAME"}})
          .IgnoreError();
      RunOn("QuantizedConcat", {Tensor::Scalar<int32_t>(0), x, x, a, b, b, a}, {}).IgnoreError();
    }
  }
}

// Empty images are normalized to empty images; TensorFlow crashes there.
TEST(Quantized, EmptyImagesHaveARange) {
  const auto out = RunOn(
      "QuantizedInstanceNorm",
      {Tensor::Zeros(DT_QUINT8, Shape({0, 2, 2, 1})), Tensor::Scalar(0.0f), Tensor::Scalar(1.0f)},
      {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[1].scalar<float>(), 0);
  EXPECT_EQ((*out)[2].scalar<float>(), 0.001f);
}

}  // namespace

}  // namespace weir
