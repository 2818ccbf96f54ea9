#include <cmath>
#include <functional>

#include "weir/tests/kernels/lib/op_case.h"

// Fused products and their epilogues, compared with both computed in double.
namespace weir {
namespace {

double Activated(const std::string& op, double x, double alpha) {
  if (op == "Relu") return std::max(x, 0.0);
  if (op == "Relu6") return std::min(std::max(x, 0.0), 6.0);
  if (op == "Elu") return x < 0 ? std::expm1(x) : x;
  if (op == "LeakyRelu") return x < 0 ? alpha * x : x;
  if (op == "Tanh") return std::tanh(x);
  if (op == "Sigmoid") return 1 / (1 + std::exp(-x));
  return x;
}

// Applies fused_ops to a product [.., channels]; their operands start at in[2].
Tensors ApplyFusedOps(const Node& node, const Shape& shape, std::vector<double> y,
                      const Tensors& in) {
  size_t arg = 2;
  for (const std::string& op : node.attr<std::vector<std::string>>("fused_ops")) {
    const bool takes = op == "BiasAdd" || op == "Add";
    const std::vector<double> other = takes ? ToDoubles(in[arg++]) : std::vector<double>();
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = takes ? y[i] + other[i % other.size()]
                   : Activated(op, y[i], node.attr<float>("leakyrelu_alpha"));
    }
  }
  return {Doubles(shape, y)};
}

// NHWC convolution with SAME or VALID padding.
Tensors ConvOf(const Node& node, const Tensors& in) {
  const Shape &x = in[0].shape(), &f = in[1].shape();
  const bool depthwise = node.op_name() != "_FusedConv2D",
             same = node.attr<std::string>("padding") == "SAME";
  const int64_t stride = node.attr<std::vector<int64_t>>("strides")[1],
                channels = depthwise ? f.dim(2) * f.dim(3) : f.dim(3);
  int64_t out[2], pad[2];
  for (int d = 0; d < 2; ++d) {
    const int64_t size = x.dim(1 + d), k = f.dim(d);
    out[d] = same ? (size + stride - 1) / stride : (size - k) / stride + 1;
    pad[d] = same ? std::max<int64_t>(0, (out[d] - 1) * stride + k - size) / 2 : 0;
  }
  const Shape shape({x.dim(0), out[0], out[1], channels});
  const std::vector<double> image = ToDoubles(in[0]), filter = ToDoubles(in[1]);
  std::vector<double> y(shape.num_elements(), 0);
  ForEachIndex(shape, [&](int64_t at, const std::vector<int64_t>& o) {
    ForEachIndex(Shape({f.dim(0), f.dim(1)}), [&](int64_t tap, const std::vector<int64_t>& k) {
      const int64_t h = o[1] * stride - pad[0] + k[0], w = o[2] * stride - pad[1] + k[1];
      if (h < 0 || h >= x.dim(1) || w < 0 || w >= x.dim(2)) return;
      const int64_t pixel = ((o[0] * x.dim(1) + h) * x.dim(2) + w) * x.dim(3);
      for (int64_t c = 0; c < (depthwise ? 1 : x.dim(3)); ++c) {
        y[at] += depthwise ? image[pixel + o[3] / f.dim(3)] * filter[tap * channels + o[3]]
                           : image[pixel + c] * filter[(tap * x.dim(3) + c) * channels + o[3]];
      }
    });
  });
  return ApplyFusedOps(node, shape, std::move(y), in);
}

// For the preceding convolution: 1x1 filters.
Tensor PointwiseOf(const Tensor& x, const Tensor& filter) {
  const int64_t in = filter.dim(2), out = filter.dim(3);
  Shape shape = x.shape();
  shape.set_dim(3, out);
  const std::vector<double> image = ToDoubles(x), weights = ToDoubles(filter);
  std::vector<double> y(shape.num_elements(), 0);
  for (size_t i = 0; i < y.size(); ++i) {
    for (int64_t c = 0; c < in; ++c) y[i] += image[i / out * in + c] * weights[c * out + i % out];
  }
  return Doubles(shape, y);
}

// One filter per channel, with all attributes.
Tensor DepthwiseOf(const Node& node, const Tensor& x, const Tensor& filter) {
  const auto strides = node.attr<std::vector<int64_t>>("strides"),
             dilations = node.attr<std::vector<int64_t>>("dilations"),
             pads = node.attr<std::vector<int64_t>>("explicit_paddings");
  const auto padding = node.attr<std::string>("padding");
  int64_t out[2], pad[2];
  for (int d = 0; d < 2; ++d) {
    const int64_t size = x.dim(1 + d), stride = strides[1 + d],
                  reach = (filter.dim(d) - 1) * dilations[1 + d] + 1;
    out[d] = (size + stride - 1) / stride;
    pad[d] = std::max<int64_t>(0, (out[d] - 1) * stride + reach - size) / 2;
    if (padding == "SAME") continue;
    const bool is_explicit = padding == "EXPLICIT";
    pad[d] = is_explicit ? pads[2 + 2 * d] : 0;
    out[d] = (size + pad[d] + (is_explicit ? pads[3 + 2 * d] : 0) - reach) / stride + 1;
  }
  const int64_t channels = x.dim(3);
  const Shape shape({x.dim(0), out[0], out[1], channels});
  const std::vector<double> image = ToDoubles(x), weights = ToDoubles(filter);
  std::vector<double> y(shape.num_elements(), 0);
  ForEachIndex(shape, [&](int64_t at, const std::vector<int64_t>& o) {
    ForEachIndex(Shape({filter.dim(0), filter.dim(1)}),
                 [&](int64_t tap, const std::vector<int64_t>& k) {
                   const int64_t h = o[1] * strides[1] - pad[0] + k[0] * dilations[1],
                                 w = o[2] * strides[2] - pad[1] + k[1] * dilations[2];
                   if (h < 0 || h >= x.dim(1) || w < 0 || w >= x.dim(2)) return;
                   y[at] += image[((o[0] * x.dim(1) + h) * x.dim(2) + w) * channels + o[3]] *
                            weights[tap * channels + o[3]];
                 });
  });
  return Doubles(shape, y);
}

Tensors SeparableOf(const Node& node, const Tensors& in) {
  const auto activations = node.attr<std::vector<std::string>>("activations");
  const auto finished = [&](const Tensor& y, const Tensor& bias, const Tensor* addend, int stage) {
    std::vector<double> values = ToDoubles(y);
    const std::vector<double> offsets = ToDoubles(bias),
                              others = addend == nullptr ? values : ToDoubles(*addend);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] += offsets[i % offsets.size()] + (addend == nullptr ? 0 : others[i]);
      values[i] = Activated(activations[stage], values[i], 0);
    }
    return Doubles(y.shape(), values);
  };
  size_t next = 1;
  Tensor y = in[0];
  if (node.attr<int64_t>("num_expand") == 1) {
    y = finished(PointwiseOf(y, in[1]), in[2], nullptr, 0);
    next = 3;
  }
  y = finished(DepthwiseOf(node, y, in[next]), in[next + 1], nullptr, 1);
  const Tensor* const addend = next + 4 < in.size() ? &in[next + 4] : nullptr;
  return {finished(PointwiseOf(y, in[next + 2]), in[next + 3], addend, 2)};
}

