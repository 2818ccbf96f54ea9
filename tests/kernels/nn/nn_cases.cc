#include <algorithm>
#include <cmath>
#include <limits>

#include "weir/tests/kernels/lib/op_case.h"

namespace weir {
namespace {

constexpr double kScale = 1.0507009873554804934193349852946;
constexpr double kScaleAlpha = 1.7580993408473768599402175208123;

// ---- activations

using Binary = double (*)(double, double);

// An elementwise op of two tensors of one shape.
OpCase Pairwise(absl::string_view op, Binary f, Range x = {}, Range y = {}) {
  return OpCase(op)
      .Input({3, 41}, x)
      .Input({3, 41}, y)
      .Reference([f](const Node&, const Tensors& in) {
        const std::vector<double> a = ToDoubles(in[0]), b = ToDoubles(in[1]);
        std::vector<double> out;
        for (size_t i = 0; i < a.size(); ++i) out.push_back(f(a[i], b[i]));
        return Tensors{Doubles(in[0].shape(), out)};
      });
}

// LeakyRelu and its gradient, which have a parameter.
OpCase Leaky(absl::string_view op, float alpha) {
  OpCase c(op);
  const bool gradient = op == "LeakyReluGrad";
  if (gradient) c.Input({5, 13});
  return c.Input({5, 13}).Attr("alpha", alpha).Reference([=](const Node&, const Tensors& in) {
    const std::vector<double> dy = ToDoubles(in[0]), x = ToDoubles(in[gradient ? 1 : 0]);
    std::vector<double> out;
    for (size_t i = 0; i < x.size(); ++i)
      out.push_back((gradient ? dy[i] : x[i]) * (x[i] > 0 ? 1 : alpha));
    return Tensors{Doubles(in[0].shape(), out)};
  });
}

double SeluOf(double x) { return x < 0 ? kScaleAlpha * std::expm1(x) : kScale * x; }

// Gradients checked to order 1 by rows: Softsign.
std::vector<OpCase> ActivationCases() {
  return {
      OpCase("Relu", +[](double x) { return x > 0 || std::isnan(x) ? x : 0; }, {-4, 4, true}),
      Pairwise("ReluGrad", +[](double d, double x) { return x > 0 ? d : 0; }, {}, {-4, 4, true}),
      OpCase("Relu6", +[](double x) { return std::isnan(x) ? x : std::clamp(x, 0.0, 6.0); },
             {-4, 12, true}),
      Pairwise("Relu6Grad", +[](double d, double x) { return x > 0 && x < 6 ? d : 0; }, {},
               {-4, 12, true}),
      OpCase("Elu", +[](double x) { return x < 0 ? std::expm1(x) : x; }, {-20, 20}),
      Pairwise("EluGrad", +[](double d, double y) { return y < 0 ? d * (y + 1) : d; }, {},
               {-1, 3, true}),
      OpCase("Selu", SeluOf, {-20, 20}),
      Pairwise("SeluGrad",
               +[](double d, double y) { return d * (y < 0 ? y + kScaleAlpha : kScale); }, {},
               {-1.7, 3, true}),
      Leaky("LeakyRelu", 0.2f),
      Leaky("LeakyRelu", 1.5f).Label("alpha_above_1"),
      Leaky("LeakyReluGrad", 0.2f),
      OpCase("Softplus",
             +[](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); },
             {-20, 20})
          .NoSpecials(),
      Pairwise("SoftplusGrad", +[](double d, double x) { return d / (1 + std::exp(-x)); }, {},
               {-20, 20}),
      OpCase("Softsign", +[](double x) { return x / (1 + std::abs(x)); }, {-20, 20})
          .NoSpecials()
          .Gradient(1),
      Pairwise("SoftsignGrad",
               +[](double d, double x) { return d / ((1 + std::abs(x)) * (1 + std::abs(x))); }, {},
               {-20, 20}),
  };
}

// ---- biases

// The dimension of the channel in an element's index.
int ChannelDim(const Node& node, const Shape& shape) {
  return node.attr_or<std::string>("data_format", "NHWC") == "NCHW" ? 1 : shape.rank() - 1;
}

Tensors BiasAddOf(const Node& node, const Tensors& in) {
  const std::vector<double> x = ToDoubles(in[0]), bias = ToDoubles(in[1]);
  std::vector<double> out(x.size());
  ForEachIndex(in[0].shape(), [&](int64_t i, const std::vector<int64_t>& at) {
    out[i] = x[i] + bias[at[ChannelDim(node, in[0].shape())]];
  });
  return {Doubles(in[0].shape(), out)};
}

Tensors BiasAddGradOf(const Node& node, const Tensors& in) {
  const int dim = ChannelDim(node, in[0].shape());
  const std::vector<double> dy = ToDoubles(in[0]);
  std::vector<double> out(in[0].dim(dim), 0);
  ForEachIndex(in[0].shape(),
               [&](int64_t i, const std::vector<int64_t>& at) { out[at[dim]] += dy[i]; });
  return {Doubles(Shape({in[0].dim(dim)}), out)};
}

// The references compute in double, which has neither imaginary parts nor the overflow of small
// integers.
const std::vector<DataType> kNotSwept = {DT_COMPLEX64, DT_COMPLEX128, DT_INT8, DT_UINT8};

OpCase BiasCase(absl::string_view op, const Shape& x, absl::string_view format,
                absl::string_view label) {
  const int64_t channels = format == "NCHW" ? x.dim(1) : x.dim(-1);
  OpCase c(op);
  c.Label(label).Input(x).Input({channels}).NotTypes(kNotSwept).Reference(BiasAddOf);
  if (op != "BiasAddV1") c.Attr("data_format", format);
  return c;
}

OpCase BiasGradCase(const Shape& dy, absl::string_view format, absl::string_view label) {
  return OpCase("BiasAddGrad")
      .Label(label)
      .Input(dy)
      .NotTypes(kNotSwept)
      .Attr("data_format", format)
      .ToleranceFactor(4)
      .Reference(BiasAddGradOf);
}

std::vector<OpCase> BiasCases() {
  return {
      BiasCase("BiasAdd", {3, 5}, "NHWC", "matrix"),
      BiasCase("BiasAdd", {700, 3}, "NHWC", "narrow"),
      BiasCase("BiasAdd", {2, 3, 4, 37}, "NHWC", "images"),
      BiasCase("BiasAdd", {0, 4}, "NHWC", "empty"),
      BiasCase("BiasAdd", {2, 5, 3, 7}, "NCHW", "channels_first"),
      BiasCase("BiasAdd", {4, 6, 3}, "NCHW", "channels_first_rows"),
      BiasCase("BiasAddV1", {2, 3, 9}, "NHWC", "images"),
      BiasGradCase({3, 5}, "NHWC", "matrix"),
      BiasGradCase({900, 3}, "NHWC", "narrow"),
      BiasGradCase({5, 4, 4, 83}, "NHWC", "images"),
      BiasGradCase({0, 4}, "NHWC", "empty"),
      BiasGradCase({3, 5, 2, 7}, "NCHW", "channels_first"),
      OpCase("L2Loss").Input({7, 37}).ToleranceFactor(30).Reference(
          [](const Node&, const Tensors& in) {
            double sum = 0;
            for (double x : ToDoubles(in[0])) sum += x * x / 2;
            return Tensors{Doubles(Shape(), {sum})};
          }),
  };
}

// ---- softmax

// Applies fn(first, size) to the rows along the last dimension.
template <class F>
void ForEachRow(const Tensor& t, F&& fn) {
  const int64_t n = t.dim(-1);
  for (int64_t i = 0; n > 0 && i < t.num_elements(); i += n) fn(i, n);
}

double LogSumExp(const std::vector<double>& x, int64_t first, int64_t n) {
  const double max = *std::max_element(&x[first], &x[first] + n);
  double sum = 0;
  for (int64_t i = first; i < first + n; ++i) sum += std::exp(x[i] - max);
  return max + std::log(sum);
}

Tensors LogSoftmaxOf(const Node& node, const Tensors& in) {
  std::vector<double> x = ToDoubles(in[0]), y = x;
  ForEachRow(in[0], [&](int64_t first, int64_t n) {
    const double log_sum = LogSumExp(x, first, n);
    for (int64_t i = first; i < first + n; ++i) y[i] = x[i] - log_sum;
  });
  return {Doubles(in[0].shape(), y)};
}

Tensors SoftmaxOf(const Node& node, const Tensors& in) {
  std::vector<double> y = ToDoubles(LogSoftmaxOf(node, in)[0]);
  for (double& v : y) v = std::exp(v);
  return {Doubles(in[0].shape(), y)};
}

// Returns the element of a matrix at (r, c); dimensions of 1 (and missing ones) are broadcast.
double At(const Tensor& t, const std::vector<double>& values, int64_t r, int64_t c) {
  const int64_t cols = t.dim(-1), rows = t.rank() == 2 ? t.dim(0) : 1;
  return values[(rows == 1 ? 0 : r) * cols + (cols == 1 ? 0 : c)];
}

Tensors CrossEntropyOf(const Node& node, const Tensors& in) {
  const Shape both = BroadcastShapes(in[0].shape(), in[1].shape()).value();
  const std::vector<double> x = ToDoubles(in[0]), labels = ToDoubles(in[1]);
  std::vector<double> loss, grad;
  for (int64_t r = 0; r < both.dim(0); ++r) {
    std::vector<double> row;
    for (int64_t c = 0; c < both.dim(1); ++c) row.push_back(At(in[0], x, r, c));
    const double log_sum = LogSumExp(row, 0, both.dim(1));
    loss.push_back(0);
    for (int64_t c = 0; c < both.dim(1); ++c) {
      const double label = At(in[1], labels, r, c);
      loss.back() += label * (log_sum - row[c]);
      grad.push_back(std::exp(row[c] - log_sum) - label);
    }
  }
  return {Doubles(Shape({both.dim(0)}), loss), Doubles(both, grad)};
}

Tensors SparseCrossEntropyOf(const Node& node, const Tensors& in) {
  const int64_t rows = in[0].dim(0), classes = in[0].dim(1);
  std::vector<double> one_hot(rows * classes, 0);
  for (int64_t r = 0; r < rows; ++r) one_hot[r * classes + in[1].IntAt(r)] = 1;
  return CrossEntropyOf(node, {in[0], Doubles(in[0].shape(), one_hot)});
}

template <class I>
OpCase SparseCase(absl::string_view label) {
  std::vector<I> labels;
  for (I i = 0; i < 37; ++i) labels.push_back(i * 5 % 11);
  return OpCase("SparseSoftmaxCrossEntropyWithLogits")
      .Label(label)
      .Input({37, 11}, {-6, 6})
      .Input(Tensor::Vector<I>(labels))
      .Reference(SparseCrossEntropyOf);
}

OpCase XentCase(const Shape& logits, const Shape& labels, absl::string_view label) {
  return OpCase("SoftmaxCrossEntropyWithLogits")
      .Label(label)
      .Input(logits, {-6, 6})
      .Input(labels, {0, 1})
      .ToleranceFactor(4)
      .Gradient(0)  // correct only for labels that are distributions: see nn_test.cc
      .Reference(CrossEntropyOf);
}

std::vector<OpCase> SoftmaxCases() {
  std::vector<OpCase> cases;
  const std::pair<const char*, Shape> shapes[] = {
      {"vector", {5}},     {"short_rows", {6, 3}}, {"rows", {4, 3, 37}},  {"long_rows", {2, 1000}},
      {"no_rows", {0, 4}}, {"one_class", {3, 1}},  {"empty_rows", {3, 0}}};
  for (const auto& [label, shape] : shapes) {
    cases.push_back(OpCase("Softmax").Label(label).Input(shape, {-9, 9}).Reference(SoftmaxOf));
    cases.push_back(OpCase("LogSoftmax")
                        .Label(label)
                        .Input(shape, {-9, 9})
                        .ToleranceFactor(2)
                        .Reference(LogSoftmaxOf));
  }
  cases.push_back(XentCase({7, 19}, {7, 19}, "plain"));
  cases.push_back(XentCase({4, 5}, {1, 5}, "one_row_of_labels"));
  cases.push_back(XentCase({4, 5}, {5}, "vector_of_labels"));
  cases.push_back(XentCase({4, 5}, {4, 1}, "one_label_a_row"));
  cases.push_back(XentCase({1, 5}, {4, 5}, "one_row_of_logits"));
  cases.push_back(SparseCase<int32_t>("int32"));
  cases.push_back(SparseCase<int64_t>("int64"));
  return cases;
}

// ---- norms

Tensors LrnOf(const Node& node, const Tensors& in) {
  const int64_t radius = node.attr<int64_t>("depth_radius"), n = in[0].dim(3);
  const double bias = node.attr<float>("bias"), alpha = node.attr<float>("alpha"),
               beta = node.attr<float>("beta");
  const std::vector<double> x = ToDoubles(in[0]);
  std::vector<double> y(x.size());
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t row = i / n * n, c = i % n;
    double sum = 0;
    for (int64_t k = std::max<int64_t>(0, c - radius); k <= std::min(n - 1, c + radius); ++k)
      sum += x[row + k] * x[row + k];
    y[i] = x[i] / std::pow(bias + alpha * sum, beta);
  }
  return {Doubles(in[0].shape(), y)};
}