Tensors MatMulOf(const Node& node, const Tensors& in) {
  const bool ta = node.attr<bool>("transpose_a"), tb = node.attr<bool>("transpose_b");
  const int64_t m = in[0].dim(ta ? 1 : 0), k = in[0].dim(ta ? 0 : 1), n = in[1].dim(tb ? 0 : 1);
  const std::vector<double> a = ToDoubles(in[0]), b = ToDoubles(in[1]);
  std::vector<double> y;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += a[ta ? p * m + i : i * k + p] * b[tb ? j * k + p : p * n + j];
      y.push_back(sum);
    }
  }
  return ApplyFusedOps(node, Shape({m, n}), std::move(y), in);
}

using Ops = std::vector<std::string>;

std::vector<OpCase> FusedCases() {
  std::vector<OpCase> all;
  const auto row = [](const char* op, const std::string& label, const Shape& a, const Shape& b,
                      const Ops& ops, const Shape& result) {
    OpCase c(op);
    std::vector<Shape> args;
    for (const std::string& o : ops) {
      if (o == "BiasAdd") args.push_back(Shape({result.dim(-1)}));
      if (o == "Add") args.push_back(result);
    }
    c.Label(label).Input(a, {-1, 1}).Input(b, {-1, 1}).List(args).TypeAttr("T");
    c.Attr("num_args", static_cast<int64_t>(args.size()))
        .Attr("fused_ops", ops)
        .Attr("leakyrelu_alpha", 0.3f)
        .Types({DT_FLOAT})
        .ToleranceFactor(8);
    return c;
  };
  const auto conv = [&](const char* op, const std::string& label, const Shape& image,
                        const Shape& filter, const Shape& result, const Ops& ops,
                        const char* padding = "SAME", int64_t stride = 1) {
    OpCase c = row(op, label, image, filter, ops, result);
    if (std::string(op) == "_FusedConv2D") c.List({});  // host_args
    c.Attr("strides", std::vector<int64_t>{1, stride, stride, 1}).Attr("padding", padding);
    all.push_back(c.Reference(ConvOf));
  };
  const char* const kConv = "_FusedConv2D";
  for (const char* op : {"Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid"})
    conv(kConv, op, {2, 5, 7, 3}, {3, 3, 3, 4}, {2, 5, 7, 4}, {"BiasAdd", op});
  conv(kConv, "bias", {2, 6, 7, 3}, {3, 2, 3, 5}, {2, 4, 6, 5}, {"BiasAdd"}, "VALID");
  conv(kConv, "sum", {2, 5, 7, 16}, {1, 1, 16, 8}, {2, 5, 7, 8}, {"BiasAdd", "Add"});
  conv(kConv, "sum_relu", {1, 9, 8, 20}, {3, 3, 20, 33}, {1, 5, 4, 33}, {"BiasAdd", "Add", "Relu"},
       "SAME", 2);
  // Split into rows, and into slices of channels.
  conv(kConv, "rows", {1, 28, 28, 24}, {3, 3, 24, 32}, {1, 28, 28, 32}, {"BiasAdd", "Add", "Relu"});
  conv(kConv, "slices", {1, 7, 7, 64}, {3, 3, 64, 256}, {1, 7, 7, 256}, {"BiasAdd", "Add", "Relu"});
  conv(kConv, "no_images", {0, 5, 5, 2}, {3, 3, 2, 3}, {0, 5, 5, 3}, {"BiasAdd", "Relu"});
  const char* const kDepthwise = "_FusedDepthwiseConv2dNative";
  conv(kDepthwise, "bias", {2, 5, 6, 3}, {3, 3, 3, 2}, {2, 5, 6, 6}, {"BiasAdd"});
  conv(kDepthwise, "relu6", {1, 7, 7, 35}, {3, 3, 35, 1}, {1, 4, 4, 35}, {"BiasAdd", "Relu6"},
       "SAME", 2);
  // Numbers of channels: of the image (without expansion, equal to `between`), between the
  // convolutions, and of the output.
  struct Separable {
    const char* label;
    Shape image;
    int64_t between, out;
    bool expands = true, adds = false;
    const char* padding = "SAME";
    int64_t stride = 1, kernel = 3, dilation = 1;
    std::vector<int64_t> pads = {};
  };
  const Separable separable[] = {
      {"expanded", {2, 9, 11, 8}, 48, 24},
      {"alone", {2, 9, 11, 48}, 48, 40, false},
      {"shortcut", {1, 12, 10, 16}, 96, 16, true, true},
      {"stride", {2, 13, 14, 8}, 40, 17, true, false, "SAME", 2},
      {"stride_beyond", {1, 13, 14, 8}, 40, 17, true, false, "VALID", 4},
      {"valid", {1, 9, 10, 6}, 20, 5, true, false, "VALID"},
      {"kernel5", {1, 12, 9, 8}, 32, 16, true, false, "SAME", 1, 5},
      {"kernel5_alone", {1, 12, 9, 32}, 32, 16, false, true, "SAME", 1, 5},
      {"dilated", {1, 12, 13, 8}, 33, 16, true, false, "SAME", 1, 3, 2},
      {"explicit",
       {1, 7, 8, 8},
       32,
       16,
       true,
       false,
       "EXPLICIT",
       2,
       3,
       1,
       {0, 0, 0, 1, 2, 0, 0, 0}},
      {"smaller_than_its_filter", {3, 2, 1, 8}, 32, 16},
      {"no_images", {0, 5, 5, 8}, 32, 16},
      // Split into bands, on several threads.
      {"bands", {1, 56, 56, 16}, 96, 24, true, false, "SAME", 2},
      {"bands_alone", {1, 80, 60, 64}, 64, 32, false},
      {"images_and_rows", {3, 30, 30, 16}, 96, 16, true, true},
      // Split by channels.
      {"channels", {1, 5, 5, 64}, 400, 72, true, true},
      {"channels_alone", {2, 4, 4, 512}, 512, 520, false, false, "SAME", 2},
      {"channels_of_images", {2, 4, 5, 64}, 520, 80, true, false, "SAME", 2},
  };
  for (const Separable& s : separable) {
    OpCase c("_FusedDepthwiseSeparableConv2D");
    using List = std::vector<Shape>;
    const int64_t in = s.image.dim(3);
    const auto extent = [&](int d) {
      const int64_t size = s.image.dim(1 + d), reach = (s.kernel - 1) * s.dilation + 1;
      if (std::string(s.padding) == "SAME") return (size + s.stride - 1) / s.stride;
      const int64_t padded = s.pads.empty() ? size : size + s.pads[2 + 2 * d] + s.pads[3 + 2 * d];
      return (padded - reach) / s.stride + 1;
    };
    const Shape result({s.image.dim(0), extent(0), extent(1), s.out});
    c.Label(s.label)
        .Input(s.image, {-1, 1})
        .List(s.expands ? List{{1, 1, in, s.between}} : List{})
        .List(s.expands ? List{{s.between}} : List{})
        .Input({s.kernel, s.kernel, s.between, 1}, {-1, 1})
        .Input({s.between}, {-1, 1})
        .Input({1, 1, s.between, s.out}, {-1, 1})
        .Input({s.out}, {-1, 1})
        .List(s.adds ? List{result} : List{})
        .TypeAttr("T")
        .Attr("strides", std::vector<int64_t>{1, s.stride, s.stride, 1})
        .Attr("dilations", std::vector<int64_t>{1, s.dilation, s.dilation, 1})
        .Attr("padding", s.padding)
        .Attr("explicit_paddings", s.pads)
        .Attr("activations", Ops{"Relu6", "Relu", s.adds ? "Relu" : ""})
        .Types({DT_FLOAT})
        .ToleranceFactor(16);
    all.push_back(c.Reference(SeparableOf));
  }
  const auto matmul = [&](const std::string& label, const Shape& a, const Shape& b, bool ta,
                          bool tb, const Shape& result, const Ops& ops) {
    OpCase c = row("_FusedMatMul", label, a, b, ops, result);
    c.Attr("transpose_a", ta).Attr("transpose_b", tb);
    all.push_back(c.Reference(MatMulOf));
  };
  matmul("plain", {3, 5}, {5, 4}, false, false, {3, 4}, {});
  matmul("bias", {3, 5}, {5, 4}, false, false, {3, 4}, {"BiasAdd"});
  matmul("relu", {65, 130}, {130, 257}, false, false, {65, 257}, {"BiasAdd", "Relu"});
  matmul("sum", {130, 65}, {257, 130}, true, true, {65, 257}, {"BiasAdd", "Add", "Tanh"});
  matmul("no_depth", {3, 0}, {0, 4}, false, false, {3, 4}, {"BiasAdd", "Elu"});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Fused, OpSweepTest, testing::ValuesIn(FusedCases()), OpCaseName);

}  // namespace
}  // namespace weir