// Central differences of sum(dy * lrn(x)) would need the forward pass; this is the derivative in
// closed form.
Tensors LrnGradOf(const Node& node, const Tensors& in) {
  const int64_t radius = node.attr<int64_t>("depth_radius"), n = in[0].dim(3);
  const double bias = node.attr<float>("bias"), alpha = node.attr<float>("alpha"),
               beta = node.attr<float>("beta");
  const std::vector<double> dy = ToDoubles(in[0]), x = ToDoubles(in[1]), y = ToDoubles(in[2]);
  std::vector<double> norm(x.size(), bias), dx(x.size(), 0);
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    for (int64_t k = i / n * n; k < i / n * n + n; ++k)
      norm[i] += std::abs(k - i) <= radius ? alpha * x[k] * x[k] : 0;
  }
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    for (int64_t k = i / n * n; k < i / n * n + n; ++k) {
      if (std::abs(k - i) <= radius) dx[i] -= 2 * alpha * beta * x[i] * dy[k] * y[k] / norm[k];
    }
    dx[i] += dy[i] * std::pow(norm[i], -beta);
  }
  return {Doubles(in[0].shape(), dx)};
}

OpCase Lrn(absl::string_view op, int64_t radius, float bias, float alpha, float beta,
           absl::string_view label) {
  const bool gradient = op == "LRNGrad";
  OpCase c(op);
  c.Label(label)
      .Attr("depth_radius", radius)
      .Attr("bias", bias)
      .Attr("alpha", alpha)
      .Attr("beta", beta);
  for (int i = 0; i < (gradient ? 3 : 1); ++i) c.Input({2, 3, 2, 9});
  return c.ToleranceFactor(8).Reference(gradient ? LrnGradOf : LrnOf);
}

std::vector<OpCase> NormCases() {
  return {
      Lrn("LRN", 5, 1, 1, 0.5f, "default"),         Lrn("LRN", 1, 2, 0.5f, 0.75f, "narrow"),
      Lrn("LRN", 0, 1, 1, 0.5f, "alone"),           Lrn("LRNGrad", 5, 1, 1, 0.5f, "default"),
      Lrn("LRNGrad", 2, 2, 0.25f, 0.75f, "narrow"),
  };
}

std::vector<OpCase> NnCases() {
  std::vector<OpCase> all;
  for (const auto& part : {ActivationCases(), BiasCases(), SoftmaxCases(), NormCases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Nn, OpSweepTest, testing::ValuesIn(NnCases()), OpCaseName);

}  // namespace
}  // namespace weir
